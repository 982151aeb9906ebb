//! Reads TOML into plain structs, one for each table; every value keeps its place in the file.
//!
//! Unknown keys and values of the wrong type are reported together with all other problems; serde stops at the first. A
//! profile is merged in: tables by key, arrays of tables by `name`. In `pipeline`, only this file uses the `toml` crate.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::model::SourceFile;
use super::problem::{Problem, Problems, suggest};
use base::locale::localized;

/// A value, where it stands, and where its key stands (for an item of a list: where the item stands).
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Range<usize>,
    pub(super) key: Range<usize>,
}

impl<T> Located<T> {
    /// A value that nobody wrote, as if it stood at the beginning of the file.
    pub(super) fn unwritten(value: T) -> Located<T> {
        Located {
            value,
            place: 0..0,
            key: 0..0,
        }
    }
}

/// A type that a TOML value can be read into.
pub(super) trait ReadToml: Sized {
    /// Whether a profile's value is merged into this one rather than replacing it.
    const MERGES: bool = false;

    /// The JSON Schema of the values that `read` accepts.
    fn schema() -> Value;

    /// What a list of such values is called.
    fn list_name() -> &'static str {
        "a list of strings"
    }

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

macro_rules! table {
    ($(#[$meta:meta])* $name:ident $(by $key:ident)? { $($(#[doc = $doc:literal])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $($(#[doc = $doc])* pub(crate) $field: Option<Located<$type>>),*
        }

        impl $name {
            pub(crate) const KEYS: &[&str] = &[$(stringify!($field)),*];

            fn from_table(table: &DeTable<'_>, reader: &mut TomlReader<'_>) -> $name {
                let mut read = $name::default();
                for (key, value) in table {
                    match &**key.get_ref() {
                        $(stringify!($field) => read.$field = reader.placed(key.span(), value),)*
                        _ => reader.report_unknown_key(key, $name::KEYS),
                    }
                }
                read
            }

            /// The keys that are written, with their places.
            #[allow(dead_code, reason = "few tables are checked key by key")]
            pub(crate) fn written(&self) -> Vec<(&'static str, Range<usize>)> {
                let mut keys = Vec::new();
                $(keys.extend(self.$field.as_ref().map(|placed| (stringify!($field), placed.key.clone())));)*
                keys
            }
        }

        impl ReadToml for $name {
            const MERGES: bool = true;

            fn schema() -> Value {
                let mut properties = JsonMap::new();
                $(properties.insert(stringify!($field).to_owned(), described::<$type>(&[$($doc),*]));)*
                json!({ "type": "object", "properties": properties, "additionalProperties": false })
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$name> {
                match value.get_ref() {
                    DeValue::Table(table) => Some($name::from_table(table, reader)),
                    _ => reader.mistyped(value, "a table"),
                }
            }

            fn list_name() -> &'static str {
                "an array of tables (a header in double brackets)"
            }

            $(fn name(&self) -> Option<&str> {
                self.$key.as_ref().map(|name| name.value.as_str())
            })?

            fn merge(&mut self, top: $name) {
                $(merge(&mut self.$field, top.$field);)*
            }
        }
    };
}

/// The schema of a key with its documentation, which editors show.
fn described<T: ReadToml>(documentation: &[&str]) -> Value {
    let mut schema = T::schema();
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

macro_rules! scalar {
    ($type:ty, $english:literal, $chinese:literal, $schema:tt, $pattern:pat => $read:expr) => {
        impl ReadToml for $type {
            fn schema() -> Value {
                json!($schema)
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$type> {
                let found: Option<$type> = match value.get_ref() {
                    $pattern => $read,
                    _ => None,
                };
                found.or_else(|| reader.mistyped(value, localized($english, $chinese)))
            }
        }
    };
}

scalar!(String, "a string", "字符串", { "type": "string" }, DeValue::String(text) => Some(text.to_string()));
scalar!(bool, "true or false", "true 或 false", { "type": "boolean" }, DeValue::Boolean(yes) => Some(*yes));
scalar!(u32, "a whole number from 0 to 4294967295", "0 至 4294967295 的整数", { "type": "integer", "minimum": 0, "maximum": (u32::MAX) },
    DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok());
scalar!(u64, "a whole number from 0 up", "不小于 0 的整数", { "type": "integer", "minimum": 0 },
    DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok());

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
            .or_else(|| reader.mistyped(value, T::list_name()))?;
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
        problems.push(problem.at(file, fault.span().unwrap_or(0..0)));
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
