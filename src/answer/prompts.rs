//! The built-in prompts.

use crate::action::{BuiltInTemplate, Template, Variable};
use base::locale::Locale;

/// The variables an answer prompt may use.
pub const VARIABLES: &[Variable] = &["context", QUESTION];

/// The variable in which the requests from one context differ.
pub const QUESTION: Variable = "question";

static PROMPT: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/answer.md"),
    include_str!("../../assets/prompts/zh/answer.md"),
    VARIABLES,
);

/// The built-in answer prompt: the context first and the question last, so that all questions to one context begin
/// with the same text and a provider's prompt cache can serve it.
pub fn built_in(locale: Locale) -> Template {
    PROMPT.get(locale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn questions_to_one_context_differ_only_at_the_end() {
        for locale in [Locale::En, Locale::Zh] {
            let text = |question: &str| {
                let values = vec![("context", "C".repeat(500).into()), ("question", question.into())];
                let prompt = built_in(locale).fill("prompt", values).expect("fills");
                prompt.text(&|_| Ok::<_, Infallible>("".into())).expect("text").to_string()
            };
            let (one, two) = (text("Which port?"), text("Why that port?"));
            let common = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
            assert!(one.len() - common <= "Which port?\n".len() + 1, "{common} of {}", one.len());
        }
    }

    #[test]
    fn an_empty_context_is_not_quoted_as_one() {
        for locale in [Locale::En, Locale::Zh] {
            let prompt = built_in(locale).fill("prompt", vec![("context", "".into()), ("question", "q".into())]);
            let text = prompt.expect("fills").text(&|_| Ok::<_, Infallible>("".into())).expect("text");
            assert!(!text.contains("<context>"));
        }
    }
}
