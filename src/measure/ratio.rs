//! The compression ratio: how much of the replaced messages is gone.

use crate::units::Tokens;

/// 1 − context / replaced, in tokens: 1 keeps nothing, 0 keeps as much as there was, below 0 grew. `None` where
/// nothing was replaced.
pub fn compression_ratio(context: Tokens, replaced: Tokens) -> Option<f64> {
    (replaced.0 > 0).then(|| 1.0 - context.0 as f64 / replaced.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_needs_something_to_replace() {
        assert_eq!(compression_ratio(Tokens(250), Tokens(1000)), Some(0.75));
        assert_eq!(compression_ratio(Tokens(0), Tokens(1000)), Some(1.0));
        assert_eq!(compression_ratio(Tokens(2000), Tokens(1000)), Some(-1.0));
        assert_eq!(compression_ratio(Tokens(5), Tokens(0)), None);
    }
}
