//! Mistakes in files that a user wrote: what is wrong, where, and what to do.
//!
//! A fault has a byte range of a text and no path; the caller that opened the file adds its name.

use std::ops::Range;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// One sentence: what was found and what was expected.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Byte range in the text of the file.
    pub place: Range<usize>,
}

impl Fault {
    /// A fault with what to do about it.
    pub fn at(place: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault {
            message: message.into(),
            help: Some(help.into()),
            place,
        }
    }

    /// An unknown key of a table or object (`of`), with the nearest known one.
    pub fn unknown_key(place: Range<usize>, key: &str, of: &str, known: &[&str]) -> Fault {
        Fault::at(
            place,
            format!("unknown key `{key}` in {of}"),
            suggestion(key, known),
        )
    }

    /// The fault of a JSON text that starts at byte `offset` of `text`.
    pub fn json(text: &str, offset: usize, error: &serde_json::Error, help: &str) -> Fault {
        let line_start: usize = text
            .get(offset..)
            .unwrap_or("")
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let place = (offset + line_start + error.column().saturating_sub(1))
            .min(text.len().saturating_sub(1));
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
        Fault::at(place..(place + 1).min(text.len()), message, help)
    }
}

/// The byte range of `part`, a slice of `text`.
pub fn place_of(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize)
        .saturating_sub(text.as_ptr() as usize)
        .min(text.len());
    start..(start + part.len()).min(text.len())
}

/// The name among `known` that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness = known
        .iter()
        .map(|candidate| (*candidate, strsim::jaro_winkler(&name, candidate)));
    let (best, likeness) = likeness.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (likeness >= 0.75).then_some(best)
}

/// A sentence that names the nearest of `known`, or all of them.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_a_typing_mistake_and_nothing_else() {
        assert_eq!(
            nearest("wieght", &["id", "weight", "question"]),
            Some("weight")
        );
        assert_eq!(nearest("colour", &["id", "weight"]), None);
    }

    #[test]
    fn a_part_is_found_at_its_place() {
        let text = "one two";
        assert_eq!(place_of(text, &text[4..]), 4..7);
    }
}
