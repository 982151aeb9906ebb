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

use crate::action::{INSTRUCTIONS, Stage};

/// The reply in a stage. Values that are not given count as empty. What is read of them:
/// - a summary, from the variables of a compress prompt and [`INSTRUCTIONS`];
/// - an answer, from `context`, `question` and [`INSTRUCTIONS`];
/// - grades, from `request`; [`INSTRUCTIONS`] say in which language;
/// - probes, from `transcript`.
pub fn reply(stage: Stage, values: &BTreeMap<&str, Arc<str>>) -> String {
    let value = |name: &str| values.get(name).map_or("", |text| &**text);
    match stage {
        Stage::Compress => compress::compress(&compress::PromptValues {
            transcript: value("transcript"),
            previous_summary: value("previous_summary"),
            focus_topic: value("focus_topic"),
            target_tokens: value("target_tokens").trim().parse().ok(),
            instructions: value(INSTRUCTIONS),
        }),
        Stage::Answer => answer::answer(value("context"), value("question"), value(INSTRUCTIONS)),
        Stage::Judge => judge::judge(value("request"), value(INSTRUCTIONS)),
        Stage::Probes => propose::propose(value("transcript")),
    }
}
