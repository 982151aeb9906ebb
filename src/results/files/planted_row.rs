//! A line of `planted.jsonl`: what became of one planted action in one context.

use serde::{Deserialize, Serialize};

use crate::action::ActionKey;
use crate::planted::{Graded, Kind, Said, State, Target};
use lexical::claims::RulePosition;

/// One planted action in one context; an item of the kind `replaced` has two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedRow {
    /// The name of the fixture.
    pub fixture: String,
    /// The number of the variant, from 1.
    pub variant: u32,
    /// The name of the method.
    pub method: String,
    /// The run, which is the first: variants take the place of repetitions.
    pub run: u32,
    /// The point, from 1, which is how many compressions the item has been through.
    pub point: u32,
    /// The key of the compression.
    pub key: ActionKey,
    /// Whether anything was compressed.
    pub compressed: bool,
    /// The kind and name of the item.
    pub item: String,
    /// What was planted.
    pub kind: Kind,
    /// In which third of what the first compression replaces.
    pub position: RulePosition,
    /// The object of the action.
    pub object: String,
    /// Whether the next step does it; null without a reply in form.
    pub done: Option<bool>,
    /// Whether it does the decoy.
    pub decoy_done: Option<bool>,
    /// What is true.
    pub state: State,
    /// What the reply says; null without one in form.
    pub said: Option<State>,
    /// What it says of the decoy; null where it was not asked about it.
    pub decoy_said: Option<State>,
    /// Of a running job: whether the reply has its handle.
    pub handle: Option<bool>,
    /// Of a rule: whether the context has it word for word; null where only its provider can read it.
    pub literal: Option<bool>,
    /// Of a rule: word for word, or its object and a prohibition in one sentence.
    pub near_literal: Option<bool>,
}

impl PlantedRow {
    /// Adds what the next step does.
    pub(crate) fn note_next(&mut self, found: &Graded<bool>) {
        self.done = Some(found.target);
        self.decoy_done = found.decoy;
    }

    /// Adds what was said of the state.
    pub(crate) fn note_state(&mut self, found: &Graded<Said>, target: &Target) {
        self.said = Some(found.target.state);
        self.decoy_said = found.decoy.as_ref().map(|said| said.state);
        self.handle =
            (target.handle.as_ref()).map(|handle| found.target.handle.as_ref() == Some(handle));
    }

    /// Whether a closed action is done all the same; `None` of an open action, of a running job, and without a reply.
    pub(crate) fn is_resurrected(&self) -> Option<bool> {
        match (self.state, self.kind) {
            (State::Open, _) | (_, Kind::Running) => None,
            _ => self.done,
        }
    }

    /// Whether an open action is left, or a running job started again or without its handle; `None` of others, and
    /// without a reply.
    pub(crate) fn is_forgotten(&self) -> Option<bool> {
        match (self.state, self.kind) {
            (State::Open, _) => self.done.map(|done| !done),
            (_, Kind::Running) => Some(self.done? || !self.handle?),
            _ => None,
        }
    }

    /// Whether it is resurrected or forgotten.
    pub(crate) fn is_wrong(&self) -> Option<bool> {
        self.is_resurrected().or_else(|| self.is_forgotten())
    }

    /// Whether the next step, and of a job the handle, are right.
    pub fn is_right(&self) -> Option<bool> {
        self.is_wrong().map(|wrong| !wrong)
    }

    /// Whether the state is right.
    pub(crate) fn is_state_right(&self) -> Option<bool> {
        Some(self.said? == self.state && self.handle != Some(false))
    }

    /// Whether a wrong state can do harm: to have dropped what needs nothing is right for a compactor.
    pub(crate) fn is_harmful(&self) -> Option<bool> {
        let is_right = self.is_state_right()?;
        let is_dropped = self.said == Some(State::NotInContext);
        let needs_nothing = matches!(
            self.state,
            State::Done | State::Cancelled | State::NobodyAsked
        );
        Some(!(is_right || is_dropped && needs_nothing))
    }
}
