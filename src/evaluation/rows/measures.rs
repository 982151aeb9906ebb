//! What the cells of one fixture share: each thing is made when the first cell needs it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::action::BuiltInStrategy;
use crate::compress::{self, Context};
use crate::measure::{
    KnownReferences, NeededAtPoint, ProbeMeasure, ProseEntries, SessionReferences,
};
use crate::pipeline::{JudgeCell, MethodIx, PointIx, ProbeIx, TailMode};
use crate::plan::FixtureTexts;
use crate::probe::Probe;
use crate::results::{ContextRow, Row};
use base::message::Message;
use base::units::Tokens;
use lexical::facts::History;
use sessions::references::{ReferenceIndex, SessionNoise, used_in};
use sessions::transcript::{count_tokens, fold_document};

/// What is needed to measure the cells of a fixture.
#[derive(Default)]
pub(super) struct Measures {
    pub(super) tokens: Arc<[Tokens]>,
    history: OnceCell<History>,
    session: OnceCell<SessionReferences>,
    needed: RefCell<HashMap<PointIx, Rc<NeededAtPoint>>>,
    known_references: RefCell<HashMap<PointIx, Rc<KnownReferences>>>,
    /// By point and size, the recall of the newest messages.
    newest_recalls: RefCell<HashMap<(PointIx, Tokens), Option<f64>>>,
    probes: RefCell<HashMap<(PointIx, ProbeIx), Rc<ProbeMeasure>>>,
    /// The row of the last context of each method at each point.
    pub(super) contexts: RefCell<HashMap<(PointIx, MethodIx), ContextRow>>,
    /// The last row of each group of cells with the same actions, by the first cell of the group, until its last one.
    pub(super) cells: RefCell<HashMap<JudgeCell, Row>>,
    /// The exact tokens of messages that have facts.
    distinctive_references: RefCell<HashMap<usize, Rc<ReferenceIndex>>>,
    noise: OnceCell<SessionNoise>,
    /// The folded texts of messages that searches returned.
    folded: RefCell<HashMap<usize, Rc<str>>>,
}

impl Measures {
    /// Nothing is measured yet; `tokens` are those of the messages.
    pub(super) fn new(tokens: Arc<[Tokens]>) -> Measures {
        Measures {
            tokens,
            ..Measures::default()
        }
    }

    pub(super) fn history(&self, texts: &FixtureTexts) -> &History {
        self.history.get_or_init(|| texts.loaded().history())
    }

    pub(super) fn known_references(
        &self,
        texts: &FixtureTexts,
        point: PointIx,
    ) -> Rc<KnownReferences> {
        let mut known = self.known_references.borrow_mut();
        let known = known.entry(point).or_insert_with(|| {
            Rc::new(KnownReferences::new(
                &texts.loaded().fixture.messages,
                texts.end(point),
            ))
        });
        known.clone()
    }

    pub(super) fn probe(
        &self,
        texts: &FixtureTexts,
        point: PointIx,
        ix: ProbeIx,
        probe: &Probe,
        tail: TailMode,
    ) -> Rc<ProbeMeasure> {
        let mut probes = self.probes.borrow_mut();
        let measure = probes.entry((point, ix)).or_insert_with(|| {
            let loaded = texts.loaded();
            let end = texts.end(point);
            let until = if tail == TailMode::Verbatim {
                loaded.fixture.messages.len()
            } else {
                end
            };
            let points = loaded
                .points
                .get(..=point.0)
                .unwrap_or(std::slice::from_ref(&end));
            let start = loaded.fixture.start();
            Rc::new(ProbeMeasure::new(
                probe,
                self.history(texts),
                start,
                points,
                until,
                self.tokens.clone(),
            ))
        });
        measure.clone()
    }

    /// The exact tokens of a message, without those that occur everywhere in the session.
    pub(super) fn distinctive_references(
        &self,
        texts: &FixtureTexts,
        message: usize,
    ) -> Rc<ReferenceIndex> {
        let messages = &texts.loaded().fixture.messages;
        let mut indices = self.distinctive_references.borrow_mut();
        let index = indices.entry(message).or_insert_with(|| {
            let noise = self
                .noise
                .get_or_init(|| SessionNoise::from_messages(messages));
            let mut references = messages.get(message).map(used_in).unwrap_or_default();
            references.retain(|reference| !noise.has(reference));
            Rc::new(ReferenceIndex::new(&references))
        });
        index.clone()
    }

    /// A message with its calls, folded so that facts can be searched in it.
    pub(super) fn folded_message(&self, texts: &FixtureTexts, at: usize) -> Rc<str> {
        let mut folded = self.folded.borrow_mut();
        let text = folded.entry(at).or_insert_with(|| {
            let message = texts.loaded().fixture.messages.get(at);
            fold_document(&message.map(Message::countable_text).unwrap_or_default()).into()
        });
        text.clone()
    }

    /// What the session needs after a point; `None` if the point is at the end.
    pub(super) fn needed(&self, texts: &FixtureTexts, point: PointIx) -> Option<Rc<NeededAtPoint>> {
        let loaded = texts.loaded();
        if texts.end(point) >= loaded.fixture.messages.len() {
            return None;
        }
        if let Some(known) = self.needed.borrow().get(&point) {
            return Some(known.clone());
        }
        let session = self
            .session
            .get_or_init(|| SessionReferences::from_fixture(&loaded.fixture));
        let points = loaded.points.get(..=point.0)?;
        let found = Rc::new(session.needed(points, &self.tokens, self.history(texts)));
        self.needed.borrow_mut().insert(point, found.clone());
        Some(found)
    }

    /// The recall of the newest messages of this size; `None` if nothing is needed after the point.
    pub(super) fn newest_recall(
        &self,
        texts: &FixtureTexts,
        point: PointIx,
        size: Tokens,
    ) -> Option<f64> {
        if let Some(known) = self.newest_recalls.borrow().get(&(point, size)) {
            return *known;
        }
        let needed = self.needed(texts, point)?;
        let messages = texts.prefix_messages(point);
        let newest = compress::compute(
            BuiltInStrategy::Truncate,
            Some(size),
            messages,
            &count_tokens,
        )
        .ok();
        let newest = newest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let newest = newest.and_then(|messages| Context::Readable { messages }.text());
        let recall = newest
            .and_then(|text| needed.mean_recall(&needed.presence(&ProseEntries::from_text(&text))));
        self.newest_recalls
            .borrow_mut()
            .insert((point, size), recall);
        recall
    }

    pub(super) fn replaced(&self, texts: &FixtureTexts, point: PointIx) -> Tokens {
        let (start, end) = (texts.loaded().fixture.start(), texts.end(point));
        self.tokens.iter().take(end).skip(start).copied().sum()
    }
}
