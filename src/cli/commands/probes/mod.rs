//! `compeval probes generate`: asks for probes about every span, proves them, asks each without a context, and writes the
//! banks.

mod report;

use std::sync::Arc;

use clap::{Args, Subcommand};

use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{
    RemoteArgs, open_project, open_request, open_store, print_notices, project_paths_of,
    require_fixtures,
};
use crate::cli::screen::Screen;
use crate::cli::terminal::Console;
use crate::evaluation::{
    EngineOptions, EvaluationError, Event, Listening, require_keys, require_prices, with_engine,
};
use crate::pipeline::{
    Banks, ExternalAccess, FixtureIx, Generator, MatrixSelection, OpenRequest, Overrides, Pipeline,
    PointIx, ProjectPaths, list,
};
use crate::plan::{FixtureTexts, Output, Task, asking_without_context, generation};
use crate::scheduler::{Budget, Executor, SchedulerOptions, StopRequest, run_tasks};
use base::files::write_whole;
use report::{BankDraft, GenerationReport};

#[derive(Debug, Subcommand)]
pub(crate) enum ProbesCommand {
    /// Generate a probe bank for each fixture
    #[command(
        after_help = "Examples:\n  compeval probes generate\n  compeval probes generate my-session --model openai/gpt-5.2 --max-cost 1"
    )]
    Generate(GenerateArgs),
}

pub(crate) fn run(
    common: &Common,
    command: &ProbesCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    match command {
        ProbesCommand::Generate(args) => generate(common, args, console),
    }
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Only these fixtures
    pub(crate) fixtures: Vec<String>,
    /// Use this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Replace existing banks; cached replies are reused
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

fn generate(common: &Common, args: &GenerateArgs, console: &Console) -> Result<Exit, Failure> {
    let GenerateArgs {
        fixtures,
        model,
        force,
        budget,
    } = args;
    let paths = project_paths_of(common)?;
    require_fixtures(&paths, fixtures)?;
    let wanted = choose_fixtures(&paths, fixtures, *force, console)?;
    let request = OpenRequest {
        selection: MatrixSelection {
            fixtures: Some(wanted),
            ..MatrixSelection::default()
        },
        overrides: Overrides {
            model: model.clone(),
            ..Overrides::default()
        },
        banks: Banks::Unread,
        ..open_request(common)?
    };
    let pipeline = open_project(&request, console)?;
    let generator = &pipeline.generator;
    let floor = pipeline.answerers.first().map(|answerer| &answerer.model);
    let models = [&generator.model].into_iter().chain(floor);
    require_keys(models.clone())?;
    let limits = budget.limits();
    require_prices(&limits, models, &pipeline)?;
    let store = open_store(&pipeline.cache, console)?;
    store.text(
        crate::action::Digest::hash(generator.template.text()),
        generator.template.text(),
    );
    let shared = RemoteArgs::default().connect(&pipeline.remote, console)?;
    let mut screen = Screen::new(console);
    let options = EngineOptions {
        budget: Arc::new(Budget::new(limits)),
        run: SchedulerOptions {
            allow_weak_judge: true,
            ..SchedulerOptions::default()
        },
        shared,
        access: (!console.is_quiet)
            .then(|| ExternalAccess::from_pipeline(&pipeline).with_generator(&pipeline)),
        stop: Some(screen.stop()),
        ..EngineOptions::default()
    };
    let mut interrupted = false;
    let mut show = |event: &Event<'_>| screen.on_event(event);
    let listening = Listening::new(&mut show);
    let mut banks = with_engine(
        &pipeline,
        &[],
        &store,
        &options,
        &listening,
        async |executor| {
            let work = Generation {
                executor,
                listening: &listening,
            };
            let drafts = work.draft_banks(generator).await;
            interrupted = *executor.stop.borrow() != StopRequest::No;
            drafts
        },
    )?;
    store.sync()?;
    print_notices(&store, console);
    let generator = generator.model.reference.to_string();
    write_banks(&paths, &mut banks)?;
    let report = GenerationReport {
        generator,
        totals: listening.totals().clone(),
        budget: &options.budget,
        interrupted,
        banks,
    };
    Ok(report::print(&report, console))
}

/// Writes the banks of those drafts that have one.
fn write_banks(paths: &ProjectPaths, drafts: &mut [BankDraft]) -> Result<(), Failure> {
    for draft in drafts {
        let path = paths.bank_of(&draft.fixture);
        draft.file = paths.shown(&path);
        draft.existed = path.symlink_metadata().is_ok();
        if let Some(text) = draft.bank_text()? {
            write_whole(&path, text)?;
        }
    }
    Ok(())
}

/// The fixtures to write banks for: those named, else all that have none. A bank that exists is replaced by force
/// alone.
fn choose_fixtures(
    paths: &ProjectPaths,
    named: &[String],
    force: bool,
    console: &Console,
) -> Result<Vec<String>, Failure> {
    let fixtures: Vec<&String> = if named.is_empty() {
        paths.files.keys().collect()
    } else {
        named.iter().collect()
    };
    if force {
        return Ok(fixtures.into_iter().cloned().collect());
    }
    let (taken, free): (Vec<&String>, Vec<&String>) = fixtures
        .into_iter()
        .partition(|name| paths.bank_of(name).symlink_metadata().is_ok());
    let names = list(taken.iter().map(|name| name.as_str()));
    let hint = "--force replaces banks that exist";
    match (named.is_empty(), taken.is_empty(), free.is_empty()) {
        (false, false, _) => {
            Err(Failure::input(format!("there is a bank already for {names}")).hinted(hint))
        }
        (true, true, true) => {
            let hint = "`compeval fixture import LOG…` makes fixtures from session logs";
            Err(Failure::input("there is no fixture to write probes for")
                .hinted(hint)
                .exiting(Exit::EmptySelection))
        }
        (true, false, true) => Err(Failure::input("every fixture has a bank")
            .hinted(hint)
            .exiting(Exit::EmptySelection)),
        _ => {
            if !taken.is_empty() {
                console.note(&format!("left as they are: the banks of {names}"));
            }
            Ok(free.into_iter().cloned().collect())
        }
    }
}

struct Generation<'w, 'e, 'l> {
    executor: &'w Executor<'e>,
    listening: &'w Listening<'l>,
}

impl Generation<'_, '_, '_> {
    /// One draft for each fixture: proposals of all points, then each probe without a context.
    async fn draft_banks(self, generator: &Generator) -> Result<Vec<BankDraft>, EvaluationError> {
        let pipeline: &Pipeline = self.executor.pipeline;
        let mut tasks = Vec::new();
        for (index, loaded) in pipeline.fixtures.iter().enumerate() {
            let texts = FixtureTexts::new(FixtureIx(index), loaded);
            for point in (0..loaded.points.len()).map(PointIx) {
                tasks.push(generation(generator, &texts, point)?);
            }
        }
        let mut outputs = self.ask(&tasks).await?.into_iter();
        let drafts = pipeline.fixtures.iter().map(|loaded| {
            BankDraft::new(loaded, outputs.by_ref().take(loaded.points.len()).collect())
        });
        let mut drafts: Vec<BankDraft> = drafts.collect();
        self.mark_guessable(&mut drafts).await?;
        Ok(drafts)
    }

    async fn mark_guessable(&self, drafts: &mut [BankDraft]) -> Result<(), EvaluationError> {
        let mut tasks = Vec::new();
        for draft in drafts.iter().filter(|draft| draft.is_whole()) {
            for probe in draft.probes() {
                let point = probe.point.map_or(1, |point| point.0);
                let task =
                    asking_without_context(self.executor.pipeline, &draft.fixture, point, probe);
                tasks.push(task?);
            }
        }
        let mut answers = self.ask(&tasks).await?.into_iter();
        for draft in drafts.iter_mut().filter(|draft| draft.is_whole()) {
            draft.mark_guessable(&mut answers);
        }
        Ok(())
    }

    async fn ask(&self, tasks: &[Task]) -> Result<Vec<Option<Output>>, EvaluationError> {
        for task in tasks {
            self.listening.report(&Event::Added {
                stage: task.stage(),
                cells: 1,
            });
        }
        let mut listener = self.listening;
        Ok(run_tasks(self.executor, tasks, &mut listener).await?)
    }
}
