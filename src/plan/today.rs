//! What the inputs of a place are made from today: its prompt, the rubric, the files behind them. Kept with an entry
//! as its sources, and held against the sources of an earlier one to say what has changed.

use crate::action::{Digest, Source, Sources};
use crate::compress::Strategy;
use crate::judge::{JudgeSpec, Rubric};
use crate::pipeline::{AnswerCell, FixtureIx, JudgeIx, LoadedFixture, Pipeline};

use super::frontier::Task;

/// The name of the prompt among the sources of an action.
const PROMPT: &str = "prompt";
/// The name of the rubric among the sources of a judgement.
const RUBRIC: &str = "rubric";

/// What the inputs of one place are made from today.
#[derive(Clone, Debug, Default)]
pub struct Today<'p> {
    /// The prompt; `None` where there is none.
    pub prompt: Option<Origin<'p>>,
    /// The rubric, of a judgement.
    pub rubric: Option<Origin<'p>>,
    /// The fixture's file.
    pub fixture: Option<&'p str>,
    /// The bank's file.
    pub bank: Option<&'p str>,
    /// The probe's id.
    pub probe: Option<&'p str>,
}

/// A text that inputs are made from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'p> {
    /// What it is: `prompt` or `rubric`.
    pub name: &'static str,
    /// Its path in the project; `None` of what is built in.
    pub path: Option<&'p str>,
    /// Its text.
    pub text: &'p str,
    /// Names its content.
    pub digest: Digest,
}

impl<'p> Today<'p> {
    /// What `task` is made from.
    pub fn of(pipeline: &'p Pipeline, task: &Task) -> Today<'p> {
        match task {
            Task::Compress(task) => Today {
                prompt: pipeline.methods.get(task.cell.chain.method.0).and_then(|m| Origin::of_strategy(&m.strategy)),
                fixture: fixture(pipeline, task.cell.chain.fixture).map(|f| f.path.as_str()),
                ..Today::default()
            },
            Task::Answer(task) => {
                let answerer = pipeline.answerers.get(task.cell.answerer.0);
                let prompt = answerer.map(|a| Origin::prompt(a.template.text(), a.prompt_path.as_deref()));
                Today { prompt, ..Today::asked(pipeline, &task.cell) }
            }
            Task::Judge(task) => {
                let Today { prompt, rubric, .. } = Today::of_judge(pipeline, task.cell.judge);
                Today { prompt, rubric, ..Today::asked(pipeline, &task.cell.answer) }
            }
        }
    }

    /// What a case of a judge's self-test is made from.
    pub fn of_judge(pipeline: &'p Pipeline, judge: JudgeIx) -> Today<'p> {
        let prompt = |spec: &'p JudgeSpec| Origin::prompt(spec.template.text(), spec.prompt_path.as_deref());
        let prompt = pipeline.judges.get(judge.0).map(prompt);
        Today { prompt, rubric: Some(Origin::rubric(pipeline)), ..Today::default() }
    }

    /// The files behind a question.
    fn asked(pipeline: &'p Pipeline, cell: &AnswerCell) -> Today<'p> {
        let Some(fixture) = fixture(pipeline, cell.compress.chain.fixture) else { return Today::default() };
        Today {
            fixture: Some(&fixture.path),
            bank: Some(&fixture.bank_path),
            probe: fixture.probe(cell.probe).map(|probe| &*probe.id.0),
            ..Today::default()
        }
    }

    /// The texts that have an origin, the prompt first.
    pub fn origins(&self) -> impl Iterator<Item = &Origin<'p>> {
        self.prompt.iter().chain(&self.rubric)
    }

    /// The same as an entry keeps it.
    pub fn sources(&self) -> Sources {
        let source = |origin: &Origin<'_>| Source { digest: origin.digest, path: origin.path.map(str::to_owned) };
        Sources(self.origins().map(|origin| (origin.name.into(), source(origin))).collect())
    }
}

impl<'p> Origin<'p> {
    /// A prompt with its file.
    pub fn prompt(text: &'p str, path: Option<&'p str>) -> Origin<'p> {
        Origin { name: PROMPT, path, text, digest: Digest::of(text) }
    }

    fn of_strategy(strategy: &'p Strategy) -> Option<Origin<'p>> {
        match strategy {
            Strategy::Prompted { template, prompt_path, .. }
            | Strategy::ProviderCompaction { template: Some(template), prompt_path, .. } => {
                Some(Origin::prompt(template.text(), prompt_path.as_deref()))
            }
            Strategy::ProviderCompaction { template: None, .. }
            | Strategy::Opaque { .. }
            | Strategy::Command(_)
            | Strategy::Rule(_) => None,
        }
    }

    fn rubric(pipeline: &'p Pipeline) -> Origin<'p> {
        let path = pipeline.rubric_path.as_deref();
        let file = path.and_then(|path| pipeline.sources.iter().find(|source| source.path == path));
        let text = file.map_or_else(|| Rubric::built_in_text(pipeline.settings.locale), |file| &*file.text);
        Origin { name: RUBRIC, path, text, digest: file.map_or_else(|| Digest::of(text), |file| file.digest) }
    }

    /// How people call it: its path, or that it is built in.
    pub fn shown(&self) -> String {
        shown(self.name, self.path)
    }
}

/// How people call a source: its path, or that it is built in.
pub fn shown(name: &str, path: Option<&str>) -> String {
    path.map_or_else(|| format!("built-in {name}"), str::to_owned)
}

fn fixture(pipeline: &Pipeline, ix: FixtureIx) -> Option<&LoadedFixture> {
    pipeline.fixtures.get(ix.0)
}

/// The prompts and the rubric in use, to be kept by their digests: what an entry was made from can then still be shown
/// when the file, or the program that had it built in, has changed.
pub fn origins(pipeline: &Pipeline) -> impl Iterator<Item = Origin<'_>> {
    let methods = pipeline.methods.iter().filter_map(|method| Origin::of_strategy(&method.strategy));
    let answerers = pipeline.answerers.iter().map(|a| Origin::prompt(a.template.text(), a.prompt_path.as_deref()));
    let judges = pipeline.judges.iter().map(|j| Origin::prompt(j.template.text(), j.prompt_path.as_deref()));
    methods.chain(answerers).chain(judges).chain([Origin::rubric(pipeline)])
}
