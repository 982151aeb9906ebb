//! What `show` and `why` print of a context: the references that the session needed later, kept and lost.

use std::fmt::Write as _;

use crate::cli::command_line::CommandLine;
use crate::cli::format::{cost, count, shell_word};
use crate::cli::terminal::{Column, Console, TextStyle, render_table};
use crate::measure::{NeedState, RecallCaveat};
use crate::results::{ContextReference, ContextRow};
use base::units::Usd;

/// Lost references that are listed of a judged cell; `show` without answers lists all.
const LISTED: usize = 12;

/// Contexts of a label without answers: one is printed whole, several as a table.
pub(crate) fn print_contexts(contexts: &[ContextRow], label: &str, command: &str, console: &Console) {
    console.report(&contexts, || match contexts {
        [one] => console.print(&context_page(one, label, console)),
        several => {
            console.print(&table(several, console));
            let recall = |row: &&ContextRow| row.needed.as_ref().and_then(|needed| needed.own.recall);
            let known = several.iter().filter(|row| recall(row).is_some());
            let Some(worst) = known.min_by(|a, b| recall(a).unwrap_or(1.0).total_cmp(&recall(b).unwrap_or(1.0))) else {
                return;
            };
            let [fixture, method] = [&worst.fixture, &worst.method].map(|name| shell_word(name));
            let place = format!("--method {method} --point {} --run {}", worst.point, worst.run);
            let next = CommandLine::current().of_results().command(&format!("{command} {fixture} {place}"));
            console.note("");
            console.next(format_args!("{next}   (the lowest recall of these)"));
        }
    });
}

fn table(contexts: &[ContextRow], console: &Console) -> String {
    let columns = [
        Column::Left("method"),
        Column::Right("point"),
        Column::Right("run"),
        Column::Right("needed later"),
        Column::Right("newest text"),
        Column::Right("tokens"),
    ];
    let row = |row: &ContextRow| {
        let needed = row.needed.as_ref();
        vec![
            row.method.clone(),
            row.point.to_string(),
            row.run.to_string(),
            share(needed.and_then(|needed| needed.own.recall)),
            share(needed.and_then(|needed| needed.truncate)),
            row.tokens.map_or_else(|| "–".to_owned(), |tokens| tokens.to_string()),
        ]
    };
    render_table(&columns, contexts.iter().map(row), console.width())
}

fn context_page(row: &ContextRow, label: &str, console: &Console) -> String {
    let ContextRow { fixture, point, method, run, replaced_tokens, .. } = row;
    let place = format!("{fixture} · point {point} · {method} · run {run}");
    let tokens = row.tokens.map_or_else(|| "an unknown number of tokens".to_owned(), |tokens| count(tokens, "token"));
    let took = row.seconds.map(|seconds| format!(" · {seconds:.1} s")).unwrap_or_default();
    let usd = cost(row.usd.map(Usd));
    let mut text = format!(
        "{}\n{}\n",
        console.paint(TextStyle::Strong, &place),
        console.paint(TextStyle::Dim, &format!("label {label} · {tokens} replace {replaced_tokens}{took} · {usd}"))
    );
    text.push_str(&needed_section(row, usize::MAX, console));
    text
}

/// The section on needed references; of the lost ones the first few. Empty where nothing was needed.
pub(crate) fn needed_of_cell(row: &ContextRow, console: &Console) -> String {
    needed_section(row, LISTED, console)
}

fn needed_section(row: &ContextRow, most: usize, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, "Needed later");
    let Some(needed) = &row.needed else {
        return format!("\n{heading}\n  (nothing: the session ends at this point, or uses nothing from before it)\n");
    };
    let own = &needed.own;
    let recall = match own.recall {
        Some(recall) => format!("recall {recall:.2}"),
        None => "no recall: under three messages need something".to_owned(),
    };
    let mut text = format!(
        "\n{heading}  {}\n",
        console.paint(
            TextStyle::Dim,
            &format!(
                "{recall} of {} in {}; the newest text of this size {}",
                count(own.count, "reference"),
                count(own.messages, "message"),
                share(needed.truncate)
            )
        )
    );
    if let Some(caveat) = own.caveat {
        let _ = writeln!(text, "  no verdict: {}", caveat_words(caveat));
    }
    let (kept, lost): (Vec<_>, Vec<_>) = row.references.iter().partition(|reference| reference.kept);
    let _ = writeln!(text, "  {} carried, {} fetched again", own.carried, own.fetched_again);
    list(&mut text, &console.paint(TextStyle::Bad, "lost"), &lost, most);
    if most == usize::MAX {
        list(&mut text, &console.paint(TextStyle::Good, "kept"), &kept, most);
    }
    text
}

fn list(text: &mut String, word: &str, references: &[&ContextReference], most: usize) {
    if references.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {word} ({}):", references.len());
    for reference in references.iter().take(most) {
        let how = match reference.state {
            NeedState::Carried => "",
            NeedState::FetchedAgain => ", fetched again",
        };
        let turns = count(reference.distance, "turn");
        let _ = writeln!(text, "    {}  (used after {turns}{how})", reference.text.replace('\n', " "));
    }
    if references.len() > most {
        let _ = writeln!(text, "    and {} more in contexts.jsonl", references.len() - most);
    }
}

fn caveat_words(caveat: RecallCaveat) -> &'static str {
    match caveat {
        RecallCaveat::Short => "there are fewer than 20,000 tokens before the point",
        RecallCaveat::AfterCompaction => "the session after the point was written from a compacted context",
        RecallCaveat::Cut => "tool results were cut before references were recorded; import the log again",
        RecallCaveat::FewMessages => "under three messages behind the point use anything from before it",
        RecallCaveat::NothingNeeded => "nothing behind the point uses anything from before it",
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"))
}
