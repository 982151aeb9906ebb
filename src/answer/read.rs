//! A reply to an answer.

use std::sync::Arc;

use crate::action::Digest;
use crate::provider::ReadFault;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The words, without white space around them; never empty.
    pub text: Arc<str>,
    /// Names the text: what the store keeps as `out`.
    pub out: Digest,
}

/// Reads a reply's text.
///
/// # Errors
/// A reply that says nothing.
pub fn read(reply: &str) -> Result<Answer, ReadFault> {
    let text = reply.trim();
    if text.is_empty() {
        return Err(ReadFault::Empty);
    }
    Ok(Answer { text: text.into(), out: Digest::of(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_around_an_answer_is_no_part_of_it() {
        assert_eq!(read(" 8080\n"), read("8080"));
        assert_eq!(read(" \n"), Err(ReadFault::Empty));
    }
}
