//! Imports of whole logs: every format, damage, scrubbing, points.

#[path = "import/collection.rs"]
mod collection;
#[path = "import/compactions.rs"]
mod compactions;
#[path = "import/containers.rs"]
mod containers;
#[path = "import/damage.rs"]
mod damage;
#[path = "import/formats.rs"]
mod formats;
#[path = "import/held_out.rs"]
mod held_out;
#[path = "import/scrubbing.rs"]
mod scrubbing;
#[path = "import/scrubbing_settings/mod.rs"]
mod scrubbing_settings;
