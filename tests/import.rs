//! Imports of whole logs: every format, damage, scrubbing, points.

#[path = "import/collection.rs"]
mod collection;
#[path = "import/scrubbing.rs"]
mod scrubbing;
