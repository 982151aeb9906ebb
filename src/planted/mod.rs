//! Planted items: what an agent must do or leave after its history was compressed, asked exactly and graded without a
//! judge.
//!
//! An item is a short exchange put into a recorded session, in memory only, with an object that the session does not
//! mention. The answerer is asked twice from the compressed context: what it does next, and what it knows of each
//! action. All of it is pure: the same session, set and seed give the same variants, requests and grades.
//!
//! Deliberately absent: asking models; names of methods.

mod grade;
mod plant;
mod request;
mod set;

pub use grade::{Graded, ReplyFault, Said, grade_next, grade_states};
pub use plant::{Planting, Session, Variant, plant};
pub use request::{NEXT_STEP, Request, STATE};
pub use set::PlantedSet;

use std::sync::Arc;

use base::named_enum;
use lexical::claims::Rule;
use schemars::JsonSchema;

named_enum! {
    /// What is planted.
    #[derive(JsonSchema)]
    pub enum Kind {
        /// The user asks for it after the current work, and nobody does it.
        Open = "open",
        /// Asked for, done and confirmed.
        Done = "done",
        /// Asked for, and taken back before it was done.
        Cancelled = "cancelled",
        /// An order with another object in place of the first.
        Replaced = "replaced",
        /// The user forbids it.
        Rule = "rule",
        /// A note in a file, from one third person to another.
        Quoted = "quoted",
        /// Started in the background, its end not seen.
        Running = "running",
    }
}

named_enum! {
    /// What is true of an action, or said of it.
    pub enum State {
        /// Asked for, and not done.
        Open = "open",
        /// Done.
        Done = "done",
        /// Taken back, or replaced by another order.
        Cancelled = "cancelled",
        /// The user said never.
        Forbidden = "forbidden",
        /// Begun, its end not seen.
        Started = "started",
        /// Mentioned, but not by the user.
        NobodyAsked = "nobody asked us",
        /// Not mentioned.
        NotInContext = "not in the context",
    }
}

named_enum! {
    /// Where an item is inserted: in which third, by tokens, of what the first compression removes.
    pub enum Position {
        /// The first third.
        Early = "early",
        /// The second third.
        Middle = "middle",
        /// The last third.
        Late = "late",
    }
}

impl Kind {
    /// The state that its action is in after the exchange; of `replaced`, that of the newer order.
    pub fn state(self) -> State {
        match self {
            Kind::Open | Kind::Replaced => State::Open,
            Kind::Done => State::Done,
            Kind::Cancelled => State::Cancelled,
            Kind::Rule => State::Forbidden,
            Kind::Quoted => State::NobodyAsked,
            Kind::Running => State::Started,
        }
    }
}

impl State {
    /// Whether the right next step is to do it.
    pub fn is_open(self) -> bool {
        self == State::Open
    }
}

/// One action of an item: what is true of it, and its decoy, an action in the same words on an object that occurs
/// nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The name of the item in its set.
    pub item: Arc<str>,
    /// What was planted.
    pub kind: Kind,
    /// In which third of what the first compression replaces.
    pub position: Position,
    /// What the action is done to.
    pub object: String,
    /// The state after the exchange.
    pub truth: State,
    /// What the agent was given to look at a job that it started.
    pub handle: Option<String>,
    /// The sentence that forbids it, of a rule.
    pub rule: Option<Rule>,
    /// The action in words, its object in backticks.
    pub(crate) action: String,
    pub(crate) decoy_action: String,
}

/// A session for tests to plant into.
#[cfg(test)]
pub(crate) mod fakes {
    use sessions::transcript::{Message, Role};

    /// So many messages of these words, by the user and the agent in turn.
    pub(crate) fn session(words: &str, messages: usize) -> Vec<Message> {
        let message = |at: usize| {
            let role = if at.is_multiple_of(2) {
                Role::User
            } else {
                Role::Assistant
            };
            Message::text(role, format!("{at}: {}", words.repeat(60)))
        };
        (0..messages).map(message).collect()
    }
}
