//! Opens a project: validates the declared tables and returns the pipeline, or all problems.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use super::file::tables::{
    AnswerTable, CompressTable, Declared, GateTable, PipelineTable, PlantedTable, strategy_place,
};
use super::file::{Located, ReadToml, items as tables, value};
use super::fixtures::{Banks, FixtureChecks, FixtureLoader, fixture_files};
use super::methods;
use super::model::{AnswererIx, LoadedFixture, Pipeline, PipelineSettings, SourceFile, TailMode};
use super::paths::{self, declared_remote};
use super::problem::{Problem, Problems, Severity};
use super::providers::{Environment, Providers};
use super::select::{self, MatrixSelection, Overrides, is_wanted, report_unknown};
use super::settings::{self, Items};
use super::sources::SourceReader;
use super::stages;
use super::validation::{ValidationContext, inserts, missing_variable};
use crate::action::BuiltInStrategy;
use crate::answer::Answerer;
use crate::compress::{self, Method, MethodName, PromptPlacement, PromptStyle, Strategy};
use crate::judge::{JudgeSpec, draw_selftest};
use base::locale::Locale;

#[derive(Clone, Debug, Default)]
pub struct OpenRequest {
    /// The pipeline's file, absolute, as [`super::find_pipeline`] returns it.
    pub file: PathBuf,
    /// `--profile`
    pub profile: Option<String>,
    /// The part of the matrix to run.
    pub selection: MatrixSelection,
    /// Values from the command line that replace declared ones.
    pub overrides: Overrides,
    /// Whether a fact that the question gives away, or that the verbatim tail shows, is an error (`check`) and not a
    /// warning (`run`), and whether there is a warning of fixtures that are too large for people to review (`check`).
    pub strict: bool,
    /// `--allow-unproven`: a fact that occurs nowhere is a warning.
    pub allow_unproven: bool,
    /// `--stages compress`: nothing is answered and nothing graded, and fixtures need no banks. A pipeline without
    /// `[[answer]]` and `[[judge]]` is always opened so.
    pub compress_only: bool,
    /// `--planted`: only planted items are asked about, without banks and judges.
    pub planted: bool,
    /// What is needed of the banks.
    pub banks: Banks,
    /// Whether a key that is not set is an error. Otherwise [`Opened::missing_keys`] lists it.
    pub needs_keys: bool,
    /// How many processes share the providers' limits, this one included; `None` means this one alone.
    pub sharers: Option<NonZeroU32>,
}

/// A valid pipeline and its warnings.
#[derive(Clone, Debug)]
pub struct Opened {
    pub pipeline: Pipeline,
    /// Findings that do not stop the work.
    pub warnings: Problems,
    /// One warning for each unset variable that should contain a key for a selected stage.
    pub missing_keys: Problems,
}

/// Why a project cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// Something is wrong: all of it, warnings included. Exit code 2.
    #[error("{0}")]
    Problems(Problems),
    /// Nothing is wrong, and nothing is selected. Exit code 4.
    #[error("{0}")]
    Empty(Box<Problem>),
}

/// Reads and checks everything that `request` names.
pub fn open(request: &OpenRequest, environment: &Environment<'_>) -> Result<Opened, OpenError> {
    let mut problems = Problems::default();
    let read = paths::read_pipeline(&request.file, request.profile.as_deref(), &mut problems);
    let Some((reader, file, declared)) = read else {
        return Err(OpenError::Problems(problems));
    };
    let empty = BTreeMap::new();
    let tables = declared
        .providers
        .as_ref()
        .map_or(&empty, |providers| &providers.value);
    let mut providers = Providers::resolve(tables, &file, environment, &mut problems);
    if let Some(sharers) = request.sharers {
        providers.divide_limits(sharers, &mut problems);
    }
    let project = ProjectLoader {
        request,
        declared: &declared,
        file: &file,
        environment,
        providers: &providers,
    };
    project.open(reader, problems)
}

struct ProjectLoader<'a> {
    request: &'a OpenRequest,
    declared: &'a Declared,
    file: &'a SourceFile,
    environment: &'a Environment<'a>,
    providers: &'a Providers,
}

impl ProjectLoader<'_> {
    fn open(&self, mut reader: SourceReader, mut problems: Problems) -> Result<Opened, OpenError> {
        let [results, cache, probes] = paths::folders(
            self.declared,
            self.file,
            self.environment,
            reader.folder(),
            &mut problems,
        );
        let written = self.table().fixtures.as_ref();
        let fixture_files = fixture_files(&reader, self.file, written, &mut problems);
        let transcripts = transcript_sizes(&fixture_files, &reader);
        let mut context = ValidationContext {
            file: self.file,
            reader: &mut reader,
            providers: self.providers,
            environment: self.environment,
            locale: Locale::default(),
            main_model: self.table().model.as_ref(),
            overrides: &self.request.overrides,
            problems,
            missing_keys: BTreeMap::new(),
            outputs: vec![results.clone(), cache.clone()],
        };
        let checked = self.check(&mut context, [results, cache, probes], &transcripts);
        let (mut problems, missing_keys) = (context.problems, context.missing_keys);
        let loader = self.fixture_loader(&reader, &fixture_files, &mut problems);
        let (mut fixtures, without_bank) = loader.load(&self.request.selection);
        let (checked, items) = checked.unzip();
        let items = items.flatten();
        if let Some(pipeline) = &checked {
            problems.0.extend(missing_previous_summaries(
                &pipeline.methods,
                &fixtures,
                &mut reader,
            ));
        }
        if self.banks() == Banks::Needed {
            select::keep_probes(&mut fixtures, &self.request.selection, &mut problems);
        }
        if let Some(items) = &items {
            settings::plant_all(items, &mut fixtures, &mut problems);
        }
        let mut missing_keys = Problems(missing_keys.into_values().collect());
        if self.request.needs_keys {
            problems.0.append(&mut missing_keys.0);
        }
        missing_keys.0 = missing_keys
            .0
            .into_iter()
            .map(|problem| problem.with_severity(Severity::Warning))
            .collect();
        problems.sort_and_dedup();
        let Some(pipeline) = checked.filter(|_| problems.errors() == 0) else {
            return Err(OpenError::Problems(problems));
        };
        let has_cells = !fixtures.is_empty() && !pipeline.methods.is_empty();
        if !has_cells && self.request.banks == Banks::Needed {
            let empty = select::nothing_selected(&self.request.selection, &without_bank);
            return Err(OpenError::Empty(Box::new(empty)));
        }
        let pipeline = Pipeline {
            fixtures,
            sources: reader.into_sources(),
            ..pipeline
        };
        Ok(Opened {
            pipeline,
            warnings: problems,
            missing_keys,
        })
    }

    fn fixture_loader<'a>(
        &'a self,
        reader: &'a SourceReader,
        fixtures: &'a BTreeMap<String, String>,
        problems: &'a mut Problems,
    ) -> FixtureLoader<'a> {
        let table = self.table();
        let verbatim_tail = value(&table.tail) == Some(TailMode::Verbatim);
        let OpenRequest {
            strict,
            allow_unproven,
            ..
        } = *self.request;
        let banks = self.banks();
        let checks = FixtureChecks {
            strict,
            allow_unproven,
            verbatim_tail,
            banks,
        };
        FixtureLoader {
            reader,
            fixtures,
            probes: table.probes.as_ref(),
            checks,
            problems,
        }
    }

    /// The pipeline without fixtures and sources, and what is planted; `None` if the rubric or who writes probes has an
    /// error. All errors are in the problems.
    fn check(
        &self,
        context: &mut ValidationContext<'_>,
        [results, cache, probes]: [PathBuf; 3],
        transcripts: &[u64],
    ) -> Option<(Pipeline, Option<Items>)> {
        let declared = self.declared;
        let pipeline = self.table();
        let settings =
            settings::settings(context, pipeline, tables(&declared.compress), transcripts);
        context.locale = settings.locale;
        context.check_main_model();
        let rubric = settings::rubric(context, pipeline);
        let prices = settings::prices(context, declared.prices.as_ref());
        let items = settings::planted_items(
            context,
            PlantedTable::of(&declared.planted),
            GateTable::of(&declared.gate),
            settings.selftest.seed,
            [self.plants(), self.is_planted_alone()],
        );
        let remote = declared_remote(declared, context.file, &mut context.problems);
        self.require_stages(context);
        let (answerers, judges) = self.answerers_and_judges(context);
        let generator = stages::generator(context, &declared.probes);
        let (methods, method_answerers) = self.methods(context, &settings, &answerers);
        let ((rubric, rubric_path), generator) = rubric.zip(generator)?;
        let pipeline = Pipeline {
            folder: context.reader.folder().to_path_buf(),
            file: self.request.file.clone(),
            results,
            cache,
            probes,
            remote,
            selftest: Arc::new(draw_selftest(settings.locale, settings.selftest)),
            settings,
            methods,
            answerers,
            method_answerers,
            judges,
            generator,
            rubric,
            rubric_path,
            fixtures: Vec::new(),
            planted: items.as_ref().map(|items| items.design.clone()),
            prices,
            providers: self.providers.known.clone(),
            sources: Vec::new(),
            part: None,
        };
        Some((pipeline, items))
    }

    /// Reports the stages that are needed and not declared.
    fn require_stages(&self, context: &mut ValidationContext<'_>) {
        let declared = self.declared;
        let are_answers_needed = !self.is_compress_only() && self.request.banks != Banks::IfThere;
        let are_grades_needed = are_answers_needed && !self.is_planted_alone();
        let lacks_answer = are_answers_needed && tables(&declared.answer).is_empty();
        let lacks_judge = are_grades_needed && tables(&declared.judge).is_empty();
        let missing = [
            tables(&declared.compress).is_empty().then_some("compress"),
            lacks_answer.then_some("answer"),
            lacks_judge.then_some("judge"),
        ];
        for stage in missing.into_iter().flatten() {
            let problem =
                Problem::error(format!("{} declares no [[{stage}]] table", self.file.path));
            let help = "a pipeline has at least one [[compress]], and at least one [[answer]] and one [[judge]] or \
                        neither of the two";
            context.problems.push(problem.help(help));
        }
    }

    /// `[pipeline]`
    fn table(&self) -> &PipelineTable {
        PipelineTable::of(&self.declared.pipeline)
    }

    /// Whether contexts are all that is made.
    fn is_compress_only(&self) -> bool {
        self.request.compress_only
            || tables(&self.declared.answer).is_empty() && tables(&self.declared.judge).is_empty()
    }

    /// Whether items are planted.
    fn plants(&self) -> bool {
        let enabled = value(&PlantedTable::of(&self.declared.planted).enabled);
        self.request.banks == Banks::Needed && (self.request.planted || enabled == Some(true))
    }

    /// Whether planted items are all that is asked about: by `--planted`, and where nobody is declared to grade answers.
    fn is_planted_alone(&self) -> bool {
        let has_answerers = !tables(&self.declared.answer).is_empty();
        let is_without_judges = has_answerers && tables(&self.declared.judge).is_empty();
        self.plants() && (self.request.planted || is_without_judges && !self.request.compress_only)
    }

    fn banks(&self) -> Banks {
        match self.request.banks {
            Banks::Needed if self.is_compress_only() || self.is_planted_alone() => Banks::Unread,
            banks => banks,
        }
    }

    fn is_wanted(&self, table: &Located<CompressTable>) -> bool {
        let name = table.value.name.as_ref();
        name.is_none_or(|name| is_wanted(self.request.selection.methods.as_deref(), &name.value))
    }

    /// The answerers that selected methods use, and the judges; none if contexts are all that is made.
    fn answerers_and_judges(
        &self,
        context: &mut ValidationContext<'_>,
    ) -> (Vec<Answerer>, Vec<JudgeSpec>) {
        if self.is_compress_only() {
            return (Vec::new(), Vec::new());
        }
        let declared = self.declared;
        let answer = self.answerers_in_use(tables(&declared.answer));
        let answerers = stages::answerers(context, &answer);
        let judges = match self.is_planted_alone() {
            true => Vec::new(),
            false => stages::judges(context, tables(&declared.judge)),
        };
        (answerers, judges)
    }

    /// The answerer tables that a selected method uses. Others need no key.
    fn answerers_in_use(&self, answer: &[Located<AnswerTable>]) -> Vec<Located<AnswerTable>> {
        let in_use = answer.iter().filter(|table| {
            let name = table.value.name.as_ref();
            name.is_none_or(|name| self.is_answerer_in_use(&name.value))
        });
        in_use.cloned().collect()
    }

    fn is_answerer_in_use(&self, name: &str) -> bool {
        let mut wanted = tables(&self.declared.compress)
            .iter()
            .filter(|table| self.is_wanted(table));
        self.request.selection.methods.is_none()
            || wanted.any(|table| {
                let names = table.value.answerers.as_ref();
                names.is_none_or(|names| names.value.iter().any(|item| item.value == name))
            })
    }

    /// The methods selected, each with the answerers that read it.
    fn methods(
        &self,
        context: &mut ValidationContext<'_>,
        settings: &PipelineSettings,
        answerers: &[Answerer],
    ) -> (Vec<Method>, Vec<Vec<AnswererIx>>) {
        let all = tables(&self.declared.compress);
        let names: Vec<&str> = all.iter().filter_map(|table| table.value.name()).collect();
        report_unknown(
            "--methods",
            "method",
            self.request.selection.methods.as_deref(),
            &names,
            &mut context.problems,
        );
        let mut taken = BTreeMap::new();
        let (mut methods, mut method_answerers) = (Vec::new(), Vec::new());
        for table in all {
            let name = context.name(
                table.value.name.as_ref(),
                &table.place,
                "compress",
                &mut taken,
            );
            let Some(name) = name.filter(|_| self.is_wanted(table)) else {
                continue;
            };
            let Some(method) = methods::method(context, MethodName(name), table) else {
                continue;
            };
            if settings.judge_context
                && self.banks() == Banks::Needed
                && matches!(method.strategy, Strategy::Opaque { .. })
            {
                self.reject_opaque_with_judge_context(context, &method, table);
            }
            method_answerers.push(self.method_answerers(context, &method, table, answerers));
            methods.push(method);
        }
        (methods, method_answerers)
    }

    fn method_answerers(
        &self,
        context: &mut ValidationContext<'_>,
        method: &Method,
        table: &Located<CompressTable>,
        answerers: &[Answerer],
    ) -> Vec<AnswererIx> {
        let declared = tables(&self.declared.answer);
        let names = declared.iter().filter_map(|table| table.value.name());
        let names: Vec<&str> = names.collect();
        let place = strategy_place(table);
        let mut method_answerers = Vec::new();
        for name in methods::declared_answerers(context, &table.value, &names) {
            // A declared answerer that is missing here had errors, already reported.
            let found = answerers
                .iter()
                .enumerate()
                .find(|(_, answerer)| *answerer.name.0 == *name);
            if let Some((index, answerer)) = found {
                stages::check_answerer(context, method, place, answerer);
                method_answerers.push(AnswererIx(index));
            }
        }
        method_answerers.extend(open_book_answerers(method, &method_answerers, answerers));
        method_answerers
    }

    fn reject_opaque_with_judge_context(
        &self,
        context: &mut ValidationContext<'_>,
        method: &Method,
        table: &Located<CompressTable>,
    ) {
        let written = self.table().judge_context.as_ref();
        let place = written
            .map_or(strategy_place(table), |judge_context| &judge_context.key)
            .clone();
        let message = format!(
            "judge_context = true does not go with the opaque method `{}`",
            method.name
        );
        context.error(
            &place,
            message,
            "the judge cannot be shown an opaque context, and a missing context would reveal the method. With judge_context = \
             false under [pipeline] the judge sees no context of any method: every grade is computed again, the judge \
             can no longer check an answer against the context, and new grades do not compare with old ones. Or leave \
             the method out by --methods",
        );
    }
}

/// The sizes of all fixtures in tokens, roughly, by the sizes of their files.
fn transcript_sizes(files: &BTreeMap<String, String>, reader: &SourceReader) -> Vec<u64> {
    const BYTES_PER_TOKEN: u64 = 4;
    let sizes = files.values().filter_map(|path| reader.bytes(path));
    sizes.map(|bytes| bytes / BYTES_PER_TOKEN).collect()
}

/// Prompts that keep a summary over several points but do not insert the previous one: it would be lost at each point.
fn missing_previous_summaries(
    methods: &[Method],
    fixtures: &[LoadedFixture],
    reader: &mut SourceReader,
) -> Vec<Problem> {
    if fixtures.iter().all(|fixture| fixture.points.len() < 2) {
        return Vec::new();
    }
    let paths = methods.iter().filter_map(prompt_without_previous_summary);
    paths
        .filter_map(|path| Some(missing_variable(&reader.read(path).ok()?, PREVIOUS_SUMMARY)))
        .collect()
}

/// The path of a method's prompt that should insert the previous summary and does not.
fn prompt_without_previous_summary(method: &Method) -> Option<&str> {
    match &method.strategy {
        Strategy::Prompted {
            style: PromptStyle::Anchored,
            placement: PromptPlacement::Inline,
            template,
            ..
        } if !inserts(template, compress::VARIABLES, PREVIOUS_SUMMARY) => template.path.as_deref(),
        _ => None,
    }
}

/// The answerers that answer the same questions as `closed` with a search; none for `full`, whose context has
/// everything.
fn open_book_answerers(
    method: &Method,
    closed: &[AnswererIx],
    answerers: &[Answerer],
) -> Vec<AnswererIx> {
    if matches!(method.strategy, Strategy::Rule(BuiltInStrategy::Full)) {
        return Vec::new();
    }
    let names: Vec<&str> = closed
        .iter()
        .filter_map(|ix| Some(&*answerers.get(ix.0)?.name.0))
        .collect();
    let open = answerers.iter().enumerate().filter(|(_, answerer)| {
        answerer
            .recovery
            .as_ref()
            .is_some_and(|recovery| names.contains(&&*recovery.closed))
    });
    open.map(|(at, _)| AnswererIx(at)).collect()
}

/// The variable that carries a summary from one point to the next.
const PREVIOUS_SUMMARY: &str = "previous_summary";
