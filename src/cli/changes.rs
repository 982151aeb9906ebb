//! What differs between the inputs of two actions, as `why` and `cache show` print it: the reason in words, then the lines
//! that differ in each text.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::action::{CellCoordinate, Digest};
use crate::pipeline::{Pipeline, data_files};
use crate::plan::{Change, FindText, Hunk, Reason, StaleCause, hunks, source_texts};
use crate::probe::ParsedBank;
use crate::report::{Block, TextStyle};
use base::locale::Locale;
use base::say;
use base::text::line_and_column;
use sessions::transcript::{ParsedFixture, render};
use store::cache::{CacheSnapshot, Lookup};

/// Lines shown before and after those that differ.
pub(crate) const AROUND: usize = 1;

/// The texts that a change can be explained with: those of the project as it is, and those that the cache has.
pub(crate) fn known_texts<'a>(
    pipeline: Option<&Pipeline>,
    snapshot: &'a CacheSnapshot,
) -> impl Fn(&Digest) -> Option<String> + use<'a> {
    let mut current = HashMap::new();
    if let Some(pipeline) = pipeline {
        let sources = source_texts(pipeline);
        current.extend(sources.map(|source| (source.digest, source.text.to_owned())));
        current.extend(data_files(pipeline).map(|file| (file.digest, file.text.to_string())));
    }
    move |digest| {
        let known = current.get(digest).cloned();
        known.or_else(|| snapshot.read_text(digest))
    }
}

/// A reason, and the lines in which texts differ, for what was made for `place`.
pub(crate) fn reason_blocks(
    reason: &Reason,
    style: TextStyle,
    place: Option<&CellCoordinate>,
    text: FindText<'_>,
    locale: Locale,
) -> Vec<Block> {
    let words = reason.words(text).join(locale.pick("; ", "；"));
    let colon = if words.is_empty() {
        ""
    } else {
        locale.pick(": ", "：")
    };
    let cause = reason.cause.words(locale);
    let mut blocks = vec![Block::Sentence(style, format!("{cause}{colon}{words}"))];
    for change in &reason.changes {
        let block = match edited_lines(change, place, text, locale) {
            Some((name, lines)) if !lines.is_empty() => Block::Diff(name, lines, 0),
            None if lacks_file(change, text) => {
                let missing = say!(
                    locale,
                    "{}: the earlier text is not in this cache",
                    "{}：此缓存中没有之前的文本",
                    change.what
                );
                Block::Sentence(TextStyle::Dim, missing)
            }
            _ => continue,
        };
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

/// Whether the earlier text of a file is not stored, which happens where the entry was pulled; outputs come and go.
fn lacks_file(change: &Change, text: FindText<'_>) -> bool {
    let is_unknown = |(old, _): (Digest, Digest)| text(&old).is_none();
    change.cause != StaleCause::Upstream && change.texts.is_some_and(is_unknown)
}

/// The lines of a unified diff of what has changed, with the name of the text; `None` if a text is not known.
pub(crate) fn edited_lines(
    change: &Change,
    place: Option<&CellCoordinate>,
    text: FindText<'_>,
    locale: Locale,
) -> Option<(String, Vec<String>)> {
    let (old, new) = change.texts?;
    let (old, new) = (text(&old)?, text(&new)?);
    let whole = || (change.what.clone(), hunks(&old, &new, AROUND));
    let (name, edited) = match change.cause {
        // In the file a message is one line, however long.
        StaleCause::Span => {
            let messages = |file: &str| messages_before(file, place?);
            match messages(&old).zip(messages(&new)) {
                Some((old, new)) => (
                    say!(
                        locale,
                        "{}, as models read it",
                        "{}（模型读到的内容）",
                        change.what
                    ),
                    hunks(&old, &new, AROUND),
                ),
                None => whole(),
            }
        }
        StaleCause::Probe => {
            let lines = lines_of_probe(&new, place?.probe.as_deref()?)?;
            let mut edited = hunks(&old, &new, AROUND);
            edited.retain(|hunk| is_within(hunk, &lines));
            let path = change.what.rsplit_once(": ").map(|(path, _)| path);
            (path.unwrap_or(&change.what).to_owned(), edited)
        }
        _ => whole(),
    };
    Some((name, edited.iter().flat_map(Hunk::unified).collect()))
}

/// The messages of a fixture before the point of a place, as one text.
fn messages_before(fixture: &str, place: &CellCoordinate) -> Option<String> {
    let fixture = ParsedFixture::read(fixture).ok()?.fixture;
    let points = fixture.effective_points();
    let at = (place.point.0 as usize).checked_sub(1);
    let end = at.and_then(|at| points.get(at).copied());
    let end = end.unwrap_or(fixture.messages.len());
    Some(render(fixture.messages.get(fixture.start()..end)?))
}

/// The lines, from 1, that a probe has in its bank.
fn lines_of_probe(bank: &str, id: &str) -> Option<RangeInclusive<usize>> {
    let parsed = ParsedBank::read(bank).ok()?;
    let mut probes = parsed.bank.probes.iter();
    let bytes = &parsed
        .places
        .get(probes.position(|probe| *probe.id.0 == *id)?)?
        .probe;
    let [(first, _), (last, _)] = [bytes.start, bytes.end].map(|at| line_and_column(bank, at));
    Some(first..=last)
}

/// Whether a line of these has changed.
fn is_within(hunk: &Hunk, lines: &RangeInclusive<usize>) -> bool {
    let mut at = hunk.line;
    hunk.lines.iter().any(|line| {
        let here = at;
        at += usize::from(!line.starts_with('-'));
        !line.starts_with(' ') && lines.contains(&here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::Console;
    use sessions::transcript::Point;

    fn change(cause: StaleCause, what: &str, old: &str, new: &str) -> Change {
        Change {
            cause,
            what: what.to_owned(),
            values: None,
            texts: Some((Digest::hash(old), Digest::hash(new))),
        }
    }

    /// What is printed of a change if only these texts are stored.
    fn told(change: Change, stored: &[&str], place: Option<&CellCoordinate>) -> String {
        let text = |digest: &Digest| {
            let mut stored = stored.iter();
            let found = stored.find(|text| Digest::hash(text) == *digest);
            found.map(ToString::to_string)
        };
        let blocks = reason_blocks(
            &Reason::from(vec![change]),
            TextStyle::Plain,
            place,
            &text,
            Locale::En,
        );
        let text = crate::report::styled(&blocks, usize::MAX);
        Console::default().for_output(&text).into_owned()
    }

    #[test]
    fn a_text_that_the_cache_lacks_is_named() {
        let told = |cause, stored: &[&str]| {
            told(change(cause, "prompts/a.md", "old", "new"), stored, None)
        };
        let missing = "prompts/a.md: the earlier text is not in this cache\n";
        assert!(told(StaleCause::Prompt, &["new"]).ends_with(missing));
        assert!(told(StaleCause::Prompt, &["old", "new"]).contains("\n  -old\n  +new\n"));
        let output = told(StaleCause::Upstream, &["new"]);
        assert_eq!(output, "upstream output changed: prompts/a.md\n");
        // What cannot be compared for another reason is not called missing.
        for stored in [&["old"][..], &["old", "new"]] {
            let output = told(StaleCause::Probe, stored);
            assert_eq!(output, "probe text: prompts/a.md\n");
        }
    }

    #[test]
    fn a_fixture_that_is_no_session_is_compared_as_a_text() {
        let (old, new) = ("no session\n", "no session now\n");
        let change = change(StaleCause::Span, "fixtures/a.json", old, new);
        let output = told(change, &[old, new], None);
        assert!(
            output.ends_with("  -no session\n  +no session now\n"),
            "{output}"
        );
    }

    #[test]
    fn a_bank_with_a_colon_in_its_name_is_named_whole() {
        let bank = |question: &str| {
            let probe = serde_json::json!(
                {"id": "a", "type": "recall", "question": question, "expected_facts": [["x"]]}
            );
            serde_json::json!({"fixture": "c", "probes": [probe]}).to_string()
        };
        let (old, new) = (bank("Which?"), bank("Which one?"));
        let what = "probes/b: c.json: question of a";
        let change = change(StaleCause::Probe, what, &old, &new);
        let place = CellCoordinate {
            fixture: "c".into(),
            point: Point(1),
            method: "full".into(),
            run: 1,
            variant: None,
            probe: Some("a".into()),
            answerer: None,
            answer_n: None,
            step: None,
            judge: None,
            judge_n: None,
        };
        let output = told(change, &[&old, &new], Some(&place));
        assert!(output.contains("\nprobes/b: c.json\n"), "{output}");
    }

    #[test]
    fn only_what_changed_within_the_lines_counts() {
        let text = "a\nb\nc\nd\n";
        let edited = hunks(text, "a\nb\nc\nD\n", 1);
        let within: Vec<bool> = edited
            .iter()
            .map(|hunk| is_within(hunk, &(2..=3)))
            .collect();
        assert_eq!(
            (within, is_within(&edited[0], &(4..=4))),
            (vec![false], true)
        );
    }
}
