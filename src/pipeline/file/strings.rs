//! All strings of a file, with their places.

use std::ops::Range;

use super::{DeTable, DeValue, SourceFile, Spanned};

/// A string somewhere in the file: the keys that lead to it, itself, and its place.
pub(in crate::pipeline) type StringAt = (Vec<String>, String, Range<usize>);

/// All strings of the file; those of a list have the path of the list.
pub(in crate::pipeline) fn texts(file: &SourceFile) -> Vec<StringAt> {
    fn walk(value: &Spanned<DeValue<'_>>, path: &[String], texts: &mut Vec<StringAt>) {
        match value.get_ref() {
            DeValue::Table(table) => walk_table(table, path, texts),
            DeValue::Array(values) => values.iter().for_each(|value| walk(value, path, texts)),
            DeValue::String(text) => texts.push((path.to_vec(), text.to_string(), value.span())),
            _ => {}
        }
    }
    fn walk_table(table: &DeTable<'_>, path: &[String], texts: &mut Vec<StringAt>) {
        for (key, value) in table {
            walk(value, &[path, &[key.get_ref().to_string()]].concat(), texts);
        }
    }
    let mut texts = Vec::new();
    walk_table(DeTable::parse_recoverable(&file.text).0.get_ref(), &[], &mut texts);
    texts
}
