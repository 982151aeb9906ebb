//! Seam: stands in for `judge::Rubric` until that lands.

/// A rubric as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    /// The text.
    pub text: String,
}
