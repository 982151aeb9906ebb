//! Reads TOML into plain structs, one for each table; every value keeps its place in the file.
//!
//! Unknown keys and values of the wrong type are reported together with all other problems; serde stops at the first. A
//! profile is merged in: tables by key, arrays of tables by `name`. In `pipeline`, only this file uses the `toml` crate.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Bound, Range, RangeBounds};
use std::time::Duration;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::model::SourceFile;
use super::model::TailMode;
use super::problem::{Problem, Problems, suggest};
use crate::compress::{PromptPlacement, StrategyKind};
use crate::judge::{Dimension, Scope};
use crate::probe::ProbeType;
use base::locale::Locale;
use base::units::Tokens;
use models::{Dialect, Lane};
use store::remote::RemoteMode;

/// The value of a key, if it is written and sound.
pub(super) fn value<T: Clone>(written: &Option<Located<T>>) -> Option<T> {
    written.as_ref().map(|written| written.value.clone())
}

/// The items of a list, or the tables of a stage; none if it is not written.
pub(super) fn items<T>(written: &Option<Located<Vec<Located<T>>>>) -> &[Located<T>] {
    written.as_ref().map_or(&[], |list| &list.value)
}

/// A value, where it stands, and where its key stands (for an item of a list: where the item stands).
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Range<usize>,
    pub(super) key: Range<usize>,
}

/// A type that a TOML value can be read into.
pub(super) trait ReadToml: Sized {
    /// Whether a profile's value is merged into this one rather than replacing it.
    const MERGES: bool = false;

    /// The JSON Schema of the values that `read` accepts.
    fn schema() -> Value;

    /// What a list of such values is called.
    const LIST: &str = "a list of strings";

    /// Reads the value, or reports a problem.
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Self>;

    /// The name by which a profile addresses it in an array of tables.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Merges a profile's value into this one; the profile's takes precedence.
    fn merge(&mut self, top: Self) {
        *self = top;
    }
}

pub(super) struct TomlReader<'a> {
    file: &'a SourceFile,
    problems: &'a mut Problems,
    /// The keys of `[pipeline]`. Users easily write them above its header.
    settings: &'a [&'a str],
    /// The key whose value is read.
    key: &'static str,
}

type Key<'i> = Spanned<DeString<'i>>;

impl TomlReader<'_> {
    fn mistyped<T>(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::Integer(number) => format!("the number {}", number.as_str()),
            DeValue::Float(number) => format!("the number {}", number.as_str()),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Boolean(_) => "true or false".to_owned(),
            DeValue::String(_) => "a string".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Datetime(_) => "a datetime".to_owned(),
        };
        let problem = Problem::error(format!("expected {expected}, found {found}"));
        self.problems
            .push(problem.label(self.file, value.span(), format!("expected {expected}")));
        None
    }

    /// Whether a number is in its range. One that is not is reported.
    fn admits<T: PartialOrd + Display>(
        &mut self,
        number: &Located<T>,
        range: &impl RangeBounds<T>,
    ) -> bool {
        let is_in = range.contains(&number.value);
        if !is_in {
            let expected = range_words(range);
            let (key, found) = (self.key, &number.value);
            let problem = Problem::error(format!("expected {expected} for `{key}`, found {found}"));
            self.problems.push(problem.label(
                self.file,
                number.place.clone(),
                format!("expected {expected}"),
            ));
        }
        is_in
    }

    fn report_unknown_key(&mut self, key: &Key<'_>, known: &[&str]) {
        let name: &str = key.get_ref();
        let is_misplaced = self.settings.contains(&name) && known.contains(&"pipeline");
        let help = if is_misplaced {
            format!("`{name}` belongs under [pipeline]")
        } else {
            suggest(name, known.iter().copied())
        };
        let problem = Problem::error(format!("unknown key `{name}`"));
        self.problems
            .push(problem.help(help).at(self.file, key.span()));
    }

    fn placed<T: ReadToml>(
        &mut self,
        key: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Located<T>> {
        Some(Located {
            value: T::read(value, self)?,
            place: value.span(),
            key,
        })
    }
}

/// A range as people read it.
pub(super) fn range_words<T: Display>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), Bound::Included(most)) => {
            format!("a number from {least} to {most}")
        }
        (Bound::Included(least), _) => format!("a number of at least {least}"),
        _ => "a number".to_owned(),
    }
}

/// The schema of a number in a range.
fn ranged<T: Copy + Into<Value>>(mut schema: Value, range: &impl RangeBounds<T>) -> Value {
    if let Bound::Included(least) = range.start_bound() {
        schema["minimum"] = (*least).into();
    }
    if let Bound::Included(most) = range.end_bound() {
        schema["maximum"] = (*most).into();
    }
    schema
}

/// Declares a table of the file: its keys, each with its meaning, its type, and the range of a number. Reading, checks,
/// schema and documentation come from here. Keys that several tables share are a table of their own, which `with` takes in.
macro_rules! table {
    ($(#[$meta:meta])* $name:ident $(by $key:ident)? {
        $($(#[doc = $doc:literal])* $field:ident: $type:ident $(<$of:ident>)? $(in $range:expr)?),* $(,)?
    } $(with { $($part:ident: $shared:ident),+ $(,)? })?) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[doc = $doc])* pub(crate) $field: Option<Located<$type $(<$of>)?>>,)*
            $($(pub(crate) $part: $shared,)+)?
            /// Keys whose values cannot be used, which is already reported.
            pub(crate) faulty: Vec<&'static str>,
        }

        impl $name {
            /// The table in which no key is written.
            pub(crate) const NOTHING: $name = $name { $($field: None,)* $($($part: $shared::NOTHING,)+)? faulty: Vec::new() };

            /// The table, or one in which no key is written.
            #[allow(dead_code, reason = "few tables need not be written")]
            pub(crate) fn of(written: &Option<Located<$name>>) -> &$name {
                static NOTHING: $name = $name::NOTHING;
                written.as_ref().map_or(&NOTHING, |table| &table.value)
            }

            /// All keys.
            pub(crate) fn keys() -> Vec<&'static str> {
                #[allow(unused_mut, reason = "few tables take others in")]
                let mut keys = vec![$(stringify!($field)),*];
                $($(keys.extend($shared::keys());)+)?
                keys
            }

            fn from_table(table: &DeTable<'_>, reader: &mut TomlReader<'_>) -> $name {
                let mut read = $name::NOTHING;
                for (key, value) in table {
                    if !read.read_key(key, value, reader) {
                        reader.report_unknown_key(key, &$name::keys());
                    }
                }
                read
            }

            /// Reads the value of a key; false if the table has no such key.
            fn read_key(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> bool {
                match &**key.get_ref() {
                    $(stringify!($field) => {
                        reader.key = stringify!($field);
                        self.$field = reader.placed(key.span(), value);
                        $(self.$field = self.$field.take().filter(|number| reader.admits(number, &($range)));)?
                        if self.$field.is_none() {
                            self.faulty.push(stringify!($field));
                        }
                        true
                    })*
                    _ => false $($(|| self.$part.read_key(key, value, reader))+)?,
                }
            }

            /// The keys that are written, with their places.
            #[allow(dead_code, reason = "few tables are checked key by key")]
            pub(crate) fn written(&self) -> Vec<(&'static str, Range<usize>)> {
                let mut keys = Vec::new();
                $(keys.extend(self.$field.as_ref().map(|placed| (stringify!($field), placed.key.clone())));)*
                $($(keys.extend(self.$part.written());)+)?
                keys
            }
        }

        impl ReadToml for $name {
            const MERGES: bool = true;
            const LIST: &str = "an array of tables (a header in double brackets)";

            fn schema() -> Value {
                let mut properties = JsonMap::new();
                $({
                    let schema = <$type $(<$of>)?>::schema();
                    $(let schema = ranged(schema, &($range));)?
                    properties.insert(stringify!($field).to_owned(), described(schema, &[$($doc),*]));
                })*
                $($(properties.extend($shared::schema()["properties"].as_object().cloned().unwrap_or_default());)+)?
                json!({ "type": "object", "properties": properties, "additionalProperties": false })
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$name> {
                match value.get_ref() {
                    DeValue::Table(table) => Some($name::from_table(table, reader)),
                    _ => reader.mistyped(value, "a table"),
                }
            }

            $(fn name(&self) -> Option<&str> {
                self.$key.as_ref().map(|name| name.value.as_str())
            })?

            fn merge(&mut self, top: $name) {
                $(merge(&mut self.$field, top.$field);)*
                $($(self.$part.merge(top.$part);)+)?
                self.faulty.extend(top.faulty);
            }
        }
    };
}

/// The schema of a key with its documentation, which editors show.
fn described(mut schema: Value, documentation: &[&str]) -> Value {
    if !documentation.is_empty() {
        schema["description"] = documentation
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" ")
            .into();
    }
    schema
}

fn merge<T: ReadToml>(base: &mut Option<Located<T>>, top: Option<Located<T>>) {
    match (base, top) {
        (Some(base), Some(top)) if T::MERGES => base.value.merge(top.value),
        (base, Some(top)) => *base = Some(top),
        (_, None) => {}
    }
}

/// One of a few words.
pub(super) trait Word: Copy + 'static {
    /// The words with what they mean.
    fn words() -> Vec<(&'static str, Self)>;
}

impl<T: Word> ReadToml for T {
    fn schema() -> Value {
        let words: Vec<&str> = T::words().iter().map(|(word, _)| *word).collect();
        json!({ "type": "string", "enum": words })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<T> {
        let (written, words) = (String::read(value, reader)?, T::words());
        let found = words.iter().find(|(word, _)| *word == written);
        if found.is_none() {
            let problem = Problem::error(format!("unknown {} `{written}`", reader.key));
            let help = suggest(&written, words.iter().map(|(word, _)| *word));
            reader
                .problems
                .push(problem.at(reader.file, value.span()).help(help));
        }
        found.map(|(_, value)| *value)
    }
}

macro_rules! words {
    ($($type:ty),+) => {
        $(impl Word for $type {
            fn words() -> Vec<(&'static str, $type)> {
                <$type>::ALL.map(|value| (value.name(), value)).into()
            }
        })+
    };
}

words!(
    Dialect,
    Dimension,
    Lane,
    Locale,
    ProbeType,
    PromptPlacement,
    RemoteMode,
    Scope,
    StrategyKind,
    TailMode
);

macro_rules! scalar {
    ($type:ty, $expected:literal, $schema:tt, $pattern:pat => $read:expr) => {
        impl ReadToml for $type {
            fn schema() -> Value {
                json!($schema)
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$type> {
                let found: Option<$type> = match value.get_ref() {
                    $pattern => $read,
                    _ => None,
                };
                found.or_else(|| reader.mistyped(value, $expected))
            }
        }
    };
}

scalar!(String, "a string", { "type": "string" }, DeValue::String(text) => Some(text.to_string()));
scalar!(bool, "true or false", { "type": "boolean" }, DeValue::Boolean(yes) => Some(*yes));
scalar!(u32, "a whole number from 0 to 4294967295", { "type": "integer", "minimum": 0, "maximum": (u32::MAX) },
    DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok());
scalar!(u64, "a whole number from 0 up", { "type": "integer", "minimum": 0 },
    DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok());
scalar!(Tokens, "a number of tokens, at least 1", { "type": "integer", "minimum": 1 },
    DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().filter(|n| *n > 0).map(Tokens));

impl ReadToml for Duration {
    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 86_400 })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Duration> {
        let seconds = f64::read(value, reader)?;
        let is_sound = seconds > 0.0 && seconds <= 86_400.0;
        let duration = is_sound.then(|| Duration::from_secs_f64(seconds));
        duration.or_else(|| {
            reader.mistyped(value, "a number of seconds above 0, a day (86400) at most")
        })
    }
}

impl ReadToml for f64 {
    fn schema() -> Value {
        json!({ "type": "number" })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(|n| n as f64),
            _ => None,
        };
        number
            .filter(|n: &f64| n.is_finite())
            .or_else(|| reader.mistyped(value, "a finite number"))
    }
}

/// A list of strings, each with its place.
pub(super) type StringList = Vec<Located<String>>;

/// The variants of a stage, in the order of the file.
pub(super) type TableArray<T> = Vec<Located<T>>;

impl<T: ReadToml> ReadToml for Vec<Located<T>> {
    const MERGES: bool = T::MERGES;

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Vec<Located<T>>> {
        let items = value
            .get_ref()
            .as_array()
            .or_else(|| reader.mistyped(value, T::LIST))?;
        Some(
            items
                .iter()
                .filter_map(|item| reader.placed(item.span(), item))
                .collect(),
        )
    }

    fn merge(&mut self, top: Vec<Located<T>>) {
        for item in top {
            let name = item.value.name();
            match self
                .iter_mut()
                .find(|base| name.is_some() && base.value.name() == name)
            {
                Some(base) => base.value.merge(item.value),
                None => self.push(item),
            }
        }
    }
}

/// Tables by a name that the user chooses.
pub(super) type Map<T> = BTreeMap<String, Located<T>>;

impl<T: ReadToml> ReadToml for Map<T> {
    const MERGES: bool = true;

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Map<T>> {
        let table = value
            .get_ref()
            .as_table()
            .or_else(|| reader.mistyped(value, "a table of named tables"))?;
        let entries = table.iter().filter_map(|(key, value)| {
            Some((key.get_ref().to_string(), reader.placed(key.span(), value)?))
        });
        Some(entries.collect())
    }

    fn merge(&mut self, top: Map<T>) {
        for (name, value) in top {
            let mut base = self.remove(&name);
            merge(&mut base, Some(value));
            self.extend(base.map(|value| (name, value)));
        }
    }
}

fn parse<'f>(file: &'f SourceFile, problems: &mut Problems) -> Option<DeTable<'f>> {
    let (root, faults) = DeTable::parse_recoverable(&file.text);
    for fault in &faults {
        let problem = Problem::error(format!("this is not TOML: {}", fault.message()));
        let help = match fault.message() {
            "duplicate key" => "a key stands once in its table: remove one of the two",
            _ => "a line is key = value, [table] or [[table]]; texts are in quotes",
        };
        problems.push(problem.at(file, fault.span().unwrap_or(0..0)).help(help));
    }
    faults.is_empty().then(|| root.into_inner())
}

/// A string in the file: the keys that lead to it, the string itself, and its place.
pub(super) type StringAt = (Vec<String>, String, Range<usize>);

/// All strings of the file. A string in a list has the keys of the list.
pub(super) fn strings(file: &SourceFile) -> Vec<StringAt> {
    fn walk(value: &Spanned<DeValue<'_>>, path: &[String], strings: &mut Vec<StringAt>) {
        match value.get_ref() {
            DeValue::Table(table) => walk_table(table, path, strings),
            DeValue::Array(values) => values.iter().for_each(|value| walk(value, path, strings)),
            DeValue::String(text) => strings.push((path.to_vec(), text.to_string(), value.span())),
            _ => {}
        }
    }
    fn walk_table(table: &DeTable<'_>, path: &[String], strings: &mut Vec<StringAt>) {
        for (key, value) in table {
            walk(
                value,
                &[path, &[key.get_ref().to_string()]].concat(),
                strings,
            );
        }
    }
    let mut strings = Vec::new();
    walk_table(
        DeTable::parse_recoverable(&file.text).0.get_ref(),
        &[],
        &mut strings,
    );
    strings
}

pub(super) mod rubric;
pub(super) mod tables;

/// Whether a pipeline file declares a method of this name. A text that is not TOML declares none: `check` says why.
pub fn declares_method(text: &str, name: &str) -> bool {
    let table: toml::Table = text.parse().unwrap_or_default();
    let methods = table
        .get("compress")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    methods
        .into_iter()
        .any(|method| method.get("name").and_then(toml::Value::as_str) == Some(name))
}
