//! A reply to an answer.

use std::sync::Arc;

use crate::action::Digest;
use models::ReadFault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The words, without white space around them; never empty.
    pub text: Arc<str>,
    /// Names the text: what the store keeps as `out`.
    pub out: Digest,
    /// Whether the token limit cut it off.
    pub truncated: bool,
}

/// Reads a reply's text. One that the token limit cut off is read like any other: whether it is graded is a setting,
/// and a setting of what is done with outputs must not change what is stored.
pub fn read(reply: &str, truncated: bool) -> Result<Answer, ReadFault> {
    let text = reply.trim();
    if text.is_empty() {
        return Err(ReadFault::Empty);
    }
    Ok(Answer { text: text.into(), out: Digest::hash(text), truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_around_an_answer_is_no_part_of_it() {
        assert_eq!(read(" 8080\n", false), read("8080", false));
        assert_eq!(read(" \n", true), Err(ReadFault::Empty));
    }
}
