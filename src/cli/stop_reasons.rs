//! Why a run ended early, and what waits for a later one.

use std::collections::BTreeMap;

use crate::cli::format::count;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::Ended;
use crate::scheduler::{OpenBatchNote, RunOutcome, UntestedJudge};

/// Prints why a run ended early, if it did, and what waits for a later run.
pub(crate) fn print_stop_reasons(ended: &Ended, console: &Console) {
    let Ended { run, weaknesses, allow_weak_judge, .. } = ended;
    let say = |what: &str| console.warn("stopped:", what);
    for UntestedJudge { judge, why } in &run.untested {
        let grades = if *allow_weak_judge { "its grades may be meaningless" } else { "it was not used" };
        say(&format!("the self-test of judge {judge} did not complete, so {grades}: {why}"));
    }
    if !run.unaccounted.is_empty() {
        say(&format!(
            "only {} were accounted for; this is a bug in compeval, please report it",
            run.unaccounted.join(", ")
        ));
    }
    if let Some(reached) = run.budget {
        say(&format!("{reached}; run again with a larger budget to continue"));
    }
    if !run.weak_judges.is_empty() {
        print_weak_judges(&run.weak_judges, weaknesses, *allow_weak_judge, console);
    }
    if let Some(broken) = &run.broken {
        say(broken);
    }
    if run.interrupted {
        say("interrupted; finished work is saved, and the next run continues from there");
    }
    print_waiting(run, console);
}

/// Prints which requests wait for a later run.
fn print_waiting(ended: &RunOutcome, console: &Console) {
    if !ended.batches.is_empty() {
        print_batches(&ended.batches, console);
    }
}

/// Prints which batches are open, and how far they are.
fn print_batches(batches: &[OpenBatchNote], console: &Console) {
    let requests: usize = batches.iter().map(|batch| batch.lines).sum();
    let (batches_are, requests) = (
        match batches.len() {
            1 => "1 open batch".to_owned(),
            many => format!("{many} open batches"),
        },
        count(requests, "request"),
    );
    let text = format!("{batches_are} with {requests}; run again later, or with --wait (`compeval batch ls`)");
    console.warn("waiting:", text);
    for OpenBatchNote { nonce, lines, note, .. } in batches {
        console.eprint(&format!("  {nonce}  {}: {note}", count(*lines, "request")));
    }
}

/// Prints which judges failed their self-test, and in which checks.
fn print_weak_judges(
    judges: &[String],
    weaknesses: &BTreeMap<String, Vec<String>>,
    is_allowed: bool,
    console: &Console,
) {
    let names = judges.join(", ");
    let text = format!("judge failed its self-test: {names} (`compeval judge selftest` shows how)");
    let (mark, then) = match is_allowed {
        true => ("warning:", "its grades may be meaningless"),
        false => ("stopped:", "--allow-weak-judge continues anyway"),
    };
    console.eprint(&format!("{} {text}; {then}", console.paint(TextStyle::Warning, mark)));
    for judge in judges {
        for weakness in weaknesses.get(judge).into_iter().flatten() {
            console.eprint(&format!("  {judge}: {weakness}"));
        }
    }
}
