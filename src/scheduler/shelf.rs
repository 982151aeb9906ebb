//! The shelf: outputs within reach. Contexts are read once and shared by the cells that need them; what is no
//! longer needed falls off, so that memory stays flat.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use crate::action::{ActionKey, Digest};
use crate::cache::{Damage, Lookup, Record};
use crate::compress::Compressed;
use crate::fixture::fold;
use crate::pipeline::{MethodIx, PointIx};
use crate::plan::{Body, Output, Preparer, SettledAnswer, SettledContext, Task, Unreadable};

/// Contexts kept within reach: more than a run has open at once.
const CAPACITY: usize = 96;

/// A context with its texts.
#[derive(Debug)]
pub struct Loaded {
    /// As it was read.
    pub compressed: Compressed,
    texts: Vec<(Digest, Arc<str>)>,
    folded: std::cell::OnceCell<Option<String>>,
}

impl Loaded {
    fn new(compressed: Compressed) -> Loaded {
        let texts = compressed.texts();
        Loaded { compressed, texts, folded: std::cell::OnceCell::new() }
    }

    /// The readable text, folded for the search of facts; `None` where only the provider can read it.
    pub fn folded(&self) -> Option<&str> {
        self.folded.get_or_init(|| self.compressed.context.text().map(|text| fold(&text))).as_deref()
    }

    fn text(&self, digest: &Digest) -> Option<Arc<str>> {
        self.texts.iter().find(|(name, _)| name == digest).map(|(_, text)| text.clone())
    }
}

/// Why an output that stood is out of reach.
#[derive(Debug, thiserror::Error)]
pub enum OutOfReach {
    /// Its entry is gone.
    #[error("the cache entry {} is gone; run again to make it anew", .0.0.short())]
    Gone(ActionKey),
    /// Its entry is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Its body no longer reads.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Nothing at hand has that name.
    #[error("the output {0:?} belongs to no action at hand")]
    Unnamed(Digest),
}

/// The artifact index is part of a context but not of its action, so method and point tell contexts apart.
type Place = (ActionKey, MethodIx, PointIx);

/// Contexts at hand, and the order in which they came.
type Contexts = (HashMap<Place, Rc<Loaded>>, VecDeque<Place>);

/// Outputs within reach.
pub struct Shelf<'e, S> {
    preparer: Preparer<'e>,
    store: &'e S,
    contexts: RefCell<Contexts>,
}

impl<'e, S: Lookup> Shelf<'e, S> {
    /// An empty shelf.
    pub fn new(preparer: Preparer<'e>, store: &'e S) -> Shelf<'e, S> {
        Shelf { preparer, store, contexts: RefCell::default() }
    }

    fn place(context: &SettledContext) -> Place {
        (context.key, context.cell.chain.method, context.cell.point)
    }

    /// The context, read from the store unless it is at hand.
    ///
    /// # Errors
    /// An entry that is gone, damaged, or no longer reads.
    pub fn context(&self, context: &Rc<SettledContext>) -> Result<Rc<Loaded>, OutOfReach> {
        let place = Shelf::<S>::place(context);
        if let Some(loaded) = self.contexts.borrow().0.get(&place) {
            return Ok(loaded.clone());
        }
        let task = context.task();
        match self.read(&task, &context.key)? {
            Output::Context(compressed) => Ok(self.put(place, *compressed)),
            Output::Answer(_) | Output::Grades(_) | Output::Probes { .. } => Err(OutOfReach::Gone(context.key)),
        }
    }

    fn put(&self, place: Place, compressed: Compressed) -> Rc<Loaded> {
        let loaded = Rc::new(Loaded::new(compressed));
        let (contexts, order) = &mut *self.contexts.borrow_mut();
        if contexts.insert(place, loaded.clone()).is_none() {
            order.push_back(place);
        }
        while order.len() > CAPACITY {
            if let Some(oldest) = order.pop_front() {
                contexts.remove(&oldest);
            }
        }
        loaded
    }

    /// The text of an answer.
    ///
    /// # Errors
    /// As [`Shelf::context`].
    pub fn answer(&self, task: &Task, answer: &SettledAnswer) -> Result<Arc<str>, OutOfReach> {
        match self.read(task, &answer.key)? {
            Output::Answer(answer) => Ok(answer.text),
            Output::Context(_) | Output::Grades(_) | Output::Probes { .. } => Err(OutOfReach::Gone(answer.key)),
        }
    }

    /// Reads the output of a task's action from the store.
    ///
    /// # Errors
    /// As [`Shelf::context`].
    pub fn read(&self, task: &Task, key: &ActionKey) -> Result<Output, OutOfReach> {
        let record = self.store.find(key).ok_or(OutOfReach::Gone(*key))?;
        self.read_record(task, &record)
    }

    /// Reads the output that a record leads to.
    ///
    /// # Errors
    /// As [`Shelf::context`].
    pub fn read_record(&self, task: &Task, record: &Record) -> Result<Output, OutOfReach> {
        let bytes = self.store.body(record)?;
        let body = Body { dialect: record.dialect, bytes: &bytes };
        Ok(self.preparer.read(task, body)?)
    }

    /// The text that a digest among a task's inputs stands for.
    ///
    /// # Errors
    /// As [`Shelf::context`]; a digest that is none of the task's inputs.
    pub fn resolve(&self, task: &Task, digest: &Digest) -> Result<Arc<str>, OutOfReach> {
        let of_context = |context: &Rc<SettledContext>| Ok::<_, OutOfReach>(self.context(context)?.text(digest));
        let found = match task {
            Task::Compress(task) => task.before.as_ref().map(of_context).transpose()?.flatten(),
            Task::Answer(task) => of_context(&task.context)?,
            Task::Judge(judge) if judge.answer.out == *digest => {
                Some(self.answer(&judge.answer_task(), &judge.answer)?)
            }
            Task::Judge(judge) => of_context(&judge.context)?,
        };
        found.ok_or(OutOfReach::Unnamed(*digest))
    }
}
