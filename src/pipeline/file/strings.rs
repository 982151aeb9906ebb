//! All strings of a file, with their places.

use std::ops::Range;

use super::{DeTable, DeValue, SourceFile};

/// A string somewhere in the file: the keys that lead to it, itself, and its place.
pub(in crate::pipeline) type StringAt = (Vec<String>, String, Range<usize>);

/// All strings of the file that stand in tables.
pub(in crate::pipeline) fn texts(file: &SourceFile) -> Vec<StringAt> {
    fn walk(table: &DeTable<'_>, path: &[String], texts: &mut Vec<StringAt>) {
        for (key, value) in table {
            let path = [path, &[key.get_ref().to_string()]].concat();
            match value.get_ref() {
                DeValue::Table(table) => walk(table, &path, texts),
                DeValue::String(text) => texts.push((path, text.to_string(), value.span())),
                _ => {}
            }
        }
    }
    let mut texts = Vec::new();
    walk(DeTable::parse_recoverable(&file.text).0.get_ref(), &[], &mut texts);
    texts
}
