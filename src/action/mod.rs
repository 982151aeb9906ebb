//! Actions: what a unit of work is, which inputs determine its output, and the key made from them.
//!
//! Invariant: what is hashed is what is run. `Inputs` are made from a `Work` and a `Repetition` and from nothing else.
//! Names, paths, limits, timeouts and API keys need no exclusion from the hash, because a `Work` does not hold them
//! (or, for the provider's name, the one function that visits a `Work` skips it). This module does no I/O and reads no
//! clock.

mod stage;
mod value;
mod template;
mod work;
mod inputs;
mod modules;

pub use inputs::{InputChange, InputPart, Inputs, Repetition, SourceRef, Sources, memo_key};
pub use modules::{INPUTS_FROM, LoadedModules, Modules, module_input, module_path, package_input, package_name};
pub use stage::{Stage, StageName};
pub use store::{ActionKey, Digest, DigestBuilder, KeyHalf, StreamDigest};
pub use template::{BuiltInTemplate, INSTRUCTIONS, Prompt, SEARCHES_LEFT, Template, TemplateFault, Variable};
pub use value::{ComposedValue, ComposedValueBuilder, InputValue};
pub use work::{BuiltInStrategy, Computation, ModelRequest, Program, ReplyShape, RequestTurn, Work};
