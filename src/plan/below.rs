//! What is asked below a context: named once for each point of a fixture, so that where nothing changed no key below a
//! context need be made.

use crate::action::{Digest, DigestBuilder, Inputs, Replica, Stage, Work};
use crate::compress::ContextRef;
use crate::pipeline::CompressCell;

use super::frontier::ResolvedContext;
use super::prepare::{FixtureTexts, PrepareError, Preparer};

impl Preparer<'_> {
    /// Names the work of all answers and judgements below a context, with stand-ins for the context and the answers:
    /// where this name, the context, its run and the answers are the same, so are all keys. `None` of a context that
    /// only its provider reads, whose prompts are put together in another way, and where a prompt does not render.
    pub fn asked_below(&self, context: &ResolvedContext) -> Option<Digest> {
        let ContextRef::Readable { text } = &context.reference else { return None };
        // prompts may ask whether the context is empty, and nothing else about it
        let stand_in = Digest::of(if *text == Digest::of("") { "" } else { "a context" });
        let (texts, cell) = (&context.texts, context.cell);
        let place = (cell.point, stand_in, self.matrix().method_answerers(cell.chain.method).to_vec());
        if let Some(known) = texts.asked.borrow().get(&place) {
            return *known;
        }
        let asked = self.asked_at(cell, texts, stand_in).ok();
        texts.asked.borrow_mut().insert(place, asked);
        asked
    }

    fn asked_at(&self, cell: CompressCell, texts: &FixtureTexts, context: Digest) -> Result<Digest, PrepareError> {
        let (context, answer) = (ContextRef::Readable { text: context }, Digest::of("an answer"));
        let mut asked = DigestBuilder::new("compeval asked v1");
        let mut add = |stage: Stage, work: &Work| {
            asked.field(stage.name(), Inputs::key_of(stage, Replica::NONE, work).0.0);
        };
        for cell in self.matrix().answers(cell).filter(|cell| cell.answer_n == 1) {
            add(Stage::Answer, &self.answer_work(&cell, texts, &context)?);
            for cell in self.matrix().judgements(cell).filter(|cell| cell.judge_n == 1) {
                add(Stage::Judge, &self.judge_work(&cell, texts, &context, answer)?);
            }
        }
        Ok(asked.finish())
    }
}
