//! Compression strategies: (previous state, truncated span, whole prefix, settings) to work, and a reply to a context.
//!
//! Deliberately absent: answers and grades.

mod spec;

pub use spec::{CommandSpec, Method, MethodName, PromptStyle, Strategy};
