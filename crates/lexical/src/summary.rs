//! Compression by extraction: sentences that say something exact, under the headings that the prompt asks for.

use super::gather::{Entry, Kind, gather};
use super::instructions::{PromptSection, kinds_of, sections};
use super::passages::read_transcript;
use super::terms::terms;
use crate::notes::allocate;
use sessions::transcript::{Message, Role, count_tokens, estimate_tokens};

/// The values of a compress prompt.
pub struct SummaryPrompt<'a> {
    /// The rendered messages; a former summary may come first as the assistant's message.
    pub transcript: &'a str,
    /// The summary that the new one replaces; empty if there is none.
    pub previous_summary: &'a str,
    /// What the work goes on with.
    pub focus_topic: &'a str,
    /// The size to keep to, in tokens.
    pub target_tokens: Option<u64>,
    /// The prompt as its author wrote it, without values.
    pub instructions: &'a str,
}

/// The size of a summary for which the method names none, in tokens.
const SIZE: u64 = 1500;
/// The share of the size for a heading whose words name no kind.
const OTHER: f64 = 0.1;
/// The share of the size that is reserved for the headings, however many there are.
const HEADINGS: f64 = 0.04;
/// Writes the summary that the prompt asks for. Each kind of content has the room that it would have if the prompt asked for
/// all kinds. So removing a heading loses its content and gives the others no room.
pub fn summarize(given: &SummaryPrompt<'_>) -> String {
    let sections = sections(given.instructions);
    let limit = given.target_tokens.unwrap_or(SIZE);
    let mut span = read_transcript(given.transcript)
        .unwrap_or_else(|| vec![Message::text(Role::User, given.transcript)]);
    let mut entries = former_entries(given.previous_summary, 0);
    entries.extend(former_entries(&take_summary(&mut span), entries.len()));
    gather(&span, given.focus_topic, &mut entries);
    // Room is allocated by estimate. A summary that comes out too large shrinks everywhere alike, and by as much as if the
    // prompt asked for every kind of content: otherwise removing a heading would give its room to the others.
    let everything = [PromptSection {
        heading: "Everything".to_owned(),
        kinds: Kind::ALL.to_vec(),
    }];
    let mut room = limit as f64;
    for sections in [&everything[..], &sections] {
        while room > limit as f64 / 10.0 && count_tokens(&write(sections, &entries, room)).0 > limit
        {
            room *= 0.95;
        }
    }
    write(&sections, &entries, room)
}

/// Takes a former summary out of the span: its first message, if the assistant wrote it with headings.
fn take_summary(span: &mut Vec<Message>) -> String {
    match span.first() {
        Some(first)
            if first.role == Role::Assistant && first.content.trim_start().starts_with("## ") =>
        {
            span.remove(0).content
        }
        _ => String::new(),
    }
}

/// The entries of a former summary, with the kind of the heading they are under; `first` is the order of the first.
fn former_entries(summary: &str, first: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for line in summary.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            kinds = kinds_of(heading);
            continue;
        }
        let text = line.trim().trim_start_matches("- ").trim();
        if !text.is_empty() && !is_none_mark(text) {
            entries.push(Entry::from_summary(
                Kind::labelled(text, &kinds),
                text,
                first + entries.len(),
            ));
        }
    }
    entries
}

fn is_none_mark(text: &str) -> bool {
    matches!(text, "(none)" | "（无）")
}

fn write(sections: &[PromptSection], entries: &[Entry], limit: f64) -> String {
    let limit = limit * (1.0 - HEADINGS);
    let rooms = token_budgets(entries, limit);
    let wanted: Vec<Kind> = sections
        .iter()
        .flat_map(|section| section.kinds.iter().copied())
        .collect();
    let mut text = String::new();
    for PromptSection { heading, kinds } in sections {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&format!("## {heading}\n"));
        let mut lines = 0;
        for kind in kinds {
            let room = rooms
                .iter()
                .find(|(other, _)| other == kind)
                .map_or(0.0, |(_, room)| *room);
            let chosen = best_within(entries.iter().filter(|entry| entry.kind == *kind), room);
            lines += chosen.len();
            chosen
                .iter()
                .for_each(|entry| text.push_str(&entry.line(kinds.len() > 1)));
        }
        if kinds.is_empty() {
            let asked = terms(heading);
            let others = entries.iter().filter(|entry| !wanted.contains(&entry.kind));
            let related =
                others.filter(|entry| terms(&entry.text).iter().any(|term| asked.contains(term)));
            let chosen = best_within(related, limit * OTHER);
            lines += chosen.len();
            chosen
                .iter()
                .for_each(|entry| text.push_str(&entry.line(false)));
        }
        if lines == 0 {
            text.push_str(if heading.is_ascii() {
                "(none)\n"
            } else {
                "（无）\n"
            });
        }
    }
    text.trim_end().to_owned()
}

fn size(entry: &Entry) -> f64 {
    estimate_tokens(&entry.text).0 as f64 + 2.0
}

/// The tokens that each kind may take, whether or not the prompt asks for it.
fn token_budgets(entries: &[Entry], limit: f64) -> Vec<(Kind, f64)> {
    let wants = Kind::ALL.map(|kind| {
        let need: f64 = entries
            .iter()
            .filter(|entry| entry.kind == kind)
            .map(size)
            .sum();
        (kind.share(), need)
    });
    Kind::ALL.into_iter().zip(allocate(&wants, limit)).collect()
}

/// The entries with the highest scores that fit into `room` tokens, in their order.
fn best_within<'e>(entries: impl Iterator<Item = &'e Entry>, room: f64) -> Vec<&'e Entry> {
    let mut ranked: Vec<&Entry> = entries.collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.order.cmp(&a.order)));
    let mut left = room;
    let mut chosen = Vec::new();
    for entry in ranked {
        if size(entry) <= left + 1e-6 {
            left -= size(entry);
            chosen.push(entry);
        }
    }
    chosen.sort_by_key(|entry| entry.order);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPAN: &str = "[user]\nFix the retry. Never change port 8081.\n\n[assistant]\nGoing with linear back-off \
instead of 2 ** n, because the queue is short.\n[call patch] {\"path\":\"app/retry.py\",\"old_string\":\"DELAY = 2\",\
\"new_string\":\"DELAY = 3\"}\n\n[result patch]\nok\n\n[assistant]\nThe test test_jitter still fails with 6 != 3.";

    fn given<'a>(transcript: &'a str, previous: &'a str) -> SummaryPrompt<'a> {
        let instructions = "## Session intent\n## Files created\n## Files modified\n## Files read\n## Decisions and why\n\
            ## Errors and exact messages\n## Current state\n## Next steps\nFill every section.";
        SummaryPrompt {
            transcript,
            previous_summary: previous,
            focus_topic: "",
            target_tokens: None,
            instructions,
        }
    }

    #[test]
    fn every_section_is_filled_or_marked_empty() {
        insta::assert_snapshot!(summarize(&given(SPAN, "")), @r#"
        ## Session intent
        - request: Fix the retry.
        - demand: "Never change port 8081."

        ## Files created
        (none)

        ## Files modified
        - app/retry.py: DELAY = 2 → DELAY = 3

        ## Files read
        (none)

        ## Decisions and why
        - Going with linear back-off instead of 2 ** n, because the queue is short.

        ## Errors and exact messages
        (none)

        ## Current state
        - DELAY = 3

        ## Next steps
        - The test test_jitter still fails with 6 != 3.
        "#);
    }

    #[test]
    fn a_standing_summary_is_carried_and_a_newer_value_replaces_the_old() {
        let previous = "## Files modified\n- app/api.py: TIMEOUT = 30\n\n## Current state\n- DELAY = 2\n- port = 8081";
        let text = summarize(&given(SPAN, previous));
        assert!(
            text.contains("app/api.py") && text.contains("port = 8081"),
            "{text}"
        );
        assert!(
            text.contains("DELAY = 3") && !text.contains("- DELAY = 2\n"),
            "{text}"
        );
    }

    #[test]
    fn a_summary_at_the_head_of_the_transcript_is_rewritten() {
        let transcript = format!(
            "[assistant]\n## Analysis\n- decision: sqlite 3.40 instead of a file\n\n{SPAN}"
        );
        let instructions = "## Analysis\n## Files\n## Pending tasks\n## Current state";
        let text = summarize(&SummaryPrompt {
            instructions,
            ..given(&transcript, "")
        });
        let headings: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        assert_eq!(
            headings,
            ["Analysis", "Files", "Pending tasks", "Current state"]
        );
        assert!(text.contains("sqlite 3.40 instead of a file"), "{text}");
    }

    #[test]
    fn a_removed_heading_gives_its_room_to_no_other() {
        let whole = summarize(&given(SPAN, ""));
        let instructions = given("", "")
            .instructions
            .replace("## Decisions and why", "");
        let less = summarize(&SummaryPrompt {
            instructions: &instructions,
            ..given(SPAN, "")
        });
        assert!(!less.contains("linear back-off"), "{less}");
        assert!(less.lines().all(|line| whole.contains(line)), "{less}");
    }

    proptest! {
        #[test]
        fn a_target_is_kept_and_nothing_panics(body in "(\\PC{0,40}\n){0,20}", target in 120u64..400) {
            let transcript = format!("[user]\n{body}");
            let text = summarize(&SummaryPrompt { target_tokens: Some(target), ..given(&transcript, SPAN) });
            prop_assert!(count_tokens(&text).0 <= target);
            prop_assert_eq!(&text, &summarize(&SummaryPrompt { target_tokens: Some(target), ..given(&transcript, SPAN) }));
        }
    }
}
