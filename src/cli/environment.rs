//! Environment variables.

/// A variable of this process, unless it is empty. They are read here alone, except keys.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
