//! Rules about what the summary says: its language, the requests and rules of the user, and what nobody said.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use crate::histories::{Histories, excerpt, letters, main_script, prose, without_media};
use crate::report::{Finding, Verdict};
use base::lazy_patterns;
use base::text::pattern;
use base::tokens::estimate_tokens;
use base::words::{WordList, sentences};
use lexical::notes::todo_items;
use lexical::terms;
use sessions::import::has_secret;
use sessions::references::{Reference, ReferenceIndex, ReferenceKind, references_in};

lazy_patterns! {
    /// The summary says what the user wants.
    ORDER = pattern(r"(?i)\b(?:the )?(?:user|human)(?:'s)? (?:has |then |also |explicitly |now )*(?:asks?|asked|wants?|wanted|requests?|requested|instructs?|instructed|demands?|demanded|told|needs?|insists?|approved|confirmed|allowed|permitted|authori[sz]ed|said to|would like|expects?|expected|prefers?|preferred)\b:?|\byou (?:were|are|have been) (?:asked|told|instructed|requested|ordered)\b|\b(?:user|human)(?:'s)? instructions?:|\b(?:per|at) the (?:user|human)'s (?:request|instructions?)\b|(?:用[户戶]|使用者)(?:又|还|還|再|明确|明確|随后|隨後|现在|現在)*(?:要求|希望|想要|[请請]求|[让讓]|需要|指示)");

    /// The name of a tag.
    TAG = pattern(r"</?[a-z][a-z_-]*>");

    /// Where that ends, or where it tells what was done.
    ORDER_END = pattern(r"→|;|；|\(|（|–|—|: |：|\. |。|\n|\.$");

    /// The summary takes the prompt for a wish of the user.
    PROMPT_AS_REQUEST = pattern(r"(?i)\b(?:user|human)(?:'s)? (?:has |then |also |most recently |now |latest request (?:is|was) |request(?:ed)? (?:is|was) )*(?:asks?|asked|wants?|wanted|requests?|requested|instructed)?(?: me)?(?: for| to)? (?:create |write |provide |produce |generate |make )?(?:an? |the )?(?:detailed |comprehensive |concise |structured )*(?:summary of (?:the|this|our) (?:conversation|session|history)|summari[sz]e (?:the|this|our) (?:conversation|session|history)|(?:context )?compaction\b|compact (?:the|this) (?:conversation|context))|(?:用[户戶]|使用者)(?:要求|希望|[请請]求)(?:我)?(?:[总總][结結]|[压壓][缩縮]|概括)(?:本次|[这這]次|[当當]前|上述)?(?:[对對][话話]|[会會][话話]|上下文)");

    /// A prohibition, with what it forbids.
    PROHIBITION = pattern(r"(?i)\b(?:do not|don'?t|never|must not|mustn'?t|avoid)\b ([^.\n!?;,]{3,120})|(?:不要|不得|禁止|不准|不[许許]|切勿|[别別]再|[绝絕]不)([^。\n！？；，]{2,60})");

    /// The heading of what is to be done.
    NEXT_STEPS = pattern(r"(?im)^[\s#*\d.)-]*(?:optional )?(?:next steps?|pending(?: tasks?)?|remaining(?: work| tasks?)?|to-?dos?|open tasks?|下一步|待[办辦]|未完成|剩[余餘])[^\n]{0,40}$");

    /// A heading of any section.
    HEADING = pattern(r"(?m)^(?:#{1,6} |\*\*|\d{1,2}\. )");
}

/// The summary is in another language than the session.
pub(crate) fn language(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    /// With fewer letters in every script, a session has no language to compare with.
    const KNOWN: usize = 60;
    let summary = histories.summary.as_deref()?;
    let script = main_script(&prose(summary), 80)?;
    let by_user: String = histories.typed().map(prose).collect();
    let prompt = histories.options.prompt.iter().map(String::as_str);
    let said = histories
        .before
        .iter()
        .filter(|message| message.role != base::message::Role::Tool);
    let all: String = said
        .map(|message| message.content.as_str())
        .chain(prompt)
        .collect();
    let used = letters(&all);
    if used.values().all(|count| *count < KNOWN) {
        return None;
    }
    let is_used = used.contains_key(&script);
    let is_of_user = main_script(&by_user, 40).is_none_or(|typed| typed == script);
    let finding = match (is_used, is_of_user) {
        (true, true) => return Some(Vec::new()),
        (true, false) => Finding::warn("it is not in the language of the user", excerpt(summary)),
        (false, _) => Finding::reject(
            format!("it is in {script:?} script, which nobody used in the session"),
            excerpt(summary),
        ),
    };
    Some(vec![finding])
}

/// The newest request of a person is lost. One that is told in other words, or in another language, may be there.
pub(crate) fn newest_request(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    histories.summary.as_deref()?;
    let request = histories.typed().next_back()?;
    let after: String = histories
        .after
        .iter()
        .map(|message| format!("{}\n", message.content))
        .collect();
    let references = references_in(&without_media(request));
    let is_named = !ReferenceIndex::new(&references)
        .occurrences_in(&after)
        .is_empty()
        || names_part_of(&references, &after);
    let is_translated = main_script(&prose(&after), 10)
        .zip(main_script(&prose(request), 10))
        .is_some_and(|(after, before)| after != before);
    if is_named {
        return Some(Vec::new());
    }
    let is_told = is_told(&prose(request), &after);
    let (severity, message) = if references.is_empty() {
        let is_gone = is_told == Some(false) && !is_translated;
        let message = "hardly anything of the newest request is left".to_owned();
        is_gone.then_some((Verdict::Warn, message))?
    } else {
        let severity = match is_told == Some(true) || is_translated {
            true => Verdict::Warn,
            false => Verdict::Reject,
        };
        let named: Vec<&str> = references
            .iter()
            .take(3)
            .map(|one| one.text.as_str())
            .collect();
        let named = named.join(", ");
        (
            severity,
            format!("no detail of the newest request is named: {named}"),
        )
    };
    Some(vec![Finding::new(severity, message, excerpt(request))])
}

/// Whether a sentence of a text has half of the terms of a request, or six; `None` if the request has too few to be known
/// by them.
fn is_told(request: &str, text: &str) -> Option<bool> {
    const FEWEST: usize = 3;
    /// Longer ones are no sentences, and comparing all their terms would take quadratic time.
    const LONGEST: usize = 2000;
    let asked = terms(request);
    let needed = asked.len().div_ceil(2).min(6);
    let parts = sentences(text).flat_map(|sentence| sentence.split(';'));
    let mut sentences = parts.filter(|sentence| sentence.len() <= LONGEST);
    (asked.len() >= FEWEST).then(|| {
        sentences.any(|sentence| {
            let said = terms(sentence);
            asked.iter().filter(|term| said.contains(term)).count() >= needed
        })
    })
}

/// Whether a text has the last part of a path among the references: a summary shortens them.
fn names_part_of(references: &[Reference], text: &str) -> bool {
    let parts: Vec<Reference> = references
        .iter()
        .filter_map(|reference| {
            let name = reference
                .text
                .trim_end_matches('/')
                .rsplit(['/', ':', '#'])
                .next()?;
            (name.len() > 3).then(|| Reference {
                kind: ReferenceKind::Identifier,
                text: name.to_owned(),
            })
        })
        .collect();
    !ReferenceIndex::new(&parts).occurrences_in(text).is_empty()
}

/// The summary tells of a wish of the user that nobody had.
pub(crate) fn invented_order(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    histories.summary.as_deref()?;
    let conclusion = histories.conclusion.as_str();
    let orders = ORDER.find_iter(conclusion).filter_map(|verb| {
        let order = conclusion.get(verb.end()..)?;
        let end = ORDER_END.find(order).map_or(order.len(), |end| end.start());
        let order = order.get(..end)?;
        let mut references = references_in(order);
        references.retain(|reference| {
            !matches!(reference.kind, ReferenceKind::Number | ReferenceKind::Hash)
        });
        (!references.is_empty()).then(|| (order.to_owned(), references))
    });
    let orders: Vec<(String, Vec<Reference>)> = orders.collect();
    if orders.is_empty() {
        return None;
    }
    let typed: Vec<&str> = histories
        .typed()
        .chain(histories.earlier.iter().copied())
        .collect();
    let found = orders.into_iter().filter_map(|(order, references)| {
        let (severity, message) = if unknown(histories, &references).len() == references.len() {
            (
                histories.rejects_if_whole(),
                "it states a request of the user whose details occur nowhere",
            )
        } else if !typed.iter().any(|text| {
            !ReferenceIndex::new(&references)
                .occurrences_in(text)
                .is_empty()
                || names_part_of(&references, text)
        }) {
            (
                Verdict::Warn,
                "it states a request whose details the user never wrote",
            )
        } else {
            return None;
        };
        Some(Finding::new(severity, message, excerpt(&order)))
    });
    Some(found.collect())
}

/// A text without case and marks: `MouseFollow`, `mouse-follow` and `mouse_follow` are one name.
fn folded(text: &str) -> String {
    let letters = text.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

/// The references that occur nowhere before, neither whole nor, for a path, with its last part.
fn unknown(histories: &Histories<'_>, references: &[Reference]) -> Vec<String> {
    let index = ReferenceIndex::new(references);
    let mut known = BTreeSet::new();
    for text in histories.texts() {
        known.extend(index.occurrences_in(text));
    }
    let left = references
        .iter()
        .enumerate()
        .filter(|(at, _)| !known.contains(at));
    let all = LazyCell::new(|| histories.texts().map(folded).collect::<Vec<_>>().join("\n"));
    let left = left.filter(|(_, reference)| {
        let one = std::slice::from_ref(*reference);
        let name = folded(&reference.text);
        let is_part = histories.texts().any(|text| names_part_of(one, text));
        !(is_part || name.len() > 5 && all.contains(&name))
    });
    left.map(|(_, reference)| reference.text.clone()).collect()
}

/// The summary calls the prompt that asked for it a wish of the user.
pub(crate) fn prompt_as_request(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    histories.summary.as_deref()?;
    let is_true = histories.typed().any(|text| {
        let text = text.to_lowercase();
        ["summar", "compact", "总结", "總結", "压缩", "壓縮", "概括"]
            .iter()
            .any(|word| text.contains(word))
    });
    let found = PROMPT_AS_REQUEST
        .find(&histories.conclusion)
        .filter(|_| !is_true);
    let message = "the compaction prompt appears as a request of the user";
    let found = found.map(|found| Finding::warn(message, excerpt(found.as_str())));
    Some(found.into_iter().collect())
}

/// A prohibition of the user whose object the history after does not name.
pub(crate) fn rule_lost(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    /// Longer texts are mostly pasted.
    const LONGEST: usize = 3000;
    histories.summary.as_deref()?;
    let typed = histories
        .typed()
        .filter(|text| text.chars().count() < LONGEST);
    let rules: Vec<(&str, Vec<String>)> = typed
        .flat_map(|text| PROHIBITION.captures_iter(text))
        .filter_map(|captures| {
            let object = captures.get(1).or(captures.get(2))?.as_str();
            let words = object_words(object);
            (!words.is_empty()).then(|| (captures.get(0).map_or("", |whole| whole.as_str()), words))
        })
        .collect();
    if rules.is_empty() {
        return None;
    }
    let after: String = histories
        .after
        .iter()
        .map(|message| message.content.to_lowercase())
        .collect();
    let lost = rules
        .into_iter()
        .filter(|(_, words)| !words.iter().any(|word| after.contains(word.as_str())));
    let message = "a rule of the user is not repeated";
    let lost = lost.map(|(rule, _)| Finding::warn(message, excerpt(rule)));
    Some(lost.collect())
}

/// The words of a prohibition by which its object is known: references, else the beginnings of long Latin words, else signs.
fn object_words(object: &str) -> Vec<String> {
    let references = references_in(object);
    if !references.is_empty() {
        return references
            .iter()
            .map(|reference| reference.text.to_lowercase())
            .collect();
    }
    const STOPPED: WordList = WordList(
        "this that them these those anything something forget worry know want need think have just there \
        really yet please with",
    );
    let lower = object.to_lowercase();
    let words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() > 3 && !STOPPED.has(word));
    let stems: Vec<String> = words.map(|word| word.chars().take(6).collect()).collect();
    if !stems.is_empty() {
        return stems;
    }
    let signs: Vec<char> = lower
        .chars()
        .filter(|c| c.is_alphabetic() && !c.is_ascii())
        .collect();
    signs.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// What a todo tool noted as completed stands under the next steps.
pub(crate) fn done_reopened(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    let calls = histories
        .before
        .iter()
        .rev()
        .flat_map(|message| &message.tool_calls);
    let todos = calls.filter(|call| call.function.name.to_lowercase().contains("todo"));
    let lists = todos.filter_map(todo_items).map(|mut items| {
        items.retain(|(_, state)| matches!(state.as_str(), "completed" | "done"));
        items
    });
    let list = lists.into_iter().find(|done| !done.is_empty())?;
    let heading = NEXT_STEPS.find(&histories.conclusion)?;
    let steps = histories.conclusion.get(heading.end()..)?.trim_start();
    let end = HEADING
        .find_at(steps, steps.find('\n').unwrap_or(steps.len()))
        .map_or(steps.len(), |next| next.start());
    let steps = steps.get(..end)?.to_lowercase();
    let reopened = list
        .iter()
        .map(|(item, _)| item)
        .filter(|item| item.chars().count() > 8 && steps.contains(&item.to_lowercase()));
    let message = "a completed task is listed among the next steps";
    let reopened = reopened.map(|item| Finding::warn(message, excerpt(item)));
    Some(reopened.collect())
}

/// Many details that occur nowhere before.
pub(crate) fn invented_references(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    const MOST: f64 = 3.0;
    let summary = histories.summary.as_deref()?;
    if histories.options.begins_midway {
        return None;
    }
    // The names of tags belong to the form.
    let mut references = references_in(&TAG.replace_all(summary, " "));
    references.retain(|reference| {
        !matches!(
            reference.kind,
            ReferenceKind::Number | ReferenceKind::Command | ReferenceKind::ErrorLine
        )
    });
    if references.is_empty() {
        return None;
    }
    let mut unknown = unknown(histories, &references);
    let rate = 1000.0 * unknown.len() as f64 / estimate_tokens(summary).0.max(1) as f64;
    let is_found = rate > MOST && unknown.len() > 2;
    let message = format!(
        "{} details occur nowhere before: {:.1} per 1,000 tokens",
        unknown.len(),
        rate
    );
    unknown.truncate(5);
    let finding = || Finding::warn(message, unknown.join(", "));
    Some(is_found.then(finding).into_iter().collect())
}

/// A secret in the summary: where the history is stored, it is stored with it.
pub(crate) fn secret(histories: &Histories<'_>) -> Option<Vec<Finding>> {
    let summary = histories.summary.as_deref()?;
    let is_found = has_secret(summary)
        && !histories
            .kept
            .iter()
            .any(|message| has_secret(&message.content));
    let finding = || {
        Finding::warn(
            "it repeats what looks like a key or a password",
            "the summary",
        )
    };
    Some(is_found.then(finding).into_iter().collect())
}
