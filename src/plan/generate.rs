//! The generation of probes as tasks: one question a point, and each probe asked without any context.

use std::rc::Rc;

use super::prepare::PrepareError;
use super::task::{GenerationTask, Task};
use super::texts::FixtureTexts;
use crate::action::{Digest, InputValue};
use crate::answer::{self, AnswerInput, Exchange};
use crate::compress::ContextRef;
use crate::pipeline::{Generator, Pipeline, PointIx};
use crate::probe::{Probe, generation_work, probes_per_point};

/// Asks for probes about the span that `point` takes away.
pub fn generation(generator: &Generator, texts: &FixtureTexts, point: PointIx) -> Result<Task, PrepareError> {
    let wanted = probes_per_point(texts.loaded().points.len());
    let work = generation_work(&generator.model, &generator.template, texts.span(point).text, &wanted)?;
    let (fixture, point) = (texts.loaded().name().to_owned(), point.number().0);
    Ok(Task::Generate(Rc::new(GenerationTask { fixture, point, probe: None, work })))
}

/// Asks the first answerer a probe without any context. The action is the one that the method `none` asks for in the first
/// run.
pub fn asking_without_context(
    pipeline: &Pipeline,
    fixture: &str,
    point: u32,
    probe: &Probe,
) -> Result<Task, PrepareError> {
    let answerer = pipeline.answerers.first().ok_or(PrepareError::Coordinate)?;
    let context = ContextRef::Readable { text: Digest::hash("") };
    let (exchange, archive) = (&Exchange::default(), &InputValue::from("[]"));
    let input = AnswerInput { context: &context, tail: None, question: &probe.question, exchange, archive };
    let work = answer::prepare(answerer, &input)?;
    let (fixture, probe) = (fixture.to_owned(), Some(probe.id.to_string()));
    Ok(Task::Generate(Rc::new(GenerationTask { fixture, point, probe, work })))
}
