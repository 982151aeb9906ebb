//! Makes the row of a judged cell: grades, measures, sizes. A change of what rows contain must raise
//! [`crate::results::ROWS`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::measures::Measures;
use crate::action::{BuiltInStrategy, CellCoordinate, Digest, RequestTurn, Work};
use crate::answer::{Answer, Asked, Recovery, Round};
use crate::compress::{Context, Strategy};
use crate::entries::{EntryLookup, keep_tokens};
use crate::judge::{self, CriterionScore};
use crate::measure::{
    ContextFacts, FactOutcome, Headings, Measured, ProbeMeasure, compression_ratio, share,
};
use crate::pipeline::{FixtureIx, MethodIx, Pipeline};
use crate::plan::{
    Action, FixtureTexts, JudgeTask, LoadedContext, Output, OutputCache, OutputUnavailable,
    Resolved, ResolvedContext, Task, probe_of, prompt_of,
};
use crate::probe::Probe;
use crate::results::{ContextRow, OpenBook, PlantedRow, Row, RowCost, RowKeys, RowSearch, RowStep};
use base::message::Message;
use base::units::Tokens;
use guard::{Options, Verdict, guard};
use lexical::claims::RuleFinder;
use lexical::{InventedReferences, reference_keys};
use sessions::transcript::{count_tokens, fold_document};
use store::cache::{Lookup, Store};

/// Makes rows. It keeps what is the same for all cells of a fixture.
pub(super) struct RowBuilder<'e> {
    pub(super) pipeline: &'e Pipeline,
    pub(super) outputs: &'e OutputCache<'e>,
    pub(super) store: &'e Store,
    /// The fixture that was used last comes first.
    fixtures: RefCell<Vec<(FixtureIx, Rc<Measures>)>>,
    prompts: RefCell<HashMap<MethodIx, Rc<PromptWords>>>,
}

/// What is read from the compression prompt of a method.
#[derive(Default)]
struct PromptWords {
    headings: Headings,
    /// The keys of its references.
    references: BTreeSet<String>,
    text: String,
}

/// What is measured of a judged cell without its judge.
struct CellMeasures<'t> {
    probe: &'t Probe,
    measured: Measured,
    /// The share of the expected facts that occur in the summary alone.
    summary_survival: Option<f64>,
    context_facts: Option<ContextFacts>,
    open_book: Option<OpenBook>,
}

/// The maximum number of fixtures in memory. The matrix goes through the fixtures in order, and only a few overlap.
const FIXTURES_IN_MEMORY: usize = 8;

impl<'e> RowBuilder<'e> {
    pub(super) fn new(
        pipeline: &'e Pipeline,
        outputs: &'e OutputCache<'e>,
        store: &'e Store,
    ) -> RowBuilder<'e> {
        RowBuilder {
            pipeline,
            outputs,
            store,
            fixtures: RefCell::default(),
            prompts: RefCell::default(),
        }
    }

    /// The row of a judged cell as a line.
    pub(super) fn row_line(
        &self,
        task: &JudgeTask,
        resolved: &Resolved,
    ) -> Result<String, OutputUnavailable> {
        let measures = self.measures(&task.context.texts);
        let row = self.row(task, resolved, &measures)?;
        let mut line = serde_json::to_string(&row)?;
        line.push('\n');
        // A number that JSON does not have would make the line unreadable. Then the cell fails, not the run.
        serde_json::from_str::<Row>(&line)?;
        Ok(line)
    }

    fn row(
        &self,
        task: &JudgeTask,
        resolved: &Resolved,
        measures: &Measures,
    ) -> Result<Row, OutputUnavailable> {
        let pipeline = self.pipeline;
        let place = task.cell.place(pipeline);
        let grades = self.grades(task, resolved)?;
        let context = self.outputs.context(&task.context)?;
        let answer = self.outputs.answer(&task.answer_task(), &task.answer.key)?;
        let CellMeasures {
            probe,
            measured,
            summary_survival,
            context_facts,
            open_book,
        } = self.measure_cell(task, &context, &answer, measures)?;
        let scores = judge::grade(&pipeline.rubric, &grades);
        // If it can be read, it is counted with the pinned tokenizer like the messages that it replaces; if only the
        // provider can read it, by the provider.
        let context_tokens =
            (self.readable_tokens(&task.context, &context)).or_else(|| self.reported_tokens(task));
        let replaced_tokens =
            measures.replaced(&task.context.texts, task.cell.answer.compress.point);
        Ok(Row {
            fixture: place.fixture.to_string(),
            point: place.point.0,
            method: place.method.to_string(),
            run: place.run,
            probe: probe.id.to_string(),
            kind: probe.kind,
            question: probe.question.clone(),
            answerer: pipeline
                .answerer(task.cell.answer.answerer)
                .name
                .to_string(),
            judge: pipeline.judge(task.cell.judge).name.to_string(),
            answer_n: task.cell.answer.answer_n,
            judge_n: task.cell.judge_n,
            keys: keys_of(task, resolved),
            criteria: grades,
            dimensions: scores
                .iter()
                .map(|(dimension, score)| (dimension, score.value()))
                .collect(),
            overall: scores.overall().map(|score| score.value()),
            facts: measured.facts,
            answer_when_lost: measured.when_lost,
            heading: self
                .prompt(&task.context)
                .headings
                .best(probe.kind, &probe.question)
                .map(str::to_owned),
            stale_facts: measured.stale,
            fact_survival: measured.fact_survival,
            summary_survival,
            context_facts,
            is_constraint: probe.is_constraint(),
            fabricated: measured.asserted,
            invented: measured.unknown_names,
            context_tokens: context_tokens.map(|t| t.0),
            replaced_tokens: Some(replaced_tokens.0),
            compression_ratio: context_tokens
                .and_then(|tokens| compression_ratio(tokens, replaced_tokens)),
            fetch_tokens: measured
                .refetch
                .filter(|r| r.unlocated == 0)
                .map(|r| r.tokens.0),
            refetch_unlocated: measured.refetch.map_or(0, |r| r.unlocated),
            refetch_unguided: measured.refetch.is_some_and(|r| r.unguided),
            usd: costs_of(task, resolved),
            truncated: answer.truncated,
            open_book,
            answer: answer.text.to_string(),
        })
    }

    /// The grades of a cell.
    fn grades(
        &self,
        task: &JudgeTask,
        resolved: &Resolved,
    ) -> Result<Vec<CriterionScore>, OutputUnavailable> {
        match self
            .outputs
            .read(&Task::Judge(task.clone()), &resolved.key)?
        {
            Output::Grades(grades) => Ok(grades),
            _ => Err(OutputUnavailable::Gone(resolved.key)),
        }
    }

    fn measure_cell<'t>(
        &self,
        task: &'t JudgeTask,
        context: &LoadedContext,
        answer: &Answer,
        measures: &Measures,
    ) -> Result<CellMeasures<'t>, OutputUnavailable> {
        let (texts, point) = (&task.context.texts, task.cell.answer.compress.point);
        let probe = probe_of(texts, &task.cell.answer).map_err(crate::plan::Unreadable::from)?;
        let tail = self.pipeline.settings.tail;
        let measure = measures.probe(texts, point, task.cell.answer.probe, probe, tail);
        let present = context.folded().map(|folded| measure.presence(folded));
        let mut measured = measure.measure(
            measures.history(texts),
            present.as_deref(),
            |message| {
                context.points_to(message, || measures.distinctive_references(texts, message))
            },
            &answer.text,
        );
        self.mark_found(task, &measure, &mut measured.facts);
        let own = context.own_entries(&texts.loaded().fixture.messages);
        let readable = context.entries().zip(own).zip(context.folded());
        Ok(CellMeasures {
            probe,
            measured,
            summary_survival: context
                .folded_summary()
                .and_then(|summary| share(measure.presence(summary))),
            context_facts: readable
                .and_then(|((entries, own), text)| measure.in_context(entries, own, text)),
            open_book: self.open_book(task, &measure, present.as_deref()),
        })
    }

    /// Notes for each fact whether a search returned it, if the answerer could search.
    fn mark_found(&self, task: &JudgeTask, measure: &ProbeMeasure, facts: &mut [FactOutcome]) {
        if self.recovery(task).is_none() {
            return;
        }
        let found = measure.found_in(
            task.exchange
                .excerpts()
                .map(|excerpt| excerpt.text.as_str()),
        );
        for (fact, found) in facts.iter_mut().zip(found.into_iter().flatten()) {
            fact.found = Some(found);
        }
    }

    /// How the answerer may search, if it may.
    fn recovery(&self, task: &JudgeTask) -> Option<&Recovery> {
        let answerer = self.pipeline.answerer(task.cell.answer.answerer);
        answerer.recovery.as_ref()
    }

    /// What the answerer searched for, if it could search.
    fn open_book(
        &self,
        task: &JudgeTask,
        measure: &ProbeMeasure,
        present: Option<&[bool]>,
    ) -> Option<OpenBook> {
        let recovery = self.recovery(task)?;
        let (exchange, texts) = (&task.exchange, &task.context.texts);
        let searched = present.filter(|present| exchange.used() > 0 && present.contains(&false));
        let gold_found = searched.map(|present| {
            exchange.excerpts().any(|excerpt| {
                let messages = &texts.loaded().fixture.messages;
                let whole = messages.get(excerpt.message);
                let text = whole.map_or_else(|| excerpt.text.clone(), Message::countable_text);
                let found = measure.presence(&fold_document(&text));
                present
                    .iter()
                    .zip(found)
                    .any(|(present, found)| !present && found)
            })
        });
        Some(OpenBook {
            closed: recovery.closed.to_string(),
            steps: (exchange.rounds.iter())
                .map(|round| RowStep {
                    key: round.key,
                    usd: round.cost.map(|usd| usd.0),
                })
                .collect(),
            searches: exchange.rounds.iter().flat_map(searches_of).collect(),
            tokens: exchange
                .rounds
                .iter()
                .flat_map(|round| &round.returned)
                .map(|r| self.count_text(&r.text).0)
                .sum(),
            gold_found,
        })
    }

    /// The row of a context as a line without its end.
    pub(super) fn context_line(
        &self,
        context: &Rc<ResolvedContext>,
    ) -> Result<String, OutputUnavailable> {
        let place = context.cell.place(self.pipeline);
        let measures = self.measures(&context.texts);
        let row = self.context_row(context, &place, &measures)?;
        Ok(serde_json::to_string(&row)?)
    }

    fn context_row(
        &self,
        context: &Rc<ResolvedContext>,
        place: &CellCoordinate,
        measures: &Measures,
    ) -> Result<ContextRow, OutputUnavailable> {
        let (texts, point) = (&context.texts, context.cell.point);
        let loaded = self.outputs.context(context)?;
        let tokens = self.readable_tokens(context, &loaded);
        let strategy = &self.pipeline.method(context.cell.chain.method).strategy;
        let asks = strategy.model().is_some() && !strategy.is_deterministic();
        let reported = loaded
            .compressed
            .usage
            .and_then(|usage| u32::try_from(usage.calls?).ok());
        Ok(ContextRow {
            fixture: place.fixture.to_string(),
            point: place.point.0,
            method: place.method.to_string(),
            run: place.run,
            key: context.key,
            context: loaded
                .compressed
                .context
                .text()
                .map_or(context.reference.digest(), |text| Digest::hash(&*text)),
            tokens: tokens.map(|tokens| tokens.0),
            replaced_tokens: measures.replaced(texts, point).0,
            user_tokens: self
                .verbatim_user_tokens(&loaded.compressed.context)
                .map(|tokens| tokens.0),
            seconds: self
                .store
                .find(&context.key)
                .map(|record| record.summary.latency_ms as f64 / 1000.0),
            usd: context.cost.map(|usd| usd.0),
            calls: reported.unwrap_or(u32::from(asks)),
            compressed: !loaded.compressed.is_unchanged,
            fact_survival: self.fact_survival(measures, context, &loaded),
            invented: self.invented(measures, context, &loaded),
            guard: self.guarded(context, &loaded),
        })
    }

    /// The share of the expected facts that a context has, the mean over the probes asked at its point. It needs neither
    /// answers nor grades.
    fn fact_survival(
        &self,
        measures: &Measures,
        context: &ResolvedContext,
        loaded: &LoadedContext,
    ) -> Option<f64> {
        let (texts, point) = (&*context.texts, context.cell.point);
        let (folded, tail) = (loaded.folded()?, self.pipeline.settings.tail);
        let probes = texts.loaded().selected.get(point.0)?.iter();
        stats::mean_of(probes.filter_map(|ix| {
            let probe = texts.loaded().probe(*ix)?;
            measures
                .probe(texts, point, *ix, probe, tail)
                .survival(folded)
        }))
    }

    /// The size of the user's messages that a vendor keeps word for word; `None` if the context is not a vendor's.
    fn verbatim_user_tokens(&self, context: &Context) -> Option<Tokens> {
        Some(
            context
                .verbatim_user_texts()?
                .iter()
                .map(|text| self.count_text(text))
                .sum(),
        )
    }

    /// The rows of the items planted in the session of a context, as far as the context alone shows them.
    pub(super) fn planted_rows(
        &self,
        context: &Rc<ResolvedContext>,
    ) -> Result<Vec<PlantedRow>, OutputUnavailable> {
        let place = context.cell.place(self.pipeline);
        let Some(variant) = context.variant() else {
            return Ok(Vec::new());
        };
        let loaded = self.outputs.context(context)?;
        let rows = variant.targets.iter().map(|target| {
            let finder = target.rule.as_ref().map(RuleFinder::new);
            let content = finder.and_then(|finder| {
                let text = loaded.compressed.context.text()?;
                Some(finder.survival(&text, loaded.folded()?))
            });
            PlantedRow {
                fixture: place.fixture.to_string(),
                variant: variant.number,
                method: place.method.to_string(),
                run: place.run,
                point: place.point.0,
                key: context.key,
                compressed: !loaded.compressed.is_unchanged,
                item: target.item.to_string(),
                kind: target.kind,
                position: target.position,
                object: target.object.clone(),
                done: None,
                decoy_done: None,
                state: target.truth,
                said: None,
                decoy_said: None,
                handle: None,
                literal: content.map(|found| found.literal),
                near_literal: content.map(|found| found.near_literal),
            }
        });
        Ok(rows.collect())
    }

    /// The references of a context that the transcript before its point does not have; `None` if the transcript begins
    /// midway, or if only the provider can read the context.
    fn invented(
        &self,
        measures: &Measures,
        context: &ResolvedContext,
        loaded: &LoadedContext,
    ) -> Option<InventedReferences> {
        let (texts, point) = (&*context.texts, context.cell.point);
        let entries = loaded
            .entries()
            .filter(|_| !texts.loaded().fixture.begins_midway)?;
        let known = measures.known_references(texts, point);
        Some(known.invented_in(
            measures.history(texts),
            entries,
            &self.prompt(context).references,
        ))
    }

    /// What the guard finds in a context, the worst of each rule; `None` for the ends of the scale, if only the provider can
    /// read it, and where the two are no histories for the guard.
    fn guarded(
        &self,
        context: &ResolvedContext,
        loaded: &LoadedContext,
    ) -> Option<BTreeMap<String, Verdict>> {
        let Context::Readable { messages: after } = &loaded.compressed.context else {
            return None;
        };
        let method = self.pipeline.method(context.cell.chain.method);
        let is_end = matches!(
            method.strategy,
            Strategy::Rule(BuiltInStrategy::Full | BuiltInStrategy::None)
        );
        if is_end || loaded.compressed.is_unchanged {
            return None;
        }
        let fixture = &context.texts.loaded().fixture;
        let before = fixture
            .messages
            .get(..context.texts.end(context.cell.point))?;
        let prompt = &self.prompt(context).text;
        let options = Options {
            prompt: Some(prompt.clone()).filter(|prompt| !prompt.is_empty()),
            begins_midway: fixture.begins_midway,
            ..Options::default()
        };
        let mut found = BTreeMap::new();
        for finding in guard(before, after, &options).ok()?.findings {
            let worst = found
                .entry(finding.kind.to_owned())
                .or_insert(finding.severity);
            *worst = finding.severity.max(*worst);
        }
        Some(found)
    }

    /// What is read from the prompt of a context's method.
    fn prompt(&self, context: &ResolvedContext) -> Rc<PromptWords> {
        let mut prompts = self.prompts.borrow_mut();
        let words = prompts.entry(context.cell.chain.method).or_insert_with(|| {
            let prompt = prompt_of(self.pipeline, &context.task());
            let words = prompt.map(|prompt| PromptWords {
                headings: Headings::from_prompt(prompt.text),
                references: reference_keys(prompt.text),
                text: prompt.text.to_owned(),
            });
            Rc::new(words.unwrap_or_default())
        });
        words.clone()
    }

    /// The size of a context that can be read.
    fn readable_tokens(&self, context: &ResolvedContext, loaded: &LoadedContext) -> Option<Tokens> {
        let content = &loaded.compressed.context;
        let (reference, text) = context.reference.text().zip(content.text())?;
        Some(self.count_named(reference.digest(), || {
            match content {
                Context::Readable { messages } if messages.len() > 1 => messages
                    .iter()
                    .map(|message| self.count_text(&message.countable_text()))
                    .sum(),
                Context::Readable { .. } | Context::Bound { .. } => count_tokens(&text),
            }
        }))
    }

    /// The number of tokens that the provider counted in the prompt of the answer, minus our count of everything
    /// besides the context. It is a few tokens too high, because of the frames of messages. Unknown if the provider
    /// reported no number.
    fn reported_tokens(&self, task: &JudgeTask) -> Option<Tokens> {
        let prompt = self.store.find(&task.answer.key)?.summary.usage.input?;
        let Work::Ask(request) = Action::prepare(self.pipeline, &task.answer_task())
            .ok()?
            .work
        else {
            return None;
        };
        let others = request.turns.iter().map(|turn| match turn {
            RequestTurn::Text(_, text) => Some(self.count_text(&text.text(&|_| Err(())).ok()?)),
            RequestTurn::Messages(_) => Some(self.tail_tokens(task)),
            RequestTurn::Items(_) => Some(Tokens(0)),
            // If there were searches, the size of the context is unknown.
            RequestTurn::Reply(_) | RequestTurn::Results(_) => None,
        });
        let others: Tokens = others.sum::<Option<Tokens>>()?;
        prompt.0.checked_sub(others.0).map(Tokens)
    }

    fn tail_tokens(&self, task: &JudgeTask) -> Tokens {
        let texts = &task.context.texts;
        let end = texts.end(task.cell.answer.compress.point);
        self.measures(texts).tokens.iter().skip(end).copied().sum()
    }

    fn count_text(&self, text: &str) -> Tokens {
        self.count_named(Digest::hash(text), || count_tokens(text))
    }

    /// The number of tokens of the text with this digest; of a transcript, the sum over its messages. The cache keeps
    /// the counts, so that a run from the cache never loads the tokenizer.
    fn count_named(&self, digest: Digest, count: impl FnOnce() -> Tokens) -> Tokens {
        if let Some(known) = self.store.tokens_of(&digest) {
            return known;
        }
        let counted = count();
        keep_tokens(self.store, &digest, counted);
        counted
    }

    fn measures(&self, texts: &FixtureTexts) -> Rc<Measures> {
        let mut fixtures = self.fixtures.borrow_mut();
        let measures = match fixtures
            .iter()
            .position(|(fixture, _)| *fixture == texts.fixture())
        {
            Some(at) => fixtures.remove(at).1,
            None => {
                fixtures.truncate(FIXTURES_IN_MEMORY - 1);
                let messages = texts.loaded().fixture.messages.iter();
                let tokens = messages.map(|message| self.count_text(&message.countable_text()));
                Rc::new(Measures::new(tokens.collect()))
            }
        };
        fixtures.insert(0, (texts.fixture(), measures.clone()));
        measures
    }
}

fn keys_of(task: &JudgeTask, resolved: &Resolved) -> RowKeys {
    RowKeys {
        compress: task.context.key,
        answer: task.answer.key,
        judge: resolved.key,
    }
}

fn costs_of(task: &JudgeTask, resolved: &Resolved) -> RowCost {
    RowCost {
        compress: task.context.cost.map(|usd| usd.0),
        answer: task.answer.cost.map(|usd| usd.0),
        judge: resolved.cost.map(|usd| usd.0),
    }
}

fn searches_of(round: &Round) -> Vec<RowSearch> {
    let searches = round
        .request
        .asked
        .iter()
        .zip(&round.returned)
        .map(|(asked, returned)| RowSearch {
            query: match asked {
                Asked::Query(query) => query.to_string(),
                Asked::Misuse(_) => String::new(),
            },
            messages: returned
                .excerpts
                .iter()
                .map(|excerpt| excerpt.message)
                .collect(),
            returned: returned.text.to_string(),
        });
    searches.collect()
}
