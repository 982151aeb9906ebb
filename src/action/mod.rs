//! Actions: what a piece of work is, which inputs determine its output, and its key.
//!
//! Invariant: what is hashed is what is run. `Inputs` are made from a `Work` and the replica path, from nothing
//! else; names, paths, limits, time-outs and API keys are not excluded from the hash, they are simply not in a
//! `Work`. Deliberately absent: I/O and clocks.

mod digest;
mod stage;
mod inputs;
mod template;
mod work;

pub use digest::{ActionKey, Digest, DigestBuilder, RunningDigest};
pub use inputs::{Change, Inputs, Part, Replica, Source, Sources};
pub use stage::{Stage, StageName};
pub use template::{Prompt, Template, TemplateFault, Variable};
pub use work::{Computation, Material, Pieces, PiecesBuilder, Program, ReplyShape, Request, RequestTurn, Rule, Work};
