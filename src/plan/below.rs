//! What is asked below a context: named once for each point of a fixture, so that where nothing changed no key below a
//! context need be made.

use crate::action::{Digest, DigestBuilder, Inputs, Replica, Stage, Work};
use crate::compress::ContextRef;
use crate::pipeline::CompressCell;

use super::frontier::SettledContext;
use super::prepare::{FixtureTexts, PrepareError, Preparer};

impl Preparer<'_> {
    /// Names the work of all answers and judgements below a context, with stand-ins for the context and the answers:
    /// where this name, the context, its run and the answers are the same, so are all keys. `None` where that is not
    /// so, since the prompts of an empty context, and of one that only its provider reads, are put together in another
    /// way; and where a prompt does not render.
    pub fn asked_below(&self, context: &SettledContext) -> Option<Digest> {
        let ContextRef::Readable { text } = &context.reference else { return None };
        if *text == Digest::of("") {
            return None;
        }
        let (texts, cell) = (&context.texts, context.cell);
        let readers = self.matrix().readers(cell.chain.method).to_vec();
        let known = texts.asked.borrow().get(&(cell.point, readers.clone())).copied();
        known.unwrap_or_else(|| {
            let asked = self.asked_at(cell, texts).ok();
            texts.asked.borrow_mut().insert((cell.point, readers), asked);
            asked
        })
    }

    fn asked_at(&self, cell: CompressCell, texts: &FixtureTexts) -> Result<Digest, PrepareError> {
        let (context, answer) = (ContextRef::Readable { text: Digest::of("a context") }, Digest::of("an answer"));
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
