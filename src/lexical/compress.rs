//! Compression by extraction: sentences that say something exact, under the headings that were asked for.

use super::gather::{Entry, Kind, gather};
use super::passages::messages;
use crate::compress::allocate;
use crate::transcript::{Message, Role, estimate_tokens};

/// The values of a compress prompt.
pub(super) struct Given<'a> {
    /// The rendered messages; a former summary may stand in front as the assistant's message.
    pub(super) transcript: &'a str,
    /// The standing summary.
    pub(super) previous_summary: &'a str,
    /// What the work goes on with.
    pub(super) focus_topic: &'a str,
    /// The size asked for.
    pub(super) target_tokens: Option<u64>,
    /// The headings asked for, one a line.
    pub(super) sections: &'a str,
}

const SECTIONS: &str = "Session intent\nFiles created\nFiles modified\nFiles read\nDecisions and why\n\
                        Errors and exact messages\nCurrent state\nNext steps";
/// The size of a summary that nobody asked to be of another size: of one span, and of one that carries on.
const FIRST: u64 = 900;
const CARRIED: u64 = 1300;
/// What an entry of a standing summary counts against new ones, and one of a summary that is written anew.
const STANDING: f64 = 0.85;
const REWRITTEN: f64 = 0.75;

/// Writes the summary.
pub(super) fn compress(given: &Given<'_>) -> String {
    let mut span = messages(given.transcript).unwrap_or_else(|| vec![Message::text(Role::User, given.transcript)]);
    let history = history(&mut span);
    let mut entries = carried(given.previous_summary, STANDING);
    entries.extend(carried(&history, REWRITTEN));
    let carries = !entries.is_empty();
    gather(&span, given.focus_topic, &mut entries);
    let limit = given.target_tokens.unwrap_or(if carries { CARRIED } else { FIRST });
    let headings: Vec<&str> =
        if given.sections.trim().is_empty() { SECTIONS } else { given.sections }.lines().collect();
    // Rooms are shared out by estimate; should the whole come out too large, everything shrinks alike.
    let mut scale = 1.0;
    loop {
        let text = written(&headings, &entries, limit as f64 * scale);
        if scale < 0.1 || estimate_tokens(&text).0 <= limit {
            return text;
        }
        scale *= 0.85;
    }
}

/// Takes a former summary out of the span: the assistant's first message, if it has headings.
fn history(span: &mut Vec<Message>) -> String {
    let is_summary = |m: &Message| m.role == Role::Assistant && m.content.trim_start().starts_with("## ");
    if span.first().is_some_and(is_summary) { span.remove(0).content } else { String::new() }
}

/// The entries of a former summary, by the kind of the heading they stand under.
fn carried(summary: &str, weight: f64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for line in summary.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            kinds = kinds_of(heading);
            continue;
        }
        let text = line.trim().trim_start_matches("- ").trim();
        if text.is_empty() || is_none_mark(text) {
            continue;
        }
        let Some(kind) = Kind::labelled(text, &kinds) else {
            continue;
        };
        entries.push(Entry::carried(kind, text, weight, entries.len()));
    }
    entries
}

fn is_none_mark(text: &str) -> bool {
    matches!(text, "(none)" | "（无）")
}

/// What belongs under a heading, by its words.
fn kinds_of(heading: &str) -> Vec<Kind> {
    const BY_WORD: &[(&[&str], &[Kind])] = &[
        (&["created", "新建"], &[Kind::Created]),
        (&["modified", "changed", "修改"], &[Kind::Modified]),
        (&["read", "examined", "读过"], &[Kind::Read]),
        (&["file", "artifact", "文件", "产物"], &[Kind::Created, Kind::Modified, Kind::Read]),
        (&["decision", "决定", "决策"], &[Kind::Decision]),
        (&["error", "failure", "problem", "错误", "失败"], &[Kind::Error]),
        (&["next", "pending", "task", "todo", "open", "后续", "待办", "下一步"], &[Kind::Next]),
        (&["state", "status", "状态", "现状"], &[Kind::State]),
        (&["intent", "goal", "request", "constraint", "目标", "请求", "约束"], &[Kind::Intent]),
        (&["analysis", "summary", "overview", "context", "分析", "摘要"], &[Kind::Intent, Kind::Decision, Kind::Error]),
    ];
    let lower = heading.to_lowercase();
    let found = BY_WORD.iter().find(|(words, _)| words.iter().any(|word| lower.contains(word)));
    found.map(|(_, kinds)| kinds.to_vec()).unwrap_or_default()
}

fn written(headings: &[&str], entries: &[Entry], limit: f64) -> String {
    let plan: Vec<(&str, Vec<Kind>)> = headings.iter().map(|heading| (*heading, kinds_of(heading))).collect();
    let wanted: Vec<Kind> = Kind::ALL.into_iter().filter(|k| plan.iter().any(|(_, kinds)| kinds.contains(k))).collect();
    let rooms = rooms_of(entries, &wanted, limit - 6.0 * plan.len() as f64);
    let mut text = String::new();
    for (heading, kinds) in &plan {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&format!("## {heading}\n"));
        let mut lines = 0;
        for kind in kinds {
            let room = rooms.iter().find(|(of, _)| of == kind).map_or(0.0, |(_, room)| *room);
            let chosen = best_within(entries, *kind, room);
            lines += chosen.len();
            chosen.iter().for_each(|entry| text.push_str(&entry.line(kinds.len() > 1)));
        }
        if lines == 0 {
            text.push_str(if heading.is_ascii() { "(none)\n" } else { "（无）\n" });
        }
    }
    text.trim_end().to_owned()
}

fn size(entry: &Entry) -> f64 {
    estimate_tokens(&entry.text).0 as f64 + 2.0
}

/// The tokens each kind may take.
fn rooms_of(entries: &[Entry], wanted: &[Kind], limit: f64) -> Vec<(Kind, f64)> {
    let need = |kind: Kind| entries.iter().filter(|entry| entry.kind == kind).map(size).sum::<f64>();
    let wants: Vec<(f64, f64)> = wanted.iter().map(|kind| (kind.share(), need(*kind))).collect();
    wanted.iter().copied().zip(allocate(&wants, limit)).collect()
}

/// The entries of a kind that are worth most, as many as fit into `room` tokens, in their order.
fn best_within(entries: &[Entry], kind: Kind, room: f64) -> Vec<&Entry> {
    let mut ranked: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
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

    fn given<'a>(transcript: &'a str, previous: &'a str) -> Given<'a> {
        let (focus_topic, sections) = ("", "");
        Given { transcript, previous_summary: previous, focus_topic, target_tokens: None, sections }
    }

    #[test]
    fn every_section_is_filled_or_marked_empty() {
        insta::assert_snapshot!(compress(&given(SPAN, "")), @r#"
        ## Session intent
        - Fix the retry.
        - "Never change port 8081."

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
        let text = compress(&given(SPAN, previous));
        assert!(text.contains("app/api.py") && text.contains("port = 8081"), "{text}");
        assert!(text.contains("DELAY = 3") && !text.contains("- DELAY = 2\n"), "{text}");
    }

    #[test]
    fn a_summary_at_the_head_of_the_transcript_is_rewritten() {
        let transcript = format!("[assistant]\n## Analysis\n- decision: sqlite 3.40 instead of a file\n\n{SPAN}");
        let sections = "Analysis\nFiles\nPending tasks\nCurrent state";
        let text = compress(&Given { sections, ..given(&transcript, "") });
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, sections.lines().collect::<Vec<_>>());
        assert!(text.contains("sqlite 3.40 instead of a file"), "{text}");
    }

    proptest! {
        #[test]
        fn a_target_is_kept_and_nothing_panics(body in "(\\PC{0,40}\n){0,20}", target in 120u64..400) {
            let transcript = format!("[user]\n{body}");
            let text = compress(&Given { target_tokens: Some(target), ..given(&transcript, SPAN) });
            prop_assert!(estimate_tokens(&text).0 <= target);
            prop_assert_eq!(&text, &compress(&Given { target_tokens: Some(target), ..given(&transcript, SPAN) }));
        }
    }
}
