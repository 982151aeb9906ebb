//! Gates: whether a comparison lets a run pass.

use super::args::{ComparisonArgs, RunArgs};
use crate::cli::failure::Exit;
use crate::cli::terminal::{Console, TextStyle};
use crate::results::{
    Comparison, Summary, drifted_losses, measures_nothing, newly_failing, regressions,
    truncated_losses, unconfirmed_losses, underpowered_methods,
};
use base::locale::localized;
use base::say;

/// The verdict of the gate on the comparison.
pub(super) fn gate(args: &RunArgs, summary: &Summary, console: &Console) -> Exit {
    let Some(comparison) = &summary.comparison else {
        return Exit::Done;
    };
    let is_worse = args.comparison.fail_on_regression && reports_regressions(comparison, console);
    let fails_anew =
        args.comparison.fail_on_new_failures && reports_new_failures(comparison, console);
    let refusals = refusals(args, summary, comparison, is_worse);
    refusals
        .iter()
        .for_each(|why| report(localized("gate refused:", "门禁无法判断："), why, console));
    if !refusals.is_empty() {
        return Exit::Error;
    }
    if is_worse || fails_anew {
        Exit::Regression
    } else {
        Exit::Done
    }
}

/// Why the gate cannot let the run pass although it found no regression, or cannot judge at all.
fn refusals(
    args: &RunArgs,
    summary: &Summary,
    comparison: &Comparison,
    is_worse: bool,
) -> Vec<String> {
    let ComparisonArgs {
        fail_on_regression,
        fail_on_new_failures,
        ..
    } = args.comparison;
    if (fail_on_regression || fail_on_new_failures) && summary.scale.refuses_gate() {
        let why = localized(
            "full and none are graded under 1.0 apart, so no regression could be seen (the report names the cause)",
            "full 与 none 的得分相差不到 1.0，无法看出退步（报告说明原因）",
        );
        return vec![why.to_owned()];
    }
    if !fail_on_regression || is_worse {
        return Vec::new();
    }
    if measures_nothing(comparison) {
        let why = localized(
            "answers changed and no dimension is left to compare, so no regression could be seen (the report says why)",
            "回答有变化，但没有可比较的维度，无法看出退步（报告说明原因）",
        );
        return vec![why.to_owned()];
    }
    truncated_losses(comparison)
}

/// Prints what the gate cannot see and what regressed. Returns whether anything regressed.
fn reports_regressions(comparison: &Comparison, console: &Console) -> bool {
    for (method, mdd) in underpowered_methods(comparison) {
        let seen = mdd.map_or_else(
            || {
                localized(
                    "no loss, however large, would be detected on these fixtures",
                    "在这些样本上，再大的损失也无法测出",
                )
                .to_owned()
            },
            |mdd| {
                say!(
                    "only losses over {mdd:.2} points would be detected on these fixtures",
                    "在这些样本上，只能测出大于 {mdd:.2} 分的损失"
                )
            },
        );
        note(&say!("{method}: {seen}", "{method}：{seen}"), console);
    }
    for loss in unconfirmed_losses(comparison) {
        note(&loss, console);
    }
    for loss in drifted_losses(comparison) {
        let why = localized("judge drift, no verdict", "评审漂移，没有结论");
        note(&say!("{loss}: {why}", "{loss}：{why}"), console);
    }
    let worse = regressions(comparison);
    for regression in &worse {
        report(localized("regressed:", "退步："), &regression.why, console);
    }
    !worse.is_empty()
}

/// Prints every chain that fails now and did not before. Returns whether there is one.
fn reports_new_failures(comparison: &Comparison, console: &Console) -> bool {
    let new: Vec<String> = newly_failing(comparison)
        .map(|(method, chain)| format!("{method} · {chain}"))
        .collect();
    for chain in &new {
        report(localized("newly failing:", "新的失败："), chain, console);
    }
    !new.is_empty()
}

/// Prints what the gate cannot see, unless with `--quiet`.
fn note(text: &str, console: &Console) {
    console.note(&console.labelled_prose(TextStyle::Warning, localized("gate:", "门禁："), text));
}

/// Prints why the gate does not let the run pass.
fn report(label: &str, why: &str, console: &Console) {
    console.eprint(&console.labelled_prose(TextStyle::Bad, label, why));
}
