//! What a text claims, read by rules in English and Chinese: whether it admits ignorance, denies a fact, states a
//! superseded value as current, or repeats a rule of the user.

mod abstention;
mod currency;
mod denial;
#[cfg(test)]
mod literal_cases_tests;
mod rule;
mod states;

pub use abstention::{abstains, asserts};
pub use currency::{stated_as_current, stated_last, statements};
pub use denial::{asks_for_rejection, is_denied};
pub use rule::{Rule, RuleFinder, RuleSurvival, language_of};
