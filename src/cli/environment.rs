//! Environment variables.

use crate::pipeline::Environment;

/// The variables of this process. They are read here alone, except keys.
pub(crate) struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}
