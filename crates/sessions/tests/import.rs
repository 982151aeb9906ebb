//! Imports of whole logs: every format, damage, scrubbing, points.

#[path = "import/collection.rs"]
mod collection;
#[path = "import/scrubbing.rs"]
mod scrubbing;
#[path = "import/scrubbing_settings/mod.rs"]
mod scrubbing_settings;
#[path = "import/held_out.rs"]
mod held_out;
#[path = "import/formats.rs"]
mod formats;
#[path = "import/compactions.rs"]
mod compactions;
#[path = "import/damage.rs"]
mod damage;
#[path = "import/containers.rs"]
mod containers;
