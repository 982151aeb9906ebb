//! The files of a results folder: rows, contexts, manifest, and the folders of labels.

pub(super) mod context_row;
pub(super) mod corrections;
pub(super) mod design;
pub(super) mod edits;
pub(super) mod error;
pub(super) mod find;
pub(super) mod folder;
pub(super) mod label;
pub(super) mod label_folders;
pub(super) mod label_writer;
pub(super) mod lines_file;
pub(super) mod manifest;
pub(super) mod planted_row;
pub(super) mod row;
pub(super) mod rows_file;

#[cfg(test)]
mod folder_tests;
