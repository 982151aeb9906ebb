//! Where the current frame of each key is: tables in memory, or sorted runs on disk.

pub(super) mod pack_index;
pub(super) mod disk_index;
pub(super) mod catalog;
pub(super) mod sorted_run;
pub(super) mod index_folder;
