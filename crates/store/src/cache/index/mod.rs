//! What the packs define: the tables in memory (`tables`), read from the sled tree (`tree`) or from the headers of the
//! packs (`scan`).

pub(super) mod item_key;
pub(super) mod items;
pub(super) mod index_folder;
pub(super) mod scan;
pub(super) mod tables;
pub(super) mod tree;
