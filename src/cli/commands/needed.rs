//! What `show` and `why` print of a context: the references that the session needed later, kept and lost.

use std::fmt::Write as _;

use crate::cli::command_line::CommandLine;
use crate::cli::format::{Noun, cost, count, or_dash};
use crate::cli::terminal::{Column, Console, TextStyle, render_table};
use crate::measure::{NeedState, RecallCaveat};
use crate::results::{ContextReference, ContextRow};
use base::locale::localized;
use base::say;
use base::text::shell_word;
use base::units::Usd;

/// The number of lost references that are listed for a judged cell; `show` without answers lists all.
const LISTED: usize = 12;

/// Prints contexts of a label without answers: one on a page of its own, several as a table.
pub(crate) fn print_contexts(
    contexts: &[ContextRow],
    label: &str,
    command: &str,
    console: &Console,
) {
    console.report(&contexts, || match contexts {
        [one] => console.print(&context_page(one, label, console)),
        several => {
            console.print(&table(several, console));
            let known = several
                .iter()
                .filter_map(|row| Some((row, recall_of(row)?)));
            let worst = known
                .min_by(|(_, a), (_, b)| a.total_cmp(b))
                .map(|(worst, _)| worst);
            let why = match worst {
                Some(_) => localized("the lowest recall of these", "其中召回最低"),
                None => localized("says why there is no recall", "说明为何没有召回"),
            };
            if let Some(row) = worst.or(several.first()) {
                let [fixture, method] = [&row.fixture, &row.method].map(|name| shell_word(name));
                let place = format!("--method {method} --point {} --run {}", row.point, row.run);
                let next = CommandLine::current()
                    .of_results()
                    .command(&format!("{command} {fixture} {place}"));
                console.note("");
                console.next(say!("{next}   ({why})", "{next}   （{why}）"));
            }
        }
    });
}

fn recall_of(row: &ContextRow) -> Option<f64> {
    row.needed.as_ref()?.own.recall
}

fn table(contexts: &[ContextRow], console: &Console) -> String {
    let columns = [
        Column::Left(localized("method", "方法")),
        Column::Right(localized("point", "压缩点")),
        Column::Right(localized("run", "运行")),
        Column::Right(localized("needed later", "后续所需")),
        Column::Right(localized("newest text", "最新文本")),
        Column::Right(localized("tokens", "词元")),
    ];
    let rows = contexts.iter().map(|row| {
        vec![
            row.method.clone(),
            row.point.to_string(),
            row.run.to_string(),
            share(recall_of(row)),
            share(row.needed.as_ref().and_then(|needed| needed.truncate)),
            or_dash(row.tokens),
        ]
    });
    render_table(&columns, rows, console.width())
}

fn context_page(row: &ContextRow, label: &str, console: &Console) -> String {
    let ContextRow {
        fixture,
        point,
        method,
        run,
        replaced_tokens,
        ..
    } = row;
    let place = say!(
        "{fixture} · point {point} · {method} · run {run}",
        "{fixture} · 压缩点 {point} · {method} · 第 {run} 次"
    );
    let tokens = row.tokens.map_or_else(
        || localized("an unknown number of tokens", "未知数量的词元").to_owned(),
        |tokens| count(tokens, Noun::Token),
    );
    let took = row
        .seconds
        .map(|seconds| format!(" · {seconds:.1} s"))
        .unwrap_or_default();
    let usd = cost(row.usd.map(Usd));
    let mut text = format!(
        "{}\n{}\n",
        console.paint(TextStyle::Strong, &place),
        console.paint(
            TextStyle::Dim,
            &say!(
                "label {label} · {tokens} replace {replaced_tokens}{took} · {usd}",
                "标签 {label} · {tokens} 替换 {replaced_tokens}{took} · {usd}"
            )
        )
    );
    text.push_str(&needed_section(row, usize::MAX, console));
    text
}

/// The section on needed references; of the lost ones the first few. Empty where nothing was needed.
pub(crate) fn needed_of_cell(row: &ContextRow, console: &Console) -> String {
    needed_section(row, LISTED, console)
}

fn needed_section(row: &ContextRow, most: usize, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, localized("Needed later", "后续所需"));
    let Some(needed) = &row.needed else {
        return say!(
            "\n{heading}\n  (nothing: the session ends at this point, or uses nothing from before it)\n",
            "\n{heading}\n  （无：会话在此结束，或之后未用到此前内容）\n"
        );
    };
    let summary = &needed.own;
    let recall = match summary.recall {
        Some(recall) => say!("recall {recall:.2}", "召回 {recall:.2}"),
        None => localized(
            "no recall: under three messages need something",
            "无召回：用到内容的消息不足三条",
        )
        .to_owned(),
    };
    let mut text = format!(
        "\n{heading}  {}\n",
        console.paint(
            TextStyle::Dim,
            &say!(
                "{recall} of {} in {}; the newest text of this size {}",
                "{recall}：{}，{}；同样大小的最新文本 {}",
                count(summary.count, Noun::Reference),
                count(summary.messages, Noun::Message),
                share(needed.truncate)
            )
        )
    );
    if let Some(caveat) = summary.caveat {
        let _ = writeln!(
            text,
            "{}",
            say!("  no verdict: {}", "  不下结论：{}", caveat_words(caveat))
        );
    }
    let (kept, lost): (Vec<_>, Vec<_>) =
        row.references.iter().partition(|reference| reference.kept);
    let _ = writeln!(
        text,
        "{}",
        say!(
            "  {} carried, {} fetched again",
            "  {} 沿用，{} 重新取得",
            summary.carried,
            summary.fetched_again
        )
    );
    list(
        &mut text,
        &console.paint(TextStyle::Bad, localized("lost", "丢失")),
        &lost,
        most,
    );
    if most == usize::MAX {
        list(
            &mut text,
            &console.paint(TextStyle::Good, localized("kept", "保留")),
            &kept,
            most,
        );
    }
    text
}

fn list(text: &mut String, heading: &str, references: &[&ContextReference], most: usize) {
    if references.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {heading} ({}):", references.len());
    for reference in references.iter().take(most) {
        let how = match reference.state {
            NeedState::Carried => "",
            NeedState::FetchedAgain => localized(", fetched again", "，重新取得"),
        };
        let turns = count(reference.distance, Noun::Turn);
        let _ = writeln!(
            text,
            "{}",
            say!(
                "    {}  (used after {turns}{how})",
                "    {}  （{turns} 后用到{how}）",
                reference.text.replace('\n', " ")
            )
        );
    }
    if references.len() > most {
        let _ = writeln!(
            text,
            "{}",
            say!(
                "    and {} more in contexts.jsonl",
                "    其余 {} 处见 contexts.jsonl",
                references.len() - most
            )
        );
    }
}

fn caveat_words(caveat: RecallCaveat) -> &'static str {
    match caveat {
        RecallCaveat::Short => localized(
            "there are fewer than 20,000 tokens before the point",
            "压缩点之前不足 20,000 词元",
        ),
        RecallCaveat::AfterCompaction => localized(
            "the session after the point was written from a compacted context",
            "压缩点之后的会话由压缩过的上下文写成",
        ),
        RecallCaveat::Cut => localized(
            "tool results were cut before references were recorded; import the log again",
            "工具结果在记录引用之前已被截断；请重新导入日志",
        ),
        RecallCaveat::FewMessages => localized(
            "under three messages behind the point use anything from before it",
            "之后用到此前内容的消息不足三条",
        ),
        RecallCaveat::NothingNeeded => localized(
            "nothing behind the point uses anything from before it",
            "之后没有用到此前内容",
        ),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"))
}
