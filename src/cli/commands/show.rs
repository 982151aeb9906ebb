//! `compeval show`: everything about one cell.

use std::fmt::Write as _;

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::cache::{output_of, snapshot};
use crate::cli::commands::cell::{FoundCell, ShowArgs, command_for, find_cell, score_style};
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{dimension_name, percent, probe_type, with_fields};
use crate::cli::project::{open_request, project_paths_of, read_project};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::entries::EntryLookup;
use crate::evaluation::{compress_cell, recorded_context};
use crate::measure::{FactClass, FactOutcome};
use crate::pipeline::{LoadedFixture, MatrixSelection, OpenRequest, Pipeline};
use crate::report::known;
use crate::results::{Manifest, Row};
use base::locale::Locale;
use base::say;
use lexical::facts::{Fact, FactFinder};
use store::cache::{CacheSnapshot, Lookup};

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    if args.planted {
        return super::planted::run(common, args, console);
    }
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
            console,
        };
        page(console, &shown.text(context.as_deref()));
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
    console: &'a Console,
}

impl Page<'_> {
    fn text(&self, context: Result<&str, &String>) -> String {
        let (row, locale) = (self.row, self.console.locale);
        let mut text = self.head();
        self.section(&mut text, locale.pick("Question", "问题"), "");
        self.body(&mut text, &row.question);
        self.facts(&mut text);
        self.section(&mut text, locale.pick("Context", "上下文"), &self.size());
        match context {
            Ok("") => self.note(&mut text, locale.pick("empty", "空")),
            Ok(context) => self.body(&mut text, &self.marked(context)),
            Err(why) => self.note(
                &mut text,
                &say!(locale, "not available: {why}", "不可用：{why}"),
            ),
        }
        self.searches(&mut text);
        self.section(
            &mut text,
            locale.pick("Answer", "回答"),
            &say!(locale, "by {}", "出自 {}", row.answerer),
        );
        self.body(&mut text, &self.marked(&row.answer));
        self.answer_notes(&mut text);
        self.grades(&mut text);
        self.write_footer(&mut text);
        text
    }

    fn paint(&self, style: TextStyle, text: &str) -> String {
        self.console.paint(style, text)
    }

    fn section(&self, text: &mut String, heading: &str, beside: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n{}  {}",
            self.paint(TextStyle::Strong, heading),
            self.paint(TextStyle::Dim, beside)
        );
    }

    fn note(&self, text: &mut String, note: &str) {
        let _ = writeln!(
            text,
            "  {}",
            self.paint(TextStyle::Dim, &format!("({note})"))
        );
    }

    /// Text wrapped to the width, its own lines kept.
    fn body(&self, text: &mut String, body: &str) {
        let options = textwrap::Options::new(self.console.width())
            .initial_indent("  ")
            .subsequent_indent("  ");
        for line in body.trim_end().lines() {
            let _ = writeln!(text, "{}", textwrap::fill(line, &options).trim_end());
        }
    }

    fn head(&self) -> String {
        let (row, locale) = (self.row, self.console.locale);
        let place = say!(
            locale,
            "{} · point {} · {} · run {} · {}",
            "{} · 压缩点 {} · {} · 第 {} 次 · {}",
            row.fixture,
            row.point,
            row.method,
            row.run,
            row.probe
        );
        let score = known(row.overall, |score| {
            say!(locale, "{score:.2} of 5", "{score:.2}（满分 5）")
        });
        let (manifest, kind) = (&self.found.manifest, probe_type(locale, row.kind));
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
        format!(
            "{}   {}\n{}\n",
            self.paint(TextStyle::Strong, &place),
            self.paint(score_style(row.overall), &score),
            self.paint(TextStyle::Dim, &origin)
        )
    }

    fn size(&self) -> String {
        let (row, locale) = (self.row, self.console.locale);
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

    fn facts(&self, text: &mut String) {
        let (row, locale) = (self.row, self.console.locale);
        self.section(text, locale.pick("Expected facts", "预期事实"), "");
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
            self.note(text, why);
        }
        let widths = row.facts.iter().map(|fact| fact.fact.chars().count());
        let width = widths.max().unwrap_or(0).min(48);
        for fact in &row.facts {
            let (mark, style, what) = fate(fact, locale);
            let place = self.place_of_lost(fact).unwrap_or_default();
            let _ = writeln!(
                text,
                "  {} {:width$}  {}{place}",
                self.paint(style, mark),
                fact.fact,
                self.paint(style, what)
            );
        }
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
            self.console.locale,
            "; it stood in message {message}",
            "；原在第 {message} 条消息"
        ))
    }

    /// The text with the expected facts marked.
    fn marked(&self, text: &str) -> String {
        let facts = self.row.facts.iter().map(|fate| Fact {
            spellings: vec![fate.fact.clone()],
        });
        let facts: Vec<Fact> = facts.collect();
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
            let lines = lines.map(|line| self.paint(TextStyle::Good, line));
            marked.push_str(&lines.collect::<Vec<_>>().join("\n"));
            done = range.end;
        }
        marked.push_str(text.get(done..).unwrap_or(""));
        marked
    }

    /// What an open-book answer searched for, and what it got to read.
    fn searches(&self, text: &mut String) {
        let Some(open) = &self.row.open_book else {
            return;
        };
        let locale = self.console.locale;
        for (number, search) in (1..).zip(&open.searches) {
            let query = if search.query.is_empty() {
                locale.pick("(invalid call)", "（请求有误）")
            } else {
                &search.query
            };
            self.section(
                text,
                &say!(locale, "Search {number}", "第 {number} 次检索"),
                query,
            );
            self.body(text, &self.marked(&search.returned));
        }
        if open.searches.is_empty() {
            self.section(
                text,
                locale.pick("Searches", "检索"),
                locale.pick("none", "无"),
            );
        }
    }

    fn answer_notes(&self, text: &mut String) {
        let (row, locale) = (self.row, self.console.locale);
        let mut notes: Vec<(&str, String)> = Vec::new();
        if row.truncated {
            let why = locale.pick("the token limit cut the answer off", "回答被词元上限截断");
            notes.push((locale.pick("truncated:", "截断："), why.to_owned()));
        }
        if !row.stale_facts.is_empty() {
            let heading = locale.pick("superseded, but stated as current:", "已被取代却当作现状：");
            notes.push((heading, row.stale_facts.join(locale.pick(", ", "、"))));
        }
        if !row.invented.is_empty() {
            let heading = locale.pick("not in the transcript:", "会话记录中没有：");
            notes.push((heading, row.invented.join(locale.pick(", ", "、"))));
        }
        if row.fabricated == Some(true) {
            let why = locale.pick(
                "the transcript does not contain this, and the answer asserts it",
                "会话记录中没有此内容，而回答断言了它",
            );
            notes.push((locale.pick("fabricated:", "编造："), why.to_owned()));
        }
        for (what, names) in notes {
            let _ = writeln!(text, "  {} {names}", self.paint(TextStyle::Bad, what));
        }
    }

    fn grades(&self, text: &mut String) {
        let (row, locale) = (self.row, self.console.locale);
        self.section(
            text,
            locale.pick("Grades", "评分"),
            &say!(locale, "by {}, from 0 to 5", "评审 {}，0 至 5", row.judge),
        );
        let options = textwrap::Options::new(self.console.width())
            .initial_indent("      ")
            .subsequent_indent("      ");
        let criteria = &self.found.manifest.design.rubric.criteria;
        for (dimension, score) in &row.dimensions {
            let score_text = self.paint(score_style(Some(*score)), &format!("{score:.2}"));
            let _ = writeln!(
                text,
                "  {score_text}  {}",
                self.paint(
                    TextStyle::Strong,
                    dimension_name(self.console.locale, *dimension)
                )
            );
            let of_dimension = criteria
                .iter()
                .filter(|criterion| criterion.dimension == *dimension);
            let mut last = "";
            for grade in row.criteria.iter().filter(|grade| {
                of_dimension
                    .clone()
                    .any(|criterion| criterion.id == grade.criterion)
            }) {
                let points = f64::from(grade.points());
                let points = self.paint(score_style(Some(points)), &format!("{points}"));
                let _ = writeln!(text, "    {points}  {}", grade.criterion);
                // a judge that gives one reason for several criteria is quoted once
                if !grade.reasoning.is_empty() && grade.reasoning != last {
                    last = &grade.reasoning;
                    let reason = textwrap::fill(&grade.reasoning, &options);
                    let _ = writeln!(text, "{}", self.paint(TextStyle::Dim, &reason));
                }
            }
        }
    }

    fn write_footer(&self, text: &mut String) {
        let (row, locale) = (self.row, self.console.locale);
        if !self.found.others.is_empty() {
            let others = self.found.others.iter().map(|other| {
                let score = known(other.overall, |score| format!("{score:.2}"));
                let answerer = (other.answerer != self.row.answerer).then_some(&other.answerer);
                let judge = (other.judge != self.row.judge).then_some(&other.judge);
                let by = answerer.into_iter().chain(judge);
                let by: String = by.map(|name| format!(" · {name}")).collect();
                say!(
                    locale,
                    "run {}{by} {score}",
                    "第 {} 次{by} {score}",
                    other.run
                )
            });
            let others: Vec<String> = others.collect();
            let label = locale.pick("other grades:", "其他评分：");
            let others =
                self.console
                    .labelled(TextStyle::Dim, label, others.join(locale.pick(", ", "，")));
            let _ = writeln!(text, "\n{others}");
        }
        let keys = format!(
            "compress {}, answer {}, judge {}",
            row.keys.compress.0.short(),
            row.keys.answer.0.short(),
            row.keys.judge.0.short()
        );
        let keys = say!(locale, "keys: {keys}", "键：{keys}");
        let _ = writeln!(text, "\n{}", self.paint(TextStyle::Dim, &keys));
        let next = command_for("why", row, &self.found.manifest.label);
        let next = self.console.next_line(locale, next);
        let _ = writeln!(text, "{next}");
    }
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
