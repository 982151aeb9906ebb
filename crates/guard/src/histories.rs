//! The two histories: what of the second is the summary, what was kept, and what the rules look up in the first; and
//! what of a text is prose, and in which script it is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use crate::report::{Finding, Options, Verdict};
use base::lazy_patterns;
use base::message::{Message, Role, Unpaired, unpaired};
use base::text::{one_line, pattern, shortened};
use base::tokens::estimate_tokens;
use base::units::Tokens;
use base::words::{is_han, is_hangul, is_kana};
use sessions::transcript::typed_words;

pub(crate) struct Histories<'a> {
    pub before: &'a [Message],
    pub after: &'a [Message],
    pub options: &'a Options,
    /// The new text of the history after, without what the product wraps around it; `None` if nothing is new, or it is
    /// opaque.
    pub summary: Option<String>,
    /// The summary without the analysis that some prompts ask for in front of it.
    pub conclusion: String,
    /// Summaries among the messages before.
    pub earlier: Vec<&'a str>,
    /// Messages after that stand before, too.
    pub kept: Vec<&'a Message>,
    /// See [`Histories::typed`].
    typed: Vec<String>,
}

/// What products write in front of summaries.
const OPENINGS: [&str; 7] = [
    "This session is being continued from a previous conversation",
    "The conversation history before this point was compacted",
    "[CONTEXT COMPACTION",
    "[CONTEXT SUMMARY]",
    "Another language model started to solve this problem",
    "Here is a summary of the conversation to date",
    "Previous conversation summary",
];

impl<'a> Histories<'a> {
    pub(crate) fn new(
        before: &'a [Message],
        after: &'a [Message],
        options: &'a Options,
    ) -> Result<Histories<'a>, String> {
        let says =
            |messages: &[Message]| messages.iter().any(|message| message.role != Role::System);
        for (name, messages) in [("before", before), ("after", after)] {
            if messages.is_empty() {
                return Err(format!(
                    "`{name}` has no messages; expected the history {name} the compaction"
                ));
            }
            if !says(messages)
                && (name == "before" || messages.iter().all(|message| before.contains(message)))
            {
                return Err(format!(
                    "`{name}` has system messages alone; expected messages of the user and the assistant"
                ));
            }
        }
        if before.len() < after.len() && tokens(before) < tokens(after) {
            return Err(format!(
                "`before` is shorter than `after` ({} messages, and {}); expected the history before the compaction first",
                before.len(),
                after.len()
            ));
        }
        let known: HashSet<(Role, &str, usize)> = before.iter().map(identity).collect();
        let (kept, new): (Vec<&Message>, Vec<&Message>) = after
            .iter()
            .partition(|message| known.contains(&identity(message)));
        // Where the summary is marked, a product may also add a note to the system message.
        let is_marked = new.iter().any(|message| is_summary(&message.content));
        let said = new.iter().filter(|message| match message.role {
            Role::Tool => false,
            Role::System if is_marked => is_summary(&message.content),
            _ => message.tool_calls.is_empty(),
        });
        let said: Vec<&str> = said.map(|message| core(&message.content)).collect();
        let summary = (!said.is_empty() && !options.is_opaque).then(|| said.join("\n\n"));
        let earlier = before.iter().filter(|message| is_summary(&message.content));
        let by_user = before.iter().filter(|message| message.role == Role::User);
        let by_user = by_user.map(|message| message.content.trim());
        let by_user = by_user.filter(|text| !is_summary(text));
        Ok(Histories {
            before,
            after,
            options,
            conclusion: summary
                .as_deref()
                .map_or_else(String::new, without_analysis),
            summary,
            earlier: earlier.map(|message| message.content.as_str()).collect(),
            typed: by_user.filter_map(typed_words).collect(),
            kept,
        })
    }

    /// [`Verdict::Reject`], or a warning where the beginning of the session is unknown.
    pub(crate) fn rejects_if_whole(&self) -> Verdict {
        if self.options.begins_midway || !self.earlier.is_empty() {
            Verdict::Warn
        } else {
            Verdict::Reject
        }
    }

    /// What the user typed: no summaries, no commands, nothing that a tool put in.
    pub(crate) fn typed(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.typed.iter().map(String::as_str)
    }

    /// Everything that was there to be read before, with arguments of calls.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.before.iter().flat_map(Message::texts)
    }
}

fn identity(message: &Message) -> (Role, &str, usize) {
    (
        message.role,
        message.content.trim(),
        message.tool_calls.len(),
    )
}

fn is_summary(text: &str) -> bool {
    OPENINGS
        .iter()
        .any(|opening| text.trim_start().starts_with(opening))
}

/// A summary without what the product wraps around it.
fn core(text: &str) -> &str {
    let mut core = text.trim();
    if is_summary(core) {
        core = without_opening(core);
    }
    if core.starts_with(SNAPSHOT) {
        core = core.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
    let end = ENDINGS.find(core).map_or(core.len(), |found| found.start());
    core.get(..end).unwrap_or(core).trim()
}

/// A section that Hermes puts in front of what its model wrote.
const SNAPSHOT: &str = "## Historical Task Snapshot\nUser asked (deterministic";

/// A text without its opening: the first line, if that is only the opening; else up to the bracket, the colon or the full
/// stop that ends it, since the summary may begin in the same line.
fn without_opening(text: &str) -> &str {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_whole_line = !rest.trim().is_empty()
        && (line.trim_end().ends_with([':', '.', ']']) || !line.starts_with('['));
    if is_whole_line {
        return rest;
    }
    let mark = if text.starts_with('[') { "]" } else { ": " };
    let after = text.split_once(mark).or_else(|| text.split_once(". "));
    after.map_or("", |(_, after)| after.trim_start_matches([':', ' ']))
}

/// The part of a summary after its analysis.
fn without_analysis(summary: &str) -> String {
    let marks = ["</analysis>", "\nSummary:\n", "<summary>"];
    let after = marks
        .iter()
        .find_map(|mark| Some(summary.split_once(mark)?.1));
    after.unwrap_or(summary).to_owned()
}

/// The tokens of a history, by one estimate for both sides.
fn tokens(messages: &[Message]) -> Tokens {
    let of_message = |message: &Message| {
        let calls = message.tool_calls.iter();
        let calls = calls.map(|call| estimate_tokens(&call.function.arguments));
        Tokens(4) + estimate_tokens(&message.content) + calls.sum::<Tokens>()
    };
    messages.iter().map(of_message).sum()
}

/// The history hardly shrinks.
pub(crate) fn no_smaller(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    if histories.options.is_opaque {
        return None;
    }
    let [before, after] = [histories.before, histories.after].map(tokens);
    let freed = 1.0 - after.0 as f64 / before.0.max(1) as f64;
    if freed >= histories.options.least_freed {
        return Some(Vec::new());
    }
    let message = format!(
        "about {} tokens become {}: {:.0}% are freed",
        before.0,
        after.0,
        freed * 100.0
    );
    let verdict = histories.rejects_if_whole();
    Some(vec![Finding::new(verdict, message, "the whole history")])
}

/// A history that a provider refuses: a result without its call, a call without its result, a kept message without its
/// image.
pub(crate) fn broken_messages(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    let (before, after) = (histories.before, histories.after);
    let reject = |message: String, at: usize| {
        Finding::reject(message, format!("message {} of the history after", at + 1))
    };
    // What was open before the compaction may be: a call whose result is still to come.
    let is_awaited = |one: &Unpaired<'_>| {
        let is_result = |old: &Message| old.tool_call_id.as_deref() == Some(one.id);
        let mut following = after.iter().skip(one.at + 1);
        let is_last = following.all(|message| message.role == Role::Tool);
        one.is_call && is_last && !before.iter().any(is_result)
    };
    let mut found = Vec::new();
    for one in unpaired(after).iter().filter(|one| !is_awaited(one)) {
        let message = if one.is_call {
            format!("the call `{}` has no result", one.id)
        } else {
            format!("the result of `{}` follows no call", one.id)
        };
        found.push(reject(message, one.at));
    }
    for (at, message) in after.iter().enumerate().skip(1) {
        if message.role == Role::System && before.first() == Some(message) {
            found.push(reject("the system message is not the first".to_owned(), at));
        }
    }
    for (at, message) in after.iter().enumerate() {
        let is_stripped = |old: &Message| {
            old.role == message.role
                && old.content.contains(" bytes]")
                && without_media(&old.content).trim() == message.content.trim()
        };
        if !message.content.trim().is_empty() && before.iter().any(is_stripped) {
            found.push(reject(
                format!(
                    "its image is gone without a note: {}",
                    excerpt(&message.content)
                ),
                at,
            ));
        }
    }
    Some(found)
}

/// A text without the placeholders of images.
pub(crate) fn without_media(text: &str) -> Cow<'_, str> {
    MEDIA.replace_all(text, "")
}

/// The beginning of a text on one line.
pub(crate) fn excerpt(text: &str) -> String {
    shortened(&one_line(text), 80)
}

lazy_patterns! {
    /// What products write after summaries: from here to the end.
    ENDINGS = pattern(
        r"(?m)^\s*(?:If you need specific details from before compaction|(?:Please )?[Cc]ontinue the conversation from where|<(?:read|modified)-files>|-{3} ?END OF CONTEXT SUMMARY)",
    );
    /// How the importer writes an image or another file.
    MEDIA = pattern(r"\[[^\[\]\n]{1,80}: (?:[a-z]+/[\w.+-]+|unknown type), \d+ bytes\]");
    /// Code, quotations, addresses and paths: what a writer of any language repeats as it stands. A path ends where
    /// its script does: an unspaced text may touch it.
    REPEATED = pattern(r#"`[^`\n]*`|"[^"\n]*"|“[^”\n]*”|「[^」\n]*」|[!-~]*[/_\\][!-~]*"#);
}

/// A text without fenced blocks, and with blanks for code, quotations, addresses and paths.
pub(crate) fn prose(text: &str) -> String {
    REPEATED.replace_all(&unfenced(text), " ").into_owned()
}

/// A text without fenced blocks.
pub(crate) fn unfenced(text: &str) -> String {
    let mut is_fenced = false;
    let lines = text.lines().filter(|line| {
        let is_fence = is_fence(line);
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    });
    let kept: Vec<&str> = lines.collect();
    kept.join("\n")
}

/// Whether a line opens or closes a block of code.
pub(crate) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// A family of writing systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Script {
    Latin,
    EastAsian,
    Hangul,
    Cyrillic,
    Arabic,
    Other,
}

fn script_of(c: char) -> Option<Script> {
    Some(match c {
        'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => Script::Latin,
        '\u{400}'..='\u{52f}' => Script::Cyrillic,
        '\u{600}'..='\u{6ff}' => Script::Arabic,
        c if is_hangul(c) => Script::Hangul,
        c if is_han(c) || is_kana(c) => Script::EastAsian,
        c if c.is_alphabetic() => Script::Other,
        _ => return None,
    })
}

/// How much of a text is in each script. A Chinese, Japanese or Korean sign says about as much as three letters.
pub(crate) fn letters(text: &str) -> BTreeMap<Script, usize> {
    let mut counts = BTreeMap::new();
    for script in text.chars().filter_map(script_of) {
        let is_dense = matches!(script, Script::EastAsian | Script::Hangul);
        *counts.entry(script).or_default() += if is_dense { 3 } else { 1 };
    }
    counts
}

/// The script of a text: the one that most of it is in; `None` below this many letters.
pub(crate) fn main_script(text: &str, least: usize) -> Option<Script> {
    let (script, count) = letters(text).into_iter().max_by_key(|(_, count)| *count)?;
    (count >= least).then_some(script)
}
