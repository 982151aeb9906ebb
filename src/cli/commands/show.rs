//! `compeval show`: everything about one cell.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::cache::{output_of, snapshot};
use crate::cli::commands::cell::{FoundCell, ShowArgs, command_for, find_cell, head, score_style};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{dimension_name, percent, with_fields};
use crate::cli::project::{open_request, project_paths_of, read_project};
use crate::cli::terminal::{Console, TextStyle, page, paint};
use crate::entries::EntryLookup;
use crate::evaluation::{compress_cell, recorded_context};
use crate::judge::CriterionId;
use crate::measure::{FactClass, FactOutcome};
use crate::pipeline::{LoadedFixture, MatrixSelection, OpenRequest, Pipeline};
use crate::report::{Block, Section, known};
use crate::results::{Manifest, Row};
use base::locale::Locale;
use base::say;
use lexical::facts::{Fact, FactFinder};
use store::cache::{CacheSnapshot, Lookup};

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let Some(found) = find_cell(common, &paths.results, args, "show", console)? else {
        return Ok(Exit::Done);
    };
    let row = found.judged()?;
    let pipeline = pipeline_of(common, &row.fixture, &row.method);
    let snapshot = snapshot(&paths.cache, console)?;
    let (manifest, locale) = (&found.manifest, console.locale);
    let context = context(&snapshot, pipeline.as_ref(), manifest, row, locale);
    // The context is null where it is not at hand.
    let fields = json!({ "label": found.manifest.label, "context": context.as_ref().ok() });
    console.report(&with_fields(row, fields), || {
        let shown = Page {
            found: &found,
            row,
            session: pipeline.as_ref().and_then(|p| p.fixtures.first()),
            locale,
        };
        let text = console.document(&shown.sections(context.as_deref()));
        let next = command_for("why", row, &manifest.label);
        page(
            console,
            &format!("{text}\n\n{}", console.next_line(locale, next)),
        );
    });
    Ok(Exit::Done)
}

/// The part of today's project that a cell belongs to, if there still is one.
pub(super) fn pipeline_of(common: &Common, fixture: &str, method: &str) -> Option<Pipeline> {
    let request = OpenRequest {
        selection: MatrixSelection {
            fixtures: Some(vec![fixture.to_owned()]),
            methods: Some(vec![method.to_owned()]),
            probes: None,
        },
        allow_unproven: true,
        ..open_request(common).ok()?
    };
    Some(read_project(&request).ok()?.pipeline)
}

/// The context that the answer was given from, or the stored output where the project no longer reads it; else why
/// neither can be shown.
fn context(
    snapshot: &CacheSnapshot,
    pipeline: Option<&Pipeline>,
    manifest: &Manifest,
    row: &Row,
    locale: Locale,
) -> Result<String, String> {
    let key = row.keys.compress;
    let record = snapshot.find(&key).ok_or_else(|| {
        say!(
            locale,
            "the entry {} is no longer in the cache",
            "条目 {} 已不在缓存中",
            key.0.short()
        )
    })?;
    let as_read = pipeline.and_then(|pipeline| {
        let cell = compress_cell(pipeline, &manifest.design, row)?;
        recorded_context(pipeline, cell, &key, snapshot)
    });
    if let Some(read) = as_read {
        let why = locale.pick("only its provider can read it", "只有其服务商能读取");
        return read.ok_or_else(|| why.to_owned());
    }
    let body = snapshot
        .body(&record)
        .map_err(|damage| damage.to_string())?;
    let meta = snapshot
        .meta(&record)
        .map_err(|damage| damage.to_string())?;
    Ok(output_of(&record, &meta, &body))
}

/// The page of a cell.
struct Page<'a> {
    found: &'a FoundCell,
    row: &'a Row,
    /// The session as it is today.
    session: Option<&'a LoadedFixture>,
    locale: Locale,
}

impl Page<'_> {
    fn sections(&self, context: Result<&str, &String>) -> Vec<Section> {
        let (row, locale) = (self.row, self.locale);
        let context = match context {
            Ok("") => note(locale.pick("empty", "空")),
            Ok(context) => body(&self.marked(context)),
            Err(why) => note(&say!(locale, "not available: {why}", "不可用：{why}")),
        };
        let answerer = say!(locale, "by {}", "出自 {}", row.answerer);
        let answer = [Block::dim(answerer), body(&self.marked(&row.answer))].into_iter();
        let first = [
            self.head(),
            Section::plain(locale.pick("Question", "问题"), [body(&row.question)]),
            Section::plain(locale.pick("Expected facts", "预期事实"), self.facts()),
            Section::plain(
                locale.pick("Context", "上下文"),
                [Block::dim(self.size()), context],
            ),
        ];
        let last = [
            Section::plain(
                locale.pick("Answer", "回答"),
                answer.chain(self.answer_notes()),
            ),
            Section::plain(locale.pick("Grades", "评分"), self.grades()),
        ];
        first
            .into_iter()
            .chain(self.searches())
            .chain(last)
            .collect()
    }

    fn head(&self) -> Section {
        let (row, locale) = (self.row, self.locale);
        let (manifest, kind) = (&self.found.manifest, row.kind.label(locale));
        let (label, judge) = (&manifest.label, &row.judge);
        let rules = if manifest.design.is_lexical() {
            locale.pick(" · built-in rules, no model", " · 内置规则，未用模型")
        } else {
            ""
        };
        let origin = say!(
            locale,
            "{kind} probe · label {label} · graded by {judge}{rules}",
            "{kind}问题 · 标签 {label} · 评审 {judge}{rules}"
        );
        head(&row.place(), row.overall, origin, locale)
    }

    fn size(&self) -> String {
        let (row, locale) = (self.row, self.locale);
        // A question that cannot be answered has no facts.
        let facts = row.fact_survival.map(|kept| {
            let kept = percent(Some(kept));
            say!(
                locale,
                "; it contains {kept} of the facts",
                "；含有 {kept} 的事实"
            )
        });
        let facts = facts.unwrap_or_default();
        match (row.context_tokens, row.replaced_tokens) {
            (Some(kept), Some(replaced)) => say!(
                locale,
                "{kept} tokens replace {replaced} ({} removed){facts}",
                "{kept} 词元替换 {replaced}（压缩掉 {}）{facts}",
                percent(row.compression_ratio)
            ),
            _ => locale.pick("size unknown", "大小未知").to_owned(),
        }
    }

    fn facts(&self) -> Vec<Block> {
        let (row, locale) = (self.row, self.locale);
        if row.facts.is_empty() {
            let why = if row.fabricated.is_some() {
                locale.pick(
                    "none: the transcript does not contain the answer, and a correct answer says so",
                    "无：会话记录中没有答案，正确的回答应如实说明",
                )
            } else {
                locale.pick(
                    "none: the bank names no facts of the answer",
                    "无：题库没有给出答案的事实",
                )
            };
            return vec![note(why)];
        }
        let facts = row.facts.iter().map(|fact| {
            let (mark, style, what) = fate(fact, locale);
            let place = self.place_of_lost(fact).unwrap_or_default();
            Block::Sentence(style, format!("  {mark} {}  {what}{place}", fact.fact))
        });
        facts.collect()
    }

    /// The last message before the point in which a lost fact stood, by its index in the fixture.
    fn place_of_lost(&self, fact: &FactOutcome) -> Option<String> {
        if fact.class != Some(FactClass::Lost) {
            return None;
        }
        let session = self.session?;
        let point = (self.row.point as usize).checked_sub(1)?;
        let end = *session.points.get(point)?;
        let history = session.history();
        let spellings = vec![fact.fact.clone()];
        let finder = FactFinder::within(&Fact { spellings }, history.paths());
        let message = history
            .holders(&finder, session.fixture.start()..end)
            .last()?;
        Some(say!(
            self.locale,
            "; it stood in message {message}",
            "；原在第 {message} 条消息"
        ))
    }

    /// The text with the expected facts marked.
    fn marked(&self, text: &str) -> String {
        let facts = self.row.facts.iter();
        let facts: Vec<Fact> = facts.map(|fate| Fact::new(&*fate.fact)).collect();
        let mapped = sessions::transcript::MappedFold::new(text);
        let found = FactFinder::all(&facts);
        let mut marks: Vec<_> = found
            .into_iter()
            .flat_map(|finder| finder.find(&mapped))
            .collect();
        marks.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let (mut marked, mut done) = (String::with_capacity(text.len()), 0);
        for range in marks {
            let (Some(before), Some(fact)) = (text.get(done..range.start), text.get(range.clone()))
            else {
                continue;
            };
            marked.push_str(before);
            // each line by itself, so that no colour runs over an indent
            let lines = fact.split('\n');
            let lines = lines.map(|line| paint(TextStyle::Good, line));
            marked.push_str(&lines.collect::<Vec<_>>().join("\n"));
            done = range.end;
        }
        marked.push_str(text.get(done..).unwrap_or(""));
        marked
    }

    /// What an open-book answer searched for, and what it got to read.
    fn searches(&self) -> Vec<Section> {
        let (open, locale) = (self.row.open_book.as_ref(), self.locale);
        let searches = open.map(|open| open.searches.as_slice());
        if searches.is_some_and(<[_]>::is_empty) {
            let none = note(locale.pick("none", "无"));
            return vec![Section::plain(locale.pick("Searches", "检索"), [none])];
        }
        let searches = (1..).zip(searches.unwrap_or_default());
        let searches = searches.map(|(number, search)| {
            let query = match search.query.as_str() {
                "" => locale.pick("(invalid call)", "（请求有误）"),
                query => query,
            };
            let title = say!(locale, "Search {number}", "第 {number} 次检索");
            let found = body(&self.marked(&search.returned));
            Section::plain(title, [Block::dim(query), found])
        });
        searches.collect()
    }

    /// What is wrong with the answer besides its grades.
    fn answer_notes(&self) -> impl Iterator<Item = Block> {
        let (row, locale) = (self.row, self.locale);
        let list = |heading: &str, names: &[String]| {
            let names = names.join(locale.pick(", ", "、"));
            (!names.is_empty()).then(|| format!("  {heading}{names}"))
        };
        let truncated = locale.pick(
            "  truncated: the token limit cut the answer off",
            "  截断：回答被词元上限截断",
        );
        let stale = locale.pick(
            "superseded, but stated as current: ",
            "已被取代却当作现状：",
        );
        let invented = locale.pick("not in the transcript: ", "会话记录中没有：");
        let fabricated = locale.pick(
            "  fabricated: the transcript does not contain this, and the answer asserts it",
            "  编造：会话记录中没有此内容，而回答断言了它",
        );
        let notes = [
            row.truncated.then(|| truncated.to_owned()),
            list(stale, &row.stale_facts),
            list(invented, &row.invented),
            (row.fabricated == Some(true)).then(|| fabricated.to_owned()),
        ];
        let notes = notes.into_iter().flatten();
        notes.map(|note| Block::Sentence(TextStyle::Bad, note))
    }

    fn grades(&self) -> Vec<Block> {
        let (row, locale) = (self.row, self.locale);
        let by = say!(locale, "by {}, from 0 to 5", "评审 {}，0 至 5", row.judge);
        let mut blocks = vec![Block::dim(by)];
        let criteria = &self.found.manifest.design.rubric.criteria;
        for (dimension, score) in &row.dimensions {
            let name = dimension_name(locale, *dimension);
            let style = score_style(Some(*score));
            blocks.push(Block::Sentence(style, format!("  {score:.2}  {name}")));
            let of_dimension = |criterion: &CriterionId| {
                let mut own = criteria.iter().filter(|one| one.dimension == *dimension);
                own.any(|one| one.id == *criterion)
            };
            let mut last = "";
            for grade in row
                .criteria
                .iter()
                .filter(|one| of_dimension(&one.criterion))
            {
                let points = grade.points();
                let style = score_style(Some(f64::from(points)));
                let line = format!("    {points}  {}", grade.criterion);
                blocks.push(Block::Sentence(style, line));
                // a judge that gives one reason for several criteria is quoted once
                if !grade.reasoning.is_empty() && grade.reasoning != last {
                    last = &grade.reasoning;
                    blocks.push(Block::dim(format!("      {last}")));
                }
            }
        }
        blocks.extend(self.other_grades());
        let keys = format!(
            "compress {}, answer {}, judge {}",
            row.keys.compress.0.short(),
            row.keys.answer.0.short(),
            row.keys.judge.0.short()
        );
        blocks.push(Block::dim(say!(locale, "keys: {keys}", "键：{keys}")));
        blocks
    }

    fn other_grades(&self) -> Option<Block> {
        let (row, locale) = (self.row, self.locale);
        let others = self.found.others.iter().map(|other| {
            let score = known(other.overall, |score| format!("{score:.2}"));
            let answerer = (other.answerer != row.answerer).then_some(&other.answerer);
            let judge = (other.judge != row.judge).then_some(&other.judge);
            let by = answerer.into_iter().chain(judge);
            let by: String = by.map(|name| format!(" · {name}")).collect();
            let run = other.run;
            say!(locale, "run {run}{by} {score}", "第 {run} 次{by} {score}")
        });
        let others: Vec<String> = others.collect();
        let label = locale.pick("other grades: ", "其他评分：");
        let names = others.join(locale.pick(", ", "，"));
        (!others.is_empty()).then(|| Block::dim(format!("{label}{names}")))
    }
}

/// A text with its own lines, indented.
fn body(text: &str) -> Block {
    let lines = text.trim_end().lines();
    Block::plain(lines.map(|line| format!("  {line}\n")).collect::<String>())
}

fn note(text: &str) -> Block {
    Block::dim(format!("  ({text})"))
}

/// What happened to a fact: a mark, its style, and words. A fact that a search brought back was not kept.
fn fate(fact: &FactOutcome, locale: Locale) -> (&'static str, TextStyle, &'static str) {
    use TextStyle::{Bad, Good, Warning};
    let found = fact.is_found_by_search();
    let (mark, style, english, chinese) = match fact.class {
        Some(FactClass::Answered) => ("✓", Good, "answered from the context", "依据上下文作答"),
        Some(FactClass::Missed) => {
            let words = "in the context, missed by the answerer";
            ("✗", Warning, words, "在上下文中，作答模型遗漏")
        }
        Some(FactClass::Lost) if found => {
            let words = "lost in compression; found by searching, missed by the answerer";
            let chinese = "压缩中丢失；检索已找到，作答模型遗漏";
            ("✗", Warning, words, chinese)
        }
        Some(FactClass::Lost) => ("✗", Bad, "lost in compression", "压缩中丢失"),
        Some(FactClass::AnsweredElsewhere) if found => {
            let words = "lost in compression; found by searching";
            ("✓", Good, words, "压缩中丢失；经检索找到")
        }
        Some(FactClass::AnsweredElsewhere) => {
            let words = "answered, but not literally in the context";
            ("✓", Warning, words, "答出，但上下文中没有原文")
        }
        None if fact.answered => ("✓", Good, "answered", "已答出"),
        None => ("✗", Bad, "not answered", "未答出"),
    };
    (mark, style, locale.pick(english, chinese))
}
