//! The end of a run: what failed, the summary, and whether a comparison lets the run pass.

use serde_json::json;

use crate::cli::failure::Exit;
use crate::cli::format::{cost, duration, percent, with_fields};
use crate::cli::screen::print_failures;
use crate::cli::terminal::{Console, TextStyle, labelled, paint, typed_again};
use crate::report::{details, note_count, screen, styled_sections};
use crate::results::{
    Comparison, Manifest, Outcome, ResultsFolder, Summary, Unused, drifted_losses,
    measures_nothing, names, newly_failing, regressions, unconfirmed_losses, underpowered_methods,
};
use base::locale::Locale;
use base::say;
use base::text::shell_word;
use models::ModelRef;

/// Number of failure causes that are printed; the manifest lists every failure.
const SHOWN_CAUSES: usize = 8;

/// Prints the summary table, failures, cost, and the `next` command, if there is one. With `--quiet`, only the failures.
pub(super) fn print_summary(
    summary: &Summary,
    manifest: &Manifest,
    folder: &ResultsFolder,
    next: Option<&str>,
    all: bool,
    console: &Console,
) {
    let locale = manifest.locale();
    console.json(summary);
    if !console.is_quiet {
        print_results(summary, manifest, all, console);
    }
    match print_failures(&manifest.failures, SHOWN_CAUSES, console) {
        0 => {}
        other => {
            let file = folder.file(names::MANIFEST);
            console.eprint(&say!(
                locale,
                "… and {other} more in {}",
                "……其余 {other} 个见 {}",
                file.display()
            ));
        }
    }
    if console.is_quiet {
        return;
    }
    let savings = prompt_cache_line(manifest).filter(|_| all);
    let lines = savings
        .into_iter()
        .chain(unused_line(manifest))
        .chain(served_lines(summary, manifest));
    lines.for_each(|line| console.print(&line));
    let notes = note_count(summary, manifest);
    let counted = locale.count(notes, "note", "条说明");
    let where_all = locale.pick(" (--all)", "（--all）");
    let notes = if all || notes == 0 {
        String::new()
    } else {
        format!(" · {counted}{where_all}")
    };
    let label = paint(TextStyle::Strong, &manifest.label);
    console.print(&format!("{label} · {}{notes}", totals(manifest)));
    print_report_path(folder, locale, console);
    if let Some(next) = next {
        console.print(&console.next_line(locale, next));
    }
}

/// That other models answered than were asked: it casts doubt on the verdict, so it stands beside it.
fn served_lines(summary: &Summary, manifest: &Manifest) -> Vec<String> {
    let locale = manifest.locale();
    let own = manifest.models.iter().filter_map(|(asked, served)| {
        let model = ModelRef::parse(asked)?;
        let by = match served.len() {
            2.. => locale.pick("several models", "多个模型"),
            _ if served.iter().any(|name| model.is_other(name)) => {
                locale.pick("another model", "另一个模型")
            }
            _ => return None,
        };
        let names: Vec<String> = served.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(locale.pick(", ", "、"));
        Some(say!(
            locale,
            "`{asked}` was answered by {by}: {names}",
            "`{asked}` 由{by}回答：{names}"
        ))
    });
    let against = summary.comparison.iter();
    let against = against.flat_map(|comparison| comparison.served.iter().cloned());
    own.chain(against).collect()
}

/// Lines that follow the results on a screen: failures, totals, the report, the next command.
const LINES_AFTER: usize = 4;
/// Lines of a screen.
const SCREEN: usize = 24;

/// Prints results on one screen, or in every table.
pub(crate) fn print_results(summary: &Summary, manifest: &Manifest, all: bool, console: &Console) {
    let width = console.width();
    console.print(&screen(summary, manifest, width, SCREEN - LINES_AFTER));
    if !all {
        return;
    }
    let mut sections = details(summary, manifest);
    // The screen has named the worst questions.
    sections.retain(|section| section.id != "worst");
    console.print(&format!("\n{}", styled_sections(&sections, width)));
}

fn print_report_path(folder: &ResultsFolder, locale: Locale, console: &Console) {
    let page = folder.file(names::HTML);
    console.print(&labelled(
        TextStyle::Dim,
        locale.pick("report:", "报告："),
        page.display(),
    ));
}

/// Prints failures, cost, and the command that merges.
pub(super) fn print_part(manifest: &Manifest, folder: &ResultsFolder, console: &Console) {
    let (label, locale) = (&manifest.label, manifest.locale());
    let path = folder.path().display().to_string();
    let fields = json!({
        "label": label,
        "folder": path,
        "outcome": manifest.outcome,
        "requests_sent": manifest.requests_sent,
        "usd": manifest.usd,
        "wall_s": manifest.wall_s,
    });
    console.json(&with_fields(&manifest.part, fields));
    print_failures(&manifest.failures, SHOWN_CAUSES, console);
    if console.is_quiet || console.is_json {
        return;
    }
    unused_line(manifest)
        .into_iter()
        .for_each(|line| console.print(&line));
    let number = manifest.part.map(|part| part.to_string());
    let number = number.unwrap_or_default();
    console.print(&format!(
        "{} · {}",
        paint(TextStyle::Strong, &format!("{label} {number}")),
        totals(manifest)
    ));
    console.print(&labelled(
        TextStyle::Dim,
        locale.pick("part:", "分片："),
        path,
    ));
    let word = shell_word(label);
    let next = match manifest.outcome {
        Outcome::Complete => format!("compeval run --label {word} --remote URL --offline"),
        _ => same_command(None),
    };
    console.print(&console.next_line(locale, next));
}

/// This command as it was typed, with the label that was made up for it, without what kept it from asking, and without the
/// flag of the sample, whose place is named.
pub(super) fn same_command(label: Option<&str>) -> String {
    let mut words = typed_again(&["--offline", "--sample"]);
    words.extend(label.map(|label| format!("--label {label}")));
    format!("compeval {}", words.join(" "))
}

/// Cost, cached share, requests and duration.
fn totals(manifest: &Manifest) -> String {
    let locale = manifest.locale();
    let (cached, requests) = (percent(manifest.cached_share()), manifest.requests_sent);
    let cost = match manifest.usd {
        None => locale.pick(cost(None), "费用未知".to_owned()),
        known => cost(known),
    };
    let requests = locale.count(requests, "request", "次请求");
    let cached = say!(locale, "{cached} from the cache", "{cached} 来自缓存");
    let took = duration(manifest.wall_s);
    format!("{cost} · {cached} · {requests} · {took}")
}

/// The savings by providers' prompt caches, if any.
fn prompt_cache_line(manifest: &Manifest) -> Option<String> {
    let (cached, input) = (manifest.usage.cached_input?.0, manifest.usage.input?.0);
    let share = (cached > 0 && input > 0).then(|| cached as f64 / input as f64);
    Some(say!(
        manifest.locale(),
        "{share} of the input tokens came from providers' prompt caches, which saved {saved}.",
        "{share} 的输入词元来自服务商的提示词缓存，节省 {saved}。",
        share = percent(Some(share?)),
        saved = manifest.saved_by_prompt_cache
    ))
}

/// The cost of replies without a result.
fn unused_line(manifest: &Manifest) -> Option<String> {
    let Unused {
        replies,
        usd,
        unanswered,
        ..
    } = manifest.unused;
    let locale = manifest.locale();
    let cost = match usd {
        Some(usd) => say!(locale, " and cost {usd}", "，花费 {usd}"),
        None => locale.pick(", at unknown cost", "，费用未知").to_owned(),
    };
    let replies = (replies > 0).then(|| {
        say!(
            locale,
            "{} gave no result{cost}",
            "{}没有结果{cost}",
            locale.count(replies, "reply", "条回复")
        )
    });
    let were = if unanswered == 1 { "was" } else { "were" };
    let unanswered = (unanswered > 0).then(|| {
        say!(
            locale,
            "{} {were} never answered and may still be billed",
            "{}没有得到回复，是否计费不得而知",
            locale.count(unanswered, "request", "次请求")
        )
    });
    let text: Vec<String> = [replies, unanswered].into_iter().flatten().collect();
    (!text.is_empty()).then(|| {
        format!(
            "{}{}",
            text.join(locale.pick("; ", "；")),
            locale.pick(".", "。")
        )
    })
}

/// The verdict of the gate on the comparison: on what regressed, and on what fails anew, as far as it is asked for.
pub(super) fn gate(
    summary: &Summary,
    on_regression: bool,
    on_new_failures: bool,
    console: &Console,
) -> Exit {
    let Some(comparison) = &summary.comparison else {
        return Exit::Done;
    };
    let locale = comparison.locale;
    let is_worse = on_regression && reports_regressions(comparison, console);
    let fails_anew = on_new_failures && reports_new_failures(comparison, console);
    let is_decided = !on_regression || is_worse;
    let refusal = refusal(summary, comparison, is_decided);
    if let Some(why) = refusal.filter(|_| on_regression || on_new_failures) {
        console.error(locale.pick("gate refused:", "门禁无法判断："), why);
        return Exit::Error;
    }
    if is_worse || fails_anew {
        Exit::Regression
    } else {
        Exit::Done
    }
}

/// Why the gate cannot judge at all, or, unless that `is_decided`, cannot let the run pass although it found no regression.
fn refusal(summary: &Summary, comparison: &Comparison, is_decided: bool) -> Option<&'static str> {
    let locale = comparison.locale;
    if summary.scale.refuses_gate() {
        return Some(locale.pick(
            "full and none are graded under 1.0 apart, so no regression could be seen (the report names the cause)",
            "full 与 none 的得分相差不到 1.0，无法看出退步（报告说明原因）",
        ));
    }
    (!is_decided && measures_nothing(comparison)).then(|| {
        locale.pick(
            "answers changed and no dimension is left to compare, so no regression could be seen (the report says why)",
            "回答有变化，但没有可比较的维度，无法看出退步（报告说明原因）",
        )
    })
}

/// Prints what the gate cannot see and what regressed. Returns whether anything regressed.
fn reports_regressions(comparison: &Comparison, console: &Console) -> bool {
    let locale = comparison.locale;
    // What the gate cannot see, unless with `--quiet`.
    let gate = locale.pick("gate:", "门禁：");
    let note = |text: String| console.note(&console.labelled_prose(TextStyle::Warning, gate, text));
    for (method, mdd) in underpowered_methods(comparison) {
        note(match mdd {
            None => say!(
                locale,
                "{method}: no loss, however large, would be detected on these fixtures",
                "{method}：在这些样本上，再大的损失也无法测出"
            ),
            Some(mdd) => say!(
                locale,
                "{method}: only losses over {mdd:.2} points would be detected on these fixtures",
                "{method}：在这些样本上，只能测出大于 {mdd:.2} 分的损失"
            ),
        });
    }
    unconfirmed_losses(comparison).into_iter().for_each(note);
    for loss in drifted_losses(comparison) {
        note(say!(
            locale,
            "{loss}: the judge changed or may have, no verdict",
            "{loss}：评审已变化或可能已变化，没有结论"
        ));
    }
    let (worse, label) = (regressions(comparison), locale.pick("regressed:", "退步："));
    for regression in &worse {
        console.error(label, &regression.why);
    }
    !worse.is_empty()
}

/// Prints every chain that fails now and did not before. Returns whether there is one.
fn reports_new_failures(comparison: &Comparison, console: &Console) -> bool {
    let locale = comparison.locale;
    let label = locale.pick("newly failing:", "新的失败：");
    let mut is_any = false;
    for (method, chain) in newly_failing(comparison) {
        is_any = true;
        console.error(label, format!("{method} · {}", chain.words(locale)));
    }
    is_any
}
