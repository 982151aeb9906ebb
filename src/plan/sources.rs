//! What actions are made from: prompts, the rubric, the files behind them. They are stored with an entry as its sources.

use crate::action::{Digest, Source, StageName, Template};
use crate::judge::Rubric;
use crate::pipeline::{AnswerCell, CompressCell, Pipeline};

use super::task::Task;

/// The name of the prompt among the sources of an action.
pub(super) const PROMPT: &str = "prompt";
/// The name of the rubric among the sources of a judgement.
pub(super) const RUBRIC: &str = "rubric";
/// The name of the file that messages are from.
pub(super) const FIXTURE: &str = "fixture";
/// What stands before the id of the probe in the name of its bank.
pub(super) const PROBE: &str = "probe ";

/// A text that inputs are made from.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'p> {
    /// What it is: `prompt` or `rubric`.
    name: &'static str,
    /// Its path in the project; `None` if it is built in.
    pub path: Option<&'p str>,
    pub text: &'p str,
    pub digest: Digest,
}

/// The prompt of a task, if it has one.
pub fn prompt_of<'p>(pipeline: &'p Pipeline, task: &Task) -> Option<SourceText<'p>> {
    Some(SourceText::prompt(match task {
        Task::Side(task) if task.stage == StageName::Probes => &pipeline.generator.template,
        Task::Side(task) if task.judged.is_none() => &pipeline.answerers.first()?.template,
        Task::Compress(_) => task.method(pipeline)?.strategy.template()?,
        Task::Answer(task) => &pipeline.answerer(task.cell.answerer).template,
        Task::Side(_) | Task::Selftest(_) | Task::Judge(_) => {
            &pipeline.judge(task.judge()?).template
        }
    }))
}

/// The sources of a task: its prompt, for a judge the rubric, the files of its session and of its question.
pub(super) fn sources_of(pipeline: &Pipeline, task: &Task) -> Vec<Source> {
    let prompt = prompt_of(pipeline, task);
    let rubric = task.judge().map(|_| SourceText::rubric(pipeline));
    let session = task.compression().map(|cell| session(pipeline, cell));
    let asked = match task {
        Task::Answer(task) => Some(task.cell),
        Task::Judge(task) => Some(task.cell.answer),
        _ => None,
    };
    let texts = prompt.iter().chain(&rubric).map(SourceText::source);
    texts
        .chain(session)
        .chain(asked.and_then(|cell| bank(pipeline, &cell)))
        .collect()
}

/// The file that the messages of a cell are from: that of the items, where it is the user's and they are planted.
fn session(pipeline: &Pipeline, cell: CompressCell) -> Source {
    let loaded = pipeline.fixture(cell.chain.fixture);
    let items = pipeline
        .planted
        .as_ref()
        .filter(|_| cell.chain.variant.is_some());
    let items = items.and_then(|planted| planted.path.as_deref());
    let items = items.and_then(|path| pipeline.sources.iter().find(|file| file.path == path));
    let (path, digest) = match items {
        Some(file) => (&file.path, file.digest),
        None => (&loaded.path, loaded.file),
    };
    Source {
        name: FIXTURE.into(),
        path: Some(path.clone()),
        digest,
    }
}

/// The bank of a question, named after the probe; `None` where the question is about planted items.
fn bank(pipeline: &Pipeline, cell: &AnswerCell) -> Option<Source> {
    let loaded = pipeline.fixture(cell.compress.chain.fixture);
    if cell.compress.chain.variant.is_some() {
        return None;
    }
    Some(Source {
        name: format!("{PROBE}{}", loaded.probe(cell.probe)?.id).into(),
        path: Some(loaded.bank_path.clone()),
        digest: loaded.bank_file,
    })
}

impl<'p> SourceText<'p> {
    fn prompt(template: &'p Template) -> SourceText<'p> {
        SourceText {
            name: PROMPT,
            path: template.path.as_deref(),
            text: template.text(),
            digest: Digest::hash(template.text()),
        }
    }

    fn rubric(pipeline: &'p Pipeline) -> SourceText<'p> {
        let path = pipeline.rubric_path.as_deref();
        let file = path.and_then(|path| pipeline.sources.iter().find(|source| source.path == path));
        let text = file.map_or_else(
            || Rubric::built_in_text(pipeline.settings.locale),
            |file| &*file.text,
        );
        SourceText {
            name: RUBRIC,
            path,
            text,
            digest: file.map_or_else(|| Digest::hash(text), |file| file.digest),
        }
    }

    /// The source as an entry keeps it.
    fn source(&self) -> Source {
        Source {
            name: self.name.into(),
            path: self.path.map(str::to_owned),
            digest: self.digest,
        }
    }
}

/// The prompts and the rubric in use, to be stored by their digests, so that what an entry was made from can still be
/// shown when the file, or the program that had it built in, has changed.
pub fn source_texts(pipeline: &Pipeline) -> impl Iterator<Item = SourceText<'_>> {
    let methods = pipeline.methods.iter();
    methods
        .filter_map(|method| method.strategy.template())
        .chain(pipeline.answerers.iter().map(|answerer| &answerer.template))
        .chain(pipeline.judges.iter().map(|judge| &judge.template))
        .map(SourceText::prompt)
        .chain([SourceText::rubric(pipeline)])
}
