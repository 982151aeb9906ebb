//! The generation of probes as actions: one question a point, and each probe asked without any context.

use super::prepare::{Action, PrepareError};
use super::texts::FixtureTexts;
use crate::action::{Digest, InputValue, Repetition, Stage, StageName};
use crate::answer::{self, AnswerInput, Exchange};
use crate::compress::ContextRef;
use crate::pipeline::{Generator, Pipeline, PointIx};
use crate::probe::{Probe, generation_work, probes_per_point};

/// The requests outside of the matrix.
#[derive(Clone, Debug)]
pub struct GenerationTask {
    pub fixture: String,
    /// The point's number, from 1.
    pub point: u32,
    /// The probe that is asked without a context; `None` where probes are written.
    pub probe: Option<String>,
    /// The prompt's text, and its file unless it is built in.
    pub prompt: (String, Option<String>),
    /// Replies that break the contract, before it is given up.
    pub attempts: u32,
    pub action: Action,
}

impl GenerationTask {
    /// The stage: probes are written, or one of them is answered.
    pub fn stage(&self) -> StageName {
        if self.probe.is_some() { StageName::Answer } else { StageName::Probes }
    }
}

/// Asks for probes about the span that `point` takes away.
pub fn generation(generator: &Generator, texts: &FixtureTexts, point: PointIx) -> Result<GenerationTask, PrepareError> {
    let wanted = probes_per_point(texts.loaded().points.len());
    let work = generation_work(&generator.model, &generator.template, texts.span(point).text, &wanted)?;
    Ok(GenerationTask {
        fixture: texts.loaded().name().to_owned(),
        point: point.number().0,
        probe: None,
        prompt: (generator.template.text().to_owned(), generator.prompt_path.clone()),
        attempts: generator.attempts,
        action: Action::new(Stage::Probes, Repetition::NONE, work),
    })
}

/// Asks the first answerer a probe without any context. The action is the one that the method `none` asks for in the first
/// run.
pub fn asking_without_context(
    pipeline: &Pipeline,
    fixture: &str,
    point: u32,
    probe: &Probe,
) -> Result<GenerationTask, PrepareError> {
    let answerer = pipeline.answerers.first().ok_or(PrepareError::Coordinate)?;
    let context = ContextRef::Readable { text: Digest::of("") };
    let (exchange, archive) = (&Exchange::default(), &InputValue::from("[]"));
    let input = AnswerInput { context: &context, tail: None, question: &probe.question, exchange, archive };
    let work = answer::prepare(answerer, &input)?;
    let repetition = Repetition { compress: Some(1), answer: Some(1), judge: None };
    Ok(GenerationTask {
        fixture: fixture.to_owned(),
        point,
        probe: Some(probe.id.to_string()),
        prompt: (answerer.template.text().to_owned(), answerer.prompt_path.clone()),
        attempts: 1,
        action: Action::new(Stage::Answer, repetition, work),
    })
}
