//! What the cells of one fixture share: each thing is made when the first cell needs it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::measure::ProbeMeasure;
use crate::pipeline::{PointIx, ProbeIx, TailMode};
use crate::plan::FixtureTexts;
use crate::probe::Probe;
use base::units::Tokens;
use lexical::KnownReferences;
use lexical::facts::History;
use sessions::references::{ReferenceIndex, SessionNoise, used_in};

/// What is needed to measure the cells of a fixture.
#[derive(Default)]
pub(super) struct Measures {
    pub(super) tokens: Arc<[Tokens]>,
    history: OnceCell<History>,
    known_references: RefCell<HashMap<PointIx, Rc<KnownReferences>>>,
    probes: RefCell<HashMap<(PointIx, ProbeIx), Rc<ProbeMeasure>>>,
    noise: OnceCell<SessionNoise>,
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
            Rc::new(ProbeMeasure::new(
                probe,
                self.history(texts),
                loaded.fixture.start()..end,
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
    ) -> ReferenceIndex {
        let messages = &texts.loaded().fixture.messages;
        let noise = self
            .noise
            .get_or_init(|| SessionNoise::from_messages(messages));
        let mut references = messages.get(message).map(used_in).unwrap_or_default();
        references.retain(|reference| !noise.has(reference));
        ReferenceIndex::new(&references)
    }

    pub(super) fn replaced(&self, texts: &FixtureTexts, point: PointIx) -> Tokens {
        let (start, end) = (texts.loaded().fixture.start(), texts.end(point));
        self.tokens.iter().take(end).skip(start).copied().sum()
    }
}
