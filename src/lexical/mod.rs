//! The built-in stand-in for a model.
