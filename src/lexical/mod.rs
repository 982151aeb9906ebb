//! The built-in stand-in for a model: rules that compress by extraction, answer by retrieval and judge by matching.
//!
//! It is given the very values that a model's prompt would hold, by the names of the template's variables, and nothing
//! else: no fixture, no bank, no method. Deterministic, without key or network, and labelled as what it is wherever
//! its results are shown.
//!
//! Deliberately absent: any knowledge of particular fixtures, and any way to what a model in its place would not see.

mod terms;
mod passages;
mod answer;
mod gather;
mod instructions;
mod compress;
mod propose;
mod demands;
mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::action::INSTRUCTIONS;

/// The stages in which the built-in model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LexicalStage {
    /// A summary (values: the variables of a compress prompt, and [`INSTRUCTIONS`]).
    Compress,
    /// An answer (values: `context`, `question`, and [`INSTRUCTIONS`]).
    Answer,
    /// Grades (value: `request`).
    Judge,
    /// Probes (value: `transcript`).
    Probes,
}

/// The reply in a stage. Values that are not given count as empty.
pub fn reply(stage: LexicalStage, values: &BTreeMap<&str, Arc<str>>) -> String {
    let value = |name: &str| values.get(name).map_or("", |text| &**text);
    match stage {
        LexicalStage::Compress => compress::compress(&compress::PromptValues {
            transcript: value("transcript"),
            previous_summary: value("previous_summary"),
            focus_topic: value("focus_topic"),
            target_tokens: value("target_tokens").trim().parse().ok(),
            instructions: value(INSTRUCTIONS),
        }),
        LexicalStage::Answer => answer::answer(value("context"), value("question"), value(INSTRUCTIONS)),
        LexicalStage::Judge => judge::judge(value("request")),
        LexicalStage::Probes => propose::propose(value("transcript")),
    }
}
