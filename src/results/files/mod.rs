//! The files of a results folder: rows, contexts, manifest, and the folders of labels.

pub(super) mod design;
pub(super) mod edits;
pub(super) mod find;
pub(super) mod folder;
pub(super) mod label;
pub(super) mod label_folders;
pub(super) mod lines;
pub(super) mod manifest;
pub(super) mod row;

#[cfg(test)]
mod folder_tests;

pub use self::label::FolderError;
