//! Rules about the summary as a text: whether there is one, whether it is whole, and whether it is only a summary.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::histories::{Histories, excerpt, is_fence, prose, unfenced};
use crate::report::{Finding, Verdict};
use base::lazy_patterns;
use base::text::pattern;
use base::words::{WordList, sentences};
use lexical::{prompt_headings, terms};
use sessions::references::{ReferenceIndex, ReferenceKind, references_in};

lazy_patterns! {
    /// How a reply begins that is no summary.
    NO_SUMMARY = pattern(r"(?i)^\W*(?:I(?:'|’)?m (?:really |very )?(?:sorry|unable|not able)|I am (?:sorry|unable|not able)|sorry\b|I apologi[sz]e|apologies|I can(?:not|(?:'|’)?t)\b|I won(?:'|’)?t|I don(?:'|’)?t have|as an AI|unfortunately,? I|(?:there is|there's) (?:nothing|no (?:conversation|content|history))|no (?:conversation|content|summary|history)|summary (?:unavailable|failed|not available|generation failed)|(?:internal server |rate limit )?error\s*[:.]|failed to (?:generate|create|produce|summari)|n/?a\W*$|none\W*$|null\W*$|ok(?:ay)?\W*$|done\W*$|sure\W*$|understood\W*$|很?抱歉|[对對]不起|不好意思|我(?:[无無]法|不能|[没沒]有)|[无無]法(?:[总總][结結]|摘要|生成|提供)|[没沒]有(?:可以?|需要)(?:[总總][结結]|[压壓][缩縮]|[归歸][纳納]|概括|摘要)|作[为為](?:一[个個])?(?:AI|人工智[能慧])|生成失[败敗])");

    /// A word with which no text ends. A preposition may be the last one: "what we started with".
    FUNCTION_WORD = pattern(r"(?:^|[\s(*])(?:a|the|and|or|are|were|but|if|because|than|into|onto|whether|while|via|which|every|its|their|our|I'm|it's|that's|they're|we're|you're|instead of|rather than|such as|as well as|due to|because of|in order to)$|(?:以及|[并並]且|因[为為]|但是|如果|或者|[对對][于於]|[关關][于於]|[^总總]和|[^参參赠贈给給][与與])$");

    /// A line that is a bullet, a number or a heading and nothing else.
    BARE = pattern(r"^\s*(?:[-*+•]|\d+[.)]|#{1,6}\s[^:：]*[:：]?|\*\*[^*]+:\*\*|\*\*[^*]+\*\*:)\s*$");

    /// Markup of a protocol, or words of a model about itself. A reasoning tag within a sentence is what the sentence is
    /// about.
    PROTOCOL = pattern(r"(?im)(?:^\s*(?:</?(?:think(?:ing)?|reasoning|scratchpad)>|\[/?THINK\])|</?(?:think(?:ing)?|reasoning|scratchpad)>\s*$)|\[/?INST\]|</?tool_calls?\b|</?function_calls?\b|<function=|<invoke\b|<parameter\b|</?antml|\[/?TOOL_CALLS?\]|<\|[a-z_]{2,30}\|>|<(?:start|end)_of_turn>|<｜[^｜\n]{2,30}｜>|\bas an AI(?: \w+){0,2}, I\b|\bas a (?:large )?language model\b|作[为為](?:一[个個]|一名)?(?:AI|人工智[能慧])(?:助手|助理|[语語]言模型|模型)");

    /// A turn of a speaker, as transcripts write it.
    SPEAKER = pattern(r"^(Human|User|Assistant|AI): ");

    /// A heading that says that nothing is left to do.
    NOTHING_LEFT = pattern(r"(?i)^\W*(?:there (?:is|are) |there's )?(?:nothing|none|no|n/?a)\b|\b(?:nothing|none)\W*$|^\W*(?:all|everything)\b.*\b(?:done|completed?|finished|resolved|closed)\W*$|^\W*(?:[暂暫]?[无無]|[没沒]有)|(?:全部|均已|都已?)(?:完成|[结結]束)\W*$");

    /// An analysis in front of a summary, and the tags around both.
    ANALYSIS = pattern(r"(?s)<analysis>.*?</analysis>|</?summary>");

    /// Code in a line, which has brackets of its own.
    CODE = pattern(r"`[^`]*`");

    /// A tag alone on its line that opens something.
    WRAPPER = pattern(r"(?m)^\s*<([a-z][a-z_-]{2,30})>\s*$");
}

/// There is no summary, or an apology in its place. What names a detail of the session is one, whatever its first words.
pub(crate) fn empty(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    /// A refusal that is longer is rather a summary that tells of one.
    const LONGEST: usize = 600;
    /// A text up to this length that has nothing of the session is none of it.
    const SHORT: usize = 200;
    let summary = histories.summary.as_deref()?;
    let core = ANALYSIS.replace_all(summary, "");
    let core = core.trim();
    let message = if !core.contains(char::is_alphanumeric) {
        "the summary is empty"
    } else if core.len() >= LONGEST || names_detail(histories, core) {
        return Some(Vec::new());
    } else if NO_SUMMARY.is_match(core) {
        "the text is a refusal, an apology or an error, not a summary"
    } else if core.chars().count() < SHORT && !has_words_of_user(histories, core) {
        "the text says nothing of the session"
    } else {
        return Some(Vec::new());
    };
    Some(vec![Finding::reject(message, excerpt(core))])
}

/// Whether a text names a detail that occurs in the session.
fn names_detail(histories: &Histories<'_>, text: &str) -> bool {
    let mut references = references_in(text);
    references.retain(|reference| reference.kind != ReferenceKind::Number);
    let index = ReferenceIndex::new(&references);
    histories
        .texts()
        .any(|before| !index.occurrences_in(before).is_empty())
}

/// Whether a text has two terms of what the user typed, or all that there are.
fn has_words_of_user(histories: &Histories<'_>, text: &str) -> bool {
    let typed: Vec<&str> = histories.typed().collect();
    let asked = terms(&typed.join("\n"));
    let said = terms(text);
    asked.iter().filter(|term| said.contains(term)).count() >= asked.len().min(2)
}

/// The summary breaks off.
pub(crate) fn cut_off(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    let summary = histories
        .summary
        .as_deref()
        .filter(|text| !text.is_empty())?;
    let stopped = histories
        .options
        .stop_reason
        .as_deref()
        .is_some_and(|reason| {
            let reason = reason.to_lowercase();
            UNFINISHED.iter().any(|part| reason.contains(part))
        });
    // A line across the page may follow the last one.
    let is_across =
        |line: &str| line.len() > 2 && line.chars().all(|c| matches!(c, '-' | '_' | '*' | '='));
    let last = summary
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && !is_across(line.trim()))
        .unwrap_or("");
    let found = if stopped {
        let message = "the model was stopped before the end of its reply";
        Some((Verdict::Reject, message.to_owned()))
    } else {
        let open = open_part(histories, summary).map(|message| (Verdict::Reject, message));
        let broken = broken_line(histories, summary, last);
        let found = [repetition(summary), broken, open].into_iter().flatten();
        found.max_by_key(|(severity, _)| *severity)
    };
    let found = found.map(|(severity, message)| Finding::new(severity, message, tail(last)));
    Some(found.into_iter().collect())
}

/// How often a summary repeats its last lines or sentences until it ends, as a model does that has lost the thread.
fn repetition(summary: &str) -> Option<(Verdict, String)> {
    /// The most lines or sentences of a group.
    const LARGEST: usize = 12;
    const SURE: usize = 6;
    const SUSPICIOUS: usize = 4;
    let text = unfenced(summary);
    let mut parts: Vec<&str> = sentences(&text).collect();
    parts.retain(|part| part.chars().filter(|c| c.is_alphabetic()).count() > 3);
    // The last one may have been cut.
    let whole = parts
        .get(..parts.len().saturating_sub(1))
        .unwrap_or_default();
    let times =
        (1..=LARGEST).flat_map(|size| [times_at_end(&parts, size), times_at_end(whole, size)]);
    let times = times.max().filter(|times| *times >= SUSPICIOUS)?;
    let severity = if times >= SURE {
        Verdict::Reject
    } else {
        Verdict::Warn
    };
    Some((
        severity,
        format!("it says the same {times} times until its end"),
    ))
}

/// How often the last `size` parts stand at the end, one time after the other.
fn times_at_end(parts: &[&str], size: usize) -> usize {
    let earlier = parts.iter().rev().skip(size);
    let same = parts.iter().rev().zip(earlier).take_while(|(a, b)| a == b);
    same.count() / size + 1
}

/// Parts of the providers' words for a reply that is not whole: limits, filters and refusals.
const UNFINISHED: [&str; 8] = [
    "length",
    "max",
    "exceed",
    "incomplete",
    "filter",
    "safety",
    "refus",
    "abort",
];

/// What the summary begins and does not end: a block, a tag, an object, its outline.
fn open_part(histories: &Histories<'_>, summary: &str) -> Option<String> {
    if summary.lines().filter(|line| is_fence(line)).count() % 2 == 1 {
        return Some("a block of code is open at its end".to_owned());
    }
    let unclosed = WRAPPER
        .captures_iter(&unfenced(summary))
        .find_map(|captures| {
            let name = captures.get(1)?.as_str().to_owned();
            (!summary.contains(&format!("</{name}>"))).then_some(name)
        });
    if let Some(name) = unclosed {
        return Some(format!("the tag <{name}> is not closed"));
    }
    if summary.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(summary).is_err_and(|error| error.is_eof())
    {
        return Some("its JSON is not closed".to_owned());
    }
    missing_section(histories, summary)
        .map(|heading| format!("its outline ends before `{heading}`"))
}

/// How the last line breaks off. A single sign that a value, a command, a folder or a name may end in is only suspicious.
fn broken_line(histories: &Histories<'_>, summary: &str, last: &str) -> Option<(Verdict, String)> {
    let line = last.trim();
    if is_fence(last) {
        return None;
    }
    let is_row = line.starts_with('|');
    let letter = new_letter(summary, line);
    let is_item = ends_as_others(summary, line);
    let what = if BARE.is_match(last) && !NOTHING_LEFT.is_match(last) {
        "it ends with an empty point or a bare heading"
    } else if is_row && open_rows(summary) == 1 && !line.ends_with('|') {
        "it ends within a row of a table"
    } else if ["`", "**", "\""].iter().any(|mark| ends_marked(line, mark)) {
        "it ends within marked text"
    } else if ends_in_bracket(&CODE.replace_all(line, "`")) {
        "it ends within brackets"
    } else if !is_row
        && line.chars().any(char::is_alphanumeric)
        && line.ends_with([
            ',', '(', '[', ':', '，', '；', '：', '、', '（', '—', '–', '→',
        ])
        && !is_item
        || FUNCTION_WORD.is_match(line)
        || ends_in_semicolon(line) && !is_item
    {
        "it ends within a sentence"
    } else if !is_row && line.ends_with([';', '-', '=', '/', '&']) && !is_item
        || letter.is_some_and(|letter| "iknmxyz".contains(letter))
    {
        // A value, a folder or a command may end in such a sign, and things are called by such a letter.
        let message = "its last sign may be the middle of a sentence";
        return Some((Verdict::Warn, message.to_owned()));
    } else if letter.is_some() || ends_in_half_a_word(histories, summary, line) {
        "it ends within a word"
    } else {
        return None;
    };
    Some((Verdict::Reject, what.to_owned()))
}

/// Whether a line opens a mark that it does not close, and that no end mark follows: a sentence may begin within one. Behind
/// a word a last one closes, as the inch of 27" does.
fn ends_marked(line: &str, mark: &str) -> bool {
    let after = line.rfind(mark).and_then(|at| line.get(at..));
    let closes = line
        .strip_suffix(mark)
        .is_some_and(|before| before.ends_with(char::is_alphanumeric));
    line.matches(mark).count() % 2 == 1
        && !closes
        && !ends_sentence(line)
        && after.is_some_and(|after| !has_sentence_end(after))
}

/// How many rows of tables have no bar at their end: where several have none, it is their form.
fn open_rows(summary: &str) -> usize {
    let rows = summary.lines().map(str::trim);
    rows.filter(|row| row.starts_with('|') && !row.ends_with('|'))
        .count()
}

/// Whether other lines end in the same semicolon as the last: an item of such a list is whole.
fn ends_as_others(summary: &str, last: &str) -> bool {
    let semicolon = last.chars().next_back().filter(|c| matches!(c, ';' | '；'));
    semicolon.is_some_and(|mark| {
        let lines = summary.lines().map(str::trim_end);
        lines.filter(|line| line.ends_with(mark)).count() > 1
    })
}

/// Whether a line ends in an end mark, in brackets and quotation marks or not.
fn ends_sentence(line: &str) -> bool {
    line.trim_end_matches(|c: char| "*_`)\"'”’」』）".contains(c))
        .ends_with(END_MARKS)
}

/// Whether a sentence ends in a text: a point within a name is no end.
fn has_sentence_end(text: &str) -> bool {
    text.match_indices(END_MARKS).any(|(at, mark)| {
        let after = text.get(at + mark.len()..).unwrap_or("");
        !mark.is_ascii() || !after.starts_with(|c: char| c.is_alphanumeric() || c == '/')
    })
}

/// What ends a sentence.
const END_MARKS: [char; 6] = ['.', '!', '?', '。', '！', '？'];

/// Whether a line opens a bracket that no bracket closes and no end mark follows.
fn ends_in_bracket(line: &str) -> bool {
    let pairs = [
        ('(', ')'),
        ('[', ']'),
        ('{', '}'),
        ('（', '）'),
        ('「', '」'),
        ('“', '”'),
    ];
    pairs.iter().any(|(open, close)| {
        // The German closing quotation mark is the English opening one.
        let is_closing = *open == '“' && line.contains('„');
        let rest = line.rfind(*open).and_then(|at| line.get(at..));
        let is_interval =
            rest.is_some_and(|rest| "([".contains(*open) && rest.contains([')', ']']));
        !is_closing
            && !is_interval
            && rest.is_some_and(|rest| !rest.contains(*close) && !has_sentence_end(rest))
            && line.matches(*open).count() > line.matches(*close).count()
    })
}

/// A small letter at the end that does not stand alone before: the name of something was named before.
fn new_letter(summary: &str, line: &str) -> Option<char> {
    let word = line.rsplit(' ').next()?;
    let own = summary.trim_end().strip_suffix(word).unwrap_or(summary);
    let letter = word.chars().next().filter(|c| c.is_ascii_lowercase())?;
    (word.len() == 1 && !own.contains(&format!(" {word} "))).then_some(letter)
}

/// Whether a line ends in a semicolon behind a word of prose: values and code end in it, too.
fn ends_in_semicolon(line: &str) -> bool {
    let word = line
        .strip_suffix(';')
        .and_then(|line| line.split(' ').next_back());
    word.is_some_and(|word| word.len() > 2 && word.chars().all(char::is_alphabetic))
}

/// Whether the last word stands nowhere else, but begins a word that does.
fn ends_in_half_a_word(histories: &Histories<'_>, summary: &str, line: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let begin = line
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_part(*c))
        .last();
    let Some(word) = begin
        .and_then(|(at, _)| line.get(at..))
        .filter(|word| word.is_ascii())
    else {
        return false;
    };
    let own = summary.trim_end().strip_suffix(word).unwrap_or(summary);
    // Whole words with which many others begin.
    const WHOLE: WordList =
        WordList("in on of to at by up for off out not from with over all so none nothing");
    if word.len() == 1 || WHOLE.has(&word.to_lowercase()) {
        return false;
    }
    // Another form of the word is no other word.
    const ENDINGS: WordList = WordList("s d r n y e es ed er ing ly ion");
    let (mut is_whole, mut begins) = (false, false);
    for text in std::iter::once(own).chain(histories.texts()) {
        for (at, _) in text.match_indices(word) {
            let before = text.get(..at).unwrap_or("").chars().next_back();
            let after = text.get(at + word.len()..).unwrap_or("");
            if before.is_none_or(|c| !is_part(c)) {
                is_whole |= !after.starts_with(is_part);
                let end = after
                    .find(|c: char| !c.is_alphabetic())
                    .unwrap_or(after.len());
                begins |= end > 0 && !ENDINGS.has(after.get(..end).unwrap_or(""));
            }
        }
        if is_whole {
            return false;
        }
    }
    begins
}

/// A section that a product's prompt asks for early, and the last one that it always asks for, in any of its prompts.
/// Sources: the prompts of Claude Code, pi and OpenCode.
const OUTLINES: [(&str, &[&str]); 3] = [
    (
        "primary request and intent",
        &["current work", "context for continuing work"],
    ),
    ("constraints & preferences", &["next steps"]),
    ("discoveries", &["relevant files"]),
];

/// The first heading of the outline that is required, or that the summary before had, from which on none stands in this
/// summary, although all before it do.
fn missing_section(histories: &Histories<'_>, summary: &str) -> Option<String> {
    const FEWEST: usize = 3;
    let lines: Vec<String> = summary.lines().map(plain).collect();
    let has = |heading: &str| lines.iter().any(|line| line.starts_with(heading));
    let known = OUTLINES
        .iter()
        .find(|(early, _)| lines.iter().any(|line| line == early));
    if let Some((_, lasts)) = known.filter(|(_, lasts)| !lasts.iter().any(|last| has(last))) {
        return lasts.first().map(|last| (*last).to_owned());
    }
    let earlier = histories.earlier.last().copied();
    let outline = histories.options.prompt.as_deref().or(earlier)?;
    let headings: Vec<String> = prompt_headings(outline)
        .into_iter()
        .map(|(_, heading)| plain(heading))
        .collect();
    let first = headings.iter().position(|heading| !has(heading))?;
    let rest = headings.get(first..)?;
    let is_end = first >= FEWEST && rest.iter().all(|heading| !has(heading));
    is_end.then(|| rest.first().cloned()).flatten()
}

/// A heading, or the line that it begins, without its number and its marks.
fn plain(heading: &str) -> String {
    heading
        .trim_start_matches(|c: char| !c.is_alphabetic())
        .trim_end_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
}

/// Markup of a model's protocol, or what it says of itself, in prose; a call, or turns of a conversation that goes on.
pub(crate) fn protocol_text(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    let summary = histories.summary.as_deref()?;
    let prose = prose_with_tags(summary);
    let found = PROTOCOL.find(&prose).map(|found| {
        let message = format!("it has `{}`, which no summary says", found.as_str());
        Finding::reject(message, excerpt(prose.get(found.start()..).unwrap_or("")))
    });
    let found = found.or_else(|| call_as_text(summary));
    let found = found.or_else(|| turns_as_text(&unfenced(summary)));
    Some(found.into_iter().collect())
}

/// The JSON of a call: the whole text, or only a line of it.
fn call_as_text(summary: &str) -> Option<Finding> {
    let core = ANALYSIS.replace_all(summary, "");
    if serde_json::from_str(&core).is_ok_and(|value| is_call(&value)) {
        return Some(Finding::reject(
            "it is a call of a tool, not a summary",
            excerpt(summary),
        ));
    }
    let text = unfenced(summary);
    let mut lines = text.lines().filter(|line| line.starts_with(['{', '[']));
    let line = lines.find(|line| serde_json::from_str(line).is_ok_and(|value| is_call(&value)))?;
    Some(Finding::warn(
        "it has a call of a tool as text",
        excerpt(line),
    ))
}

/// Whether JSON has the name and the arguments of a call, and nothing else.
fn is_call(value: &Value) -> bool {
    const NAMES: [&str; 5] = ["name", "tool", "tool_name", "function", "action"];
    const ARGUMENTS: [&str; 6] = [
        "arguments",
        "args",
        "input",
        "parameters",
        "tool_input",
        "action_input",
    ];
    const ENVELOPE: [&str; 3] = ["id", "call_id", "type"];
    match value {
        Value::Array(calls) => !calls.is_empty() && calls.iter().all(is_call),
        Value::Object(object) => {
            let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
            let others = object
                .keys()
                .map(String::as_str)
                .filter(|key| !NAMES.contains(key));
            let mut others = others.filter(|key| !ARGUMENTS.contains(key));
            let is_bare = others.all(|key| ENVELOPE.contains(&key));
            let wrappers = ["tool_calls", "function_call", "functionCall", "function"];
            let mut wrapped = wrappers.iter().filter_map(|key| object.get(*key));
            let is_silent = object.iter().all(|(key, value)| {
                ENVELOPE.contains(&key.as_str())
                    || matches!(key.as_str(), "role" | "status" | "finish_reason")
                    || value.as_str().is_none_or(str::is_empty)
            });
            has(&NAMES) && has(&ARGUMENTS) && is_bare
                || is_silent && wrapped.any(|inner| !inner.is_string() && is_call(inner))
        }
        _ => false,
    }
}

/// The turns of speakers, each a paragraph of its own: where both speak and nothing announces them, the model goes on with
/// the conversation.
fn turns_as_text(text: &str) -> Option<Finding> {
    /// A shorter text may be the title of turns.
    const TITLE: usize = 200;
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
    let speaker = |one: &&str| Some(SPEAKER.captures(one)?.get(1)?.as_str().to_owned());
    let first = paragraphs.iter().position(|one| speaker(one).is_some())?;
    let (before, turns) = paragraphs.split_at_checked(first)?;
    let speakers: BTreeSet<String> = turns.iter().filter_map(speaker).collect();
    let last = before.last().and_then(|one| one.lines().next_back());
    let is_announced = last.is_none_or(|line| {
        line.starts_with('#') || line.trim_end_matches('*').ends_with([':', '：'])
    });
    let is_title = before.iter().map(|one| one.len()).sum::<usize>() < TITLE;
    let excerpt = excerpt(turns.first().unwrap_or(&""));
    match speakers.len() {
        1 if speakers.contains("User") || speakers.contains("AI") => None,
        2.. if !is_announced && !is_title => {
            Some(Finding::reject("it goes on with the conversation", excerpt))
        }
        _ => Some(Finding::warn("it has turns of a conversation", excerpt)),
    }
}

/// The prose of a summary. Paths are kept, since a closing tag looks like one.
fn prose_with_tags(summary: &str) -> String {
    let spaced = summary.replace("</", "<\u{1}").replace("_", "\u{2}");
    prose(&spaced).replace('\u{1}', "/").replace('\u{2}', "_")
}

/// The end of a line.
fn tail(line: &str) -> String {
    let skipped = line.chars().count().saturating_sub(60);
    line.chars().skip(skipped).collect()
}
