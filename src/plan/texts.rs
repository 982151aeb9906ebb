//! The texts that prompts are made of.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use crate::action::InputValue;
use crate::compress::{Kept, Method, Shape, SpanText};
use crate::judge::JudgeQuestion;
use crate::pipeline::{Chain, FixtureIx, JudgeIx, LoadedFixture, PointIx, ProbeIx, VariantIx};
use lexical::search::SearchIndex;
use models::ToolOffer;
use sessions::transcript::{Message, count_tokens, estimate_tokens, tool_schemas};

/// The texts of one fixture that prompts are made of, each made when first needed and shared by all tasks.
#[derive(Debug)]
pub struct FixtureTexts {
    ix: FixtureIx,
    variant: Option<VariantIx>,
    loaded: LoadedFixture,
    points: Vec<PointTexts>,
    /// The tool schemas as JSON.
    tools: OnceCell<Arc<str>>,
    tool_offer: OnceCell<Option<ToolOffer>>,
    /// The index of all messages, each at its position in the session.
    search_index: OnceCell<SearchIndex>,
    /// The parts of requests to judges that do not depend on the answer.
    pub(super) questions: RefCell<HashMap<(ProbeIx, JudgeIx), Rc<JudgeQuestion>>>,
}

#[derive(Debug, Default)]
struct PointTexts {
    span: OnceCell<SpanText>,
    prefix: OnceCell<SpanText>,
    tail: OnceCell<SpanText>,
    is_worth_warming: OnceCell<bool>,
    /// The cuts of the history by shape: methods of the same shape share them.
    kept: RefCell<BTreeMap<Shape, Rc<Kept>>>,
}

impl FixtureTexts {
    /// The texts of `loaded`, none of them made yet.
    pub fn new(ix: FixtureIx, loaded: &LoadedFixture) -> FixtureTexts {
        let points = loaded
            .points
            .iter()
            .map(|_| PointTexts::default())
            .collect();
        FixtureTexts {
            ix,
            variant: None,
            loaded: loaded.clone(),
            points,
            tools: OnceCell::new(),
            tool_offer: OnceCell::new(),
            search_index: OnceCell::new(),
            questions: RefCell::default(),
        }
    }

    /// The texts of `chain`: of `loaded`, with what the chain plants.
    pub fn from_chain(chain: Chain, loaded: &LoadedFixture) -> FixtureTexts {
        let Some(variant) = chain.variant else {
            return FixtureTexts::new(chain.fixture, loaded);
        };
        let texts = FixtureTexts::new(chain.fixture, &loaded.with_variant(variant));
        FixtureTexts {
            variant: Some(variant),
            ..texts
        }
    }

    pub fn fixture(&self) -> FixtureIx {
        self.ix
    }

    /// Whether these are the texts of `chain`.
    pub fn are_of(&self, chain: Chain) -> bool {
        (self.ix, self.variant) == (chain.fixture, chain.variant)
    }

    /// The fixture and its bank.
    pub fn loaded(&self) -> &LoadedFixture {
        &self.loaded
    }

    fn slice(&self, from: usize, to: usize) -> &[Message] {
        self.loaded
            .fixture
            .messages
            .get(from..to)
            .unwrap_or_default()
    }

    /// Index of the first message after the point.
    pub fn end(&self, point: PointIx) -> usize {
        self.loaded.end(point)
    }

    /// All messages before the point, a leading system message left out.
    pub fn prefix_messages(&self, point: PointIx) -> &[Message] {
        self.slice(self.loaded.fixture.start(), self.end(point))
    }

    /// Index of the first message that `point` replaces.
    pub fn span_start(&self, point: PointIx) -> usize {
        let before = point.0.checked_sub(1).map(PointIx);
        before.map_or(self.loaded.fixture.start(), |p| self.end(p))
    }

    fn span_messages(&self, point: PointIx) -> &[Message] {
        self.slice(self.span_start(point), self.end(point))
    }

    /// The messages that `point` replaces, in the forms that work is made of.
    pub fn span(&self, point: PointIx) -> SpanText {
        self.points[point.0]
            .span
            .get_or_init(|| SpanText::from_messages(self.span_messages(point)))
            .clone()
    }

    /// All messages before the point, in the same forms.
    pub fn prefix(&self, point: PointIx) -> SpanText {
        self.points[point.0]
            .prefix
            .get_or_init(|| SpanText::from_messages(self.prefix_messages(point)))
            .clone()
    }

    /// The messages before the point as `method` cuts them; `None` if it keeps nothing beside its summary.
    pub fn kept(&self, method: &Method, point: PointIx) -> Option<Rc<Kept>> {
        let shape = method.strategy.shape()?;
        let start = self.loaded.fixture.start();
        let earlier = point
            .0
            .checked_sub(1)
            .map(|before| self.end(PointIx(before)).saturating_sub(start));
        let mut known = self.points[point.0].kept.borrow_mut();
        let kept = known.entry(shape);
        Some(
            kept.or_insert_with(|| {
                Rc::new(shape.cut(self.prefix_messages(point), earlier, &count_tokens))
            })
            .clone(),
        )
    }

    /// The messages after the point, in the same forms.
    pub fn tail(&self, point: PointIx) -> SpanText {
        let messages = || self.slice(self.end(point), self.loaded.fixture.messages.len());
        self.points[point.0]
            .tail
            .get_or_init(|| SpanText::from_messages(messages()))
            .clone()
    }

    /// The schemas of the session's tools, as a JSON array.
    pub fn tools(&self) -> Arc<str> {
        let schemas = || serde_json::Value::from(tool_schemas(&self.loaded.fixture));
        self.tools
            .get_or_init(|| schemas().to_string().into())
            .clone()
    }

    /// The session's tools as a request declares them; `None` if it has none.
    pub fn tool_offer(&self) -> Option<&ToolOffer> {
        self.tool_offer
            .get_or_init(|| ToolOffer::from_recorded(&tool_schemas(&self.loaded.fixture)))
            .as_ref()
    }

    /// The index of all messages of the session, for searches in those before a point.
    pub fn search_index(&self) -> &SearchIndex {
        self.search_index.get_or_init(|| {
            SearchIndex::new(
                self.loaded
                    .fixture
                    .messages
                    .iter()
                    .map(Message::countable_text),
            )
        })
    }

    /// Whether contexts of this point are long enough for a provider's prompt cache to matter.
    pub fn is_worth_warming(&self, point: PointIx) -> bool {
        /// The smallest prefix that vendors cache.
        const SHORTEST_CACHED: u64 = 1024;
        *self.points[point.0]
            .is_worth_warming
            .get_or_init(|| match self.prefix(point).text {
                InputValue::Text(_, text) => estimate_tokens(&text).0 >= SHORTEST_CACHED,
                InputValue::Output(_) | InputValue::Composed(_) => false,
            })
    }
}
