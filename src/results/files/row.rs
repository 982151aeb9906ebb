//! The lines of the files of a results folder: a judged cell, a context, and a planted action in a context.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, CellCoordinate, Digest};
use crate::judge::{CriterionScore, Dimension};
use crate::measure::{AnswerWhenLost, ContextFacts, FactOutcome};
use crate::planted::{Graded, Kind, Position, Said, State, Target};
use crate::probe::ProbeType;
use guard::Verdict;
use lexical::InventedReferences;
use sessions::transcript::Point;

/// The version of the code that makes rows. Raised when a row of the same outputs would change.
pub const ROWS: u16 = 19;

/// One judged cell. Flat, with unrounded numbers; unknown values are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The fixture's name.
    pub fixture: String,
    /// The compression point, from 1.
    pub point: u32,
    /// The method's name.
    pub method: String,
    /// The run, from 1: the number of the compression.
    pub run: u32,
    /// The probe's id.
    pub probe: String,
    /// What the probe tests (`type` in the file).
    #[serde(rename = "type")]
    pub kind: ProbeType,
    /// The question as it was asked.
    pub question: String,
    /// The name of the answerer.
    pub answerer: String,
    /// The name of the judge.
    pub judge: String,
    /// The number of the answer within the run.
    pub answer_n: u32,
    /// The number of the judgement of that answer.
    pub judge_n: u32,
    /// The keys of the actions that the cell was made from.
    pub keys: RowKeys,
    /// Each criterion that applied, with its score and the judge's reason.
    pub criteria: Vec<CriterionScore>,
    /// Scores of the dimensions measured, 0 to 5.
    pub dimensions: BTreeMap<Dimension, f64>,
    /// Mean of the dimensions; for display only.
    pub overall: Option<f64>,
    /// Each expected fact with its outcome.
    pub facts: Vec<FactOutcome>,
    /// What the answer does if the context lost every expected fact; otherwise null.
    pub answer_when_lost: Option<AnswerWhenLost>,
    /// The heading of the compression prompt that the facts belong under by their words; null if there is none.
    pub heading: Option<String>,
    /// Superseded facts that the answer states as current.
    pub stale_facts: Vec<String>,
    /// The share of the expected facts that occur in the context; null if the context cannot be read.
    pub fact_survival: Option<f64>,
    /// The share that occurs in the summary alone; absent if the context is nothing but a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_survival: Option<f64>,
    /// How the context states the expected facts; null if it cannot be read, for paraphrases, and for a probe without
    /// facts.
    pub context_facts: Option<ContextFacts>,
    /// Whether the facts are rules of the user: the probe has the tag `constraint`.
    pub is_constraint: bool,
    /// On an unanswerable probe: whether the answer asserts something. Null elsewhere.
    pub fabricated: Option<bool>,
    /// Paths and identifiers in the answer that occur nowhere in the transcript.
    pub invented: Vec<String>,
    /// Tokens of the context; null if its provider did not report them.
    pub context_tokens: Option<u64>,
    /// Tokens of the messages that it replaces.
    pub replaced_tokens: Option<u64>,
    /// 1 − context tokens / replaced tokens.
    pub compression_ratio: Option<f64>,
    /// Tokens that it takes to find the lost facts again; null if unknown, and for a probe without facts.
    pub fetch_tokens: Option<u64>,
    /// How many lost facts occur in no message as a whole, so that `fetch_tokens` is unknown.
    pub refetch_unlocated: u32,
    /// Whether nothing in the context points to a message with a lost fact, so that all replaced messages have to be
    /// read.
    pub refetch_unguided: bool,
    /// What its actions cost when they were executed, in dollars.
    pub usd: RowCost,
    /// Whether the token limit cut the answer off.
    pub truncated: bool,
    /// The answerer's searches; null if it could not search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_book: Option<OpenBook>,
    /// The answer as it was graded.
    pub answer: String,
}

/// What an open-book answer got besides its context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenBook {
    /// The answerer that answers the same questions without a search.
    pub closed: String,
    /// The steps before the answering one.
    pub steps: Vec<RowStep>,
    /// The searches, in order.
    pub searches: Vec<RowSearch>,
    /// Tokens of everything that they returned.
    pub tokens: u64,
    /// Whether a message with a fact that the context lost was among the results; null if nothing was lost, there was
    /// no search, or the context cannot be read.
    pub gold_found: Option<bool>,
}

/// An action before the answering one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowStep {
    /// Its key.
    pub key: ActionKey,
    /// What it cost when it was executed, in dollars; null where no price is known.
    pub usd: Option<f64>,
}

/// A search that an answerer asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowSearch {
    /// The words searched for; empty if the request for the search was malformed.
    pub query: String,
    /// The indices of the messages that were returned, best first.
    pub messages: Vec<usize>,
    /// The text that the answerer got: excerpts, or why there was no search.
    pub returned: String,
}

impl Row {
    /// Where its judgement is in the matrix.
    pub fn place(&self) -> CellCoordinate {
        CellCoordinate {
            fixture: self.fixture.as_str().into(),
            point: Point(self.point),
            method: self.method.as_str().into(),
            run: self.run,
            variant: None,
            probe: Some(self.probe.as_str().into()),
            answerer: Some(self.answerer.as_str().into()),
            answer_n: Some(self.answer_n),
            step: None,
            judge: Some(self.judge.as_str().into()),
            judge_n: Some(self.judge_n),
        }
    }

    /// The actions behind it, each with its place in the matrix. Of an open-book answer, it is the first step.
    pub fn actions(&self) -> [(CellCoordinate, ActionKey); 3] {
        let judged = self.place();
        let answered = CellCoordinate {
            judge: None,
            judge_n: None,
            ..judged.clone()
        };
        let compressed = CellCoordinate {
            probe: None,
            answerer: None,
            answer_n: None,
            ..answered.clone()
        };
        let first = self.open_book.as_ref().and_then(|open| open.steps.first());
        let answer = first.map_or(self.keys.answer, |step| step.key);
        [
            (compressed, self.keys.compress),
            (answered, answer),
            (judged, self.keys.judge),
        ]
    }

    /// Its answerer by the name in designs: with or without a search, it is the same model with the same prompt.
    pub fn closed_answerer(&self) -> &str {
        self.open_book
            .as_ref()
            .map_or(self.answerer.as_str(), |open| open.closed.as_str())
    }
}

/// What the actions behind a cell cost when they were executed, even if they are cached now; null if no price is known,
/// 0 if no model was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowCost {
    /// The compression.
    pub compress: Option<f64>,
    /// The answer.
    pub answer: Option<f64>,
    /// The judgement.
    pub judge: Option<f64>,
}

/// The keys of the actions behind a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowKeys {
    /// The compression.
    pub compress: ActionKey,
    /// The answer.
    pub answer: ActionKey,
    /// The judgement.
    pub judge: ActionKey,
}

/// One compression. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextRow {
    /// The fixture's name.
    pub fixture: String,
    /// The compression point, from 1.
    pub point: u32,
    /// The method's name.
    pub method: String,
    /// The run, from 1.
    pub run: u32,
    /// The key of the compression that made the context.
    pub key: ActionKey,
    /// The digest of the context as it was read: equal digests mean identical contexts.
    pub context: Digest,
    /// Tokens of the context; null if only its provider can read it.
    pub tokens: Option<u64>,
    /// Tokens of the messages that it replaces.
    pub replaced_tokens: u64,
    /// Tokens of the user's messages that a vendor returned word for word with its item; absent if the context is not a
    /// vendor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_tokens: Option<u64>,
    /// How long the compression took when it was executed.
    pub seconds: Option<f64>,
    /// What it cost then, in dollars; null if no price is known.
    pub usd: Option<f64>,
    /// The number of requests to a model.
    pub calls: u32,
    /// Whether anything was compressed; if not, the method kept everything that it was asked to replace.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub compressed: bool,
    /// The share of the expected facts that it has, the mean over the probes asked at its point; null if none of them
    /// has literal facts, and if the context cannot be read.
    pub fact_survival: Option<f64>,
    /// The references of the context that the transcript before the point does not have; null if the log begins in the
    /// middle of a session, or the context cannot be read.
    pub invented: Option<InventedReferences>,
    /// What the guard found, by its rule, each with the severity; null for the ends of the scale, and if the context
    /// cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<BTreeMap<String, Verdict>>,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(compressed: &bool) -> bool {
    *compressed
}

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
    pub position: Position,
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
