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

use crate::action::{INSTRUCTIONS, SEARCHES_LEFT, Stage};

/// The reply in a stage. Values that are not given count as empty. What is read of them:
/// - a summary, from the variables of a compress prompt and [`INSTRUCTIONS`];
/// - an answer, or a search for one, from `context`, `question`, [`INSTRUCTIONS`] and [`SEARCHES_LEFT`];
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
        Stage::Answer => {
            let (context, question) = (value("context"), value("question"));
            let may_search = value(SEARCHES_LEFT).parse().is_ok_and(|left: u32| left > 0);
            let search = may_search.then(|| answer::search(context, question)).flatten();
            search.unwrap_or_else(|| answer::answer(context, question, value(INSTRUCTIONS)))
        }
        Stage::Judge => judge::judge(value("request"), value(INSTRUCTIONS)),
        Stage::Probes => propose::propose(value("transcript")),
    }
}
