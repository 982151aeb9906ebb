//! What the inputs of a place are currently made from: its prompt, the rubric, the files behind them. Stored with an
//! entry as its sources, and compared with the sources of an earlier one to say what has changed.

use crate::action::{Digest, SourceRef, Sources};
use crate::compress::Strategy;
use crate::judge::Rubric;
use crate::pipeline::{AnswerCell, CompressCell, JudgeIx, Pipeline};

use super::task::Task;

/// The name of the prompt among the sources of an action.
const PROMPT: &str = "prompt";
/// The name of the rubric among the sources of a judgement.
const RUBRIC: &str = "rubric";

/// What the inputs of one place are currently made from.
#[derive(Clone, Debug, Default)]
pub struct CurrentSources<'p> {
    /// The prompt; `None` where there is none.
    pub prompt: Option<SourceText<'p>>,
    /// The rubric, of a judgement.
    pub rubric: Option<SourceText<'p>>,
    pub fixture: Option<&'p str>,
    pub bank: Option<&'p str>,
    pub probe: Option<&'p str>,
}

/// A text that inputs are made from.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'p> {
    /// What it is: `prompt` or `rubric`.
    pub name: &'static str,
    /// Its path in the project; `None` if it is built in.
    pub path: Option<&'p str>,
    pub text: &'p str,
    pub digest: Digest,
}

impl<'p> CurrentSources<'p> {
    /// What `task` is made from.
    pub fn new(pipeline: &'p Pipeline, task: &Task) -> CurrentSources<'p> {
        match task {
            Task::Generate(task) => {
                let prompt = match task.probe {
                    Some(_) => pipeline
                        .answerers
                        .first()
                        .map(|asked| (&asked.template, &asked.prompt_path)),
                    None => pipeline
                        .generators
                        .first()
                        .map(|writer| (&writer.template, &writer.prompt_path)),
                };
                let prompt = prompt
                    .map(|(template, path)| SourceText::prompt(template.text(), path.as_deref()));
                CurrentSources {
                    prompt,
                    ..CurrentSources::default()
                }
            }
            Task::Selftest(task) => CurrentSources::from_judge(pipeline, task.judge),
            Task::Regrade(task) => CurrentSources::from_judge(pipeline, task.judge),
            Task::Compress(task) => CurrentSources {
                prompt: SourceText::from_strategy(
                    &pipeline.method(task.cell.chain.method).strategy,
                ),
                fixture: Some(source_of(pipeline, task.cell)),
                ..CurrentSources::default()
            },
            Task::Answer(task) => {
                let answerer = pipeline.answerer(task.cell.answerer);
                let prompt =
                    SourceText::prompt(answerer.template.text(), answerer.prompt_path.as_deref());
                CurrentSources {
                    prompt: Some(prompt),
                    ..CurrentSources::from_answer(pipeline, &task.cell)
                }
            }
            Task::Judge(task) => {
                let CurrentSources { prompt, rubric, .. } =
                    CurrentSources::from_judge(pipeline, task.cell.judge);
                CurrentSources {
                    prompt,
                    rubric,
                    ..CurrentSources::from_answer(pipeline, &task.cell.answer)
                }
            }
        }
    }

    /// What a judge's requests are made from.
    fn from_judge(pipeline: &'p Pipeline, judge: JudgeIx) -> CurrentSources<'p> {
        let spec = pipeline.judge(judge);
        let prompt = SourceText::prompt(spec.template.text(), spec.prompt_path.as_deref());
        CurrentSources {
            prompt: Some(prompt),
            rubric: Some(SourceText::rubric(pipeline)),
            ..CurrentSources::default()
        }
    }

    /// The files behind a question.
    fn from_answer(pipeline: &'p Pipeline, cell: &AnswerCell) -> CurrentSources<'p> {
        let fixture = pipeline.fixture(cell.compress.chain.fixture);
        let is_recorded = cell.compress.chain.variant.is_none();
        let probe = fixture.probe(cell.probe).filter(|_| is_recorded);
        CurrentSources {
            fixture: Some(source_of(pipeline, cell.compress)),
            bank: is_recorded.then_some(&*fixture.bank_path),
            probe: probe.map(|probe| &*probe.id.0),
            ..CurrentSources::default()
        }
    }

    /// The prompt and the rubric, if there are any.
    pub fn source_texts(&self) -> impl Iterator<Item = &SourceText<'p>> {
        self.prompt.iter().chain(&self.rubric)
    }

    /// The sources as an entry keeps them: only their digests and paths.
    pub fn sources(&self) -> Sources {
        let sources = self.source_texts().map(|text| {
            let source = SourceRef {
                digest: text.digest,
                path: text.path.map(str::to_owned),
            };
            (text.name.into(), source)
        });
        Sources(sources.collect())
    }
}

impl<'p> SourceText<'p> {
    /// A prompt with its file.
    fn prompt(text: &'p str, path: Option<&'p str>) -> SourceText<'p> {
        SourceText {
            name: PROMPT,
            path,
            text,
            digest: Digest::hash(text),
        }
    }

    fn from_strategy(strategy: &'p Strategy) -> Option<SourceText<'p>> {
        match strategy {
            Strategy::Prompted {
                template,
                prompt_path,
                ..
            }
            | Strategy::ProviderCompaction {
                template: Some(template),
                prompt_path,
                ..
            } => Some(SourceText::prompt(template.text(), prompt_path.as_deref())),
            Strategy::ProviderCompaction { template: None, .. }
            | Strategy::Opaque { .. }
            | Strategy::Command(_)
            | Strategy::Rule(_) => None,
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

    /// What people call it: its path, or that it is built in.
    pub fn label(&self) -> String {
        source_label(self.name, self.path)
    }
}

/// The file that the messages of a cell are from: that of the items, where it is the user's and they are planted.
fn source_of(pipeline: &Pipeline, cell: CompressCell) -> &str {
    let items = pipeline
        .planted
        .as_ref()
        .and_then(|planted| planted.path.as_deref());
    items
        .filter(|_| cell.chain.variant.is_some())
        .unwrap_or(&pipeline.fixture(cell.chain.fixture).path)
}

/// What people call a source: its path, or that it is built in.
pub fn source_label(name: &str, path: Option<&str>) -> String {
    path.map_or_else(|| format!("built-in {name}"), str::to_owned)
}

/// The prompts and the rubric in use, to be stored by their digests, so that what an entry was made from can still be
/// shown when the file, or the program that had it built in, has changed.
pub fn source_texts(pipeline: &Pipeline) -> impl Iterator<Item = SourceText<'_>> {
    let methods = pipeline
        .methods
        .iter()
        .filter_map(|method| SourceText::from_strategy(&method.strategy));
    let answerers = pipeline
        .answerers
        .iter()
        .map(|a| SourceText::prompt(a.template.text(), a.prompt_path.as_deref()));
    let judges = pipeline
        .judges
        .iter()
        .map(|j| SourceText::prompt(j.template.text(), j.prompt_path.as_deref()));
    let systems = pipeline.judges.iter().filter_map(|j| j.system.as_ref());
    let systems = systems.map(|(template, path)| SourceText::prompt(template.text(), Some(path)));
    methods
        .chain(answerers)
        .chain(judges)
        .chain(systems)
        .chain([SourceText::rubric(pipeline)])
}
