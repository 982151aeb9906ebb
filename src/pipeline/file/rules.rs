//! The shape of a file of rules that `[constraints]` names.

use std::ops::Range;

use serde_json::{Map as JsonMap, Value, json};

use super::{
    DeTable, DeValue, Located, Problems, ReadToml, SourceFile, Spanned, StringList, TableArray, TomlReader, described,
    merge, parse,
};

table! {
    /// A file of rules.
    RuleSetTable {
        /// The rules.
        rule: TableArray<RuleTable>,
    }
}

table! {
    /// `[[rule]]`
    RuleTable by name {
        /// Its name in results.
        name: String,
        /// The language of its text, "en" or "zh": a session gets the rules of the language in which its user writes.
        language: String,
        /// The sentence as the user says it.
        text: String,
        /// What the rule is about, as it stands in `text`; further entries are other spellings.
        object: StringList,
        /// The words that forbid it, one of which stands in `text`. Default: such words of the language.
        prohibition: StringList,
    }
}
/// Reads a file of rules. `None`: this is not TOML.
pub(in crate::pipeline) fn read_rules(file: &SourceFile, problems: &mut Problems) -> Option<TableArray<RuleTable>> {
    let root = parse(file, problems)?;
    let set = RuleSetTable::from_table(&root, &mut TomlReader { file, problems, settings: &[] });
    Some(set.rule.map(|rules| rules.value).unwrap_or_default())
}
