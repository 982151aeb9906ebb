//! Values of prompts and programs: text known by its digest, so that a key can be made without the bytes.
//!
//! Most of a prompt (a transcript, a context) is long and unchanged between runs. A key needs only digests; the bytes
//! are fetched when the action is executed.

use std::sync::Arc;

use store::{Digest, DigestBuilder};

/// A text identified by its digest.
#[derive(Clone, Debug)]
pub enum InputValue {
    Text(Digest, Arc<str>),
    /// The output of an earlier action, fetched when this one is executed.
    Output(Digest),
    /// A text assembled from named parts.
    Composed(Arc<ComposedValue>),
}

impl From<&str> for InputValue {
    fn from(text: &str) -> InputValue {
        InputValue::Text(Digest::hash(text), text.into())
    }
}

impl From<String> for InputValue {
    fn from(text: String) -> InputValue {
        InputValue::from(text.as_str())
    }
}

impl InputValue {
    /// Identifies the text without its bytes.
    pub fn digest(&self) -> Digest {
        match self {
            InputValue::Text(digest, _) | InputValue::Output(digest) => *digest,
            InputValue::Composed(value) => value.digest,
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            InputValue::Text(_, text) => text.is_empty(),
            InputValue::Output(digest) => *digest == Digest::hash(""),
            InputValue::Composed(_) => false,
        }
    }

    /// The text; `resolve` fetches outputs of earlier actions.
    ///
    /// # Errors
    /// The first error of `resolve`.
    pub fn text<E>(
        &self,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<Arc<str>, E> {
        match self {
            InputValue::Text(_, text) => Ok(text.clone()),
            InputValue::Output(digest) if *digest == Digest::hash("") => Ok("".into()),
            InputValue::Output(digest) => resolve(digest),
            InputValue::Composed(value) => value.text(resolve),
        }
    }

    /// The text, and where its part called `name` begins; `None` if it has no such part.
    pub(super) fn text_until<E>(
        &self,
        name: &str,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<(Arc<str>, Option<usize>), E> {
        match self {
            InputValue::Composed(value) => value
                .text_until(name, resolve)
                .map(|(text, split)| (text.into(), split)),
            InputValue::Text(..) | InputValue::Output(_) => Ok((self.text(resolve)?, None)),
        }
    }
}

/// A text made of literal parts and values. Each value has a name, so that a changed key can be explained.
#[derive(Clone, Debug)]
pub struct ComposedValue {
    digest: Digest,
    parts: Vec<ComposedPart>,
}

#[derive(Clone, Debug)]
struct ComposedPart {
    /// `LITERAL` for the text between the values.
    name: &'static str,
    value: InputValue,
    encoding: PartEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PartEncoding {
    Raw,
    JsonString,
}

const LITERAL: &str = "";

impl ComposedValue {
    pub fn builder() -> ComposedValueBuilder {
        ComposedValueBuilder(Vec::new())
    }

    /// The named values, without the literal text between them.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &InputValue)> {
        self.parts
            .iter()
            .filter(|part| part.name != LITERAL)
            .map(|part| (part.name, &part.value))
    }

    fn text<E>(&self, resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>) -> Result<Arc<str>, E> {
        Ok(self.text_until(LITERAL, resolve)?.0.into())
    }

    /// The text, and where the value called `name` begins.
    fn text_until<E>(
        &self,
        name: &str,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<(String, Option<usize>), E> {
        let (mut text, mut split) = (String::new(), None);
        for part in &self.parts {
            if part.name == name {
                split.get_or_insert(text.len());
            }
            let value = part.value.text(resolve)?;
            match part.encoding {
                PartEncoding::Raw => text.push_str(&value),
                PartEncoding::JsonString => {
                    text.push_str(&serde_json::Value::from(&*value).to_string())
                }
            }
        }
        Ok((text, split))
    }
}

/// Collects the parts of a composed value.
pub struct ComposedValueBuilder(Vec<ComposedPart>);

impl ComposedValueBuilder {
    pub fn literal(self, text: &str) -> ComposedValueBuilder {
        self.fixed(&text.into())
    }

    /// Appends literal text that was hashed before.
    pub fn fixed(self, text: &InputValue) -> ComposedValueBuilder {
        self.part(LITERAL, text.clone(), PartEncoding::Raw)
    }

    /// Appends a value as it is: plain text, or JSON.
    pub fn raw(self, name: &'static str, value: InputValue) -> ComposedValueBuilder {
        self.part(name, value, PartEncoding::Raw)
    }

    /// Appends a text, encoded as a JSON string.
    pub fn string(self, name: &'static str, value: InputValue) -> ComposedValueBuilder {
        self.part(name, value, PartEncoding::JsonString)
    }

    fn part(
        mut self,
        name: &'static str,
        value: InputValue,
        encoding: PartEncoding,
    ) -> ComposedValueBuilder {
        self.0.push(ComposedPart {
            name,
            value,
            encoding,
        });
        self
    }

    pub fn build(self) -> InputValue {
        let mut builder = DigestBuilder::new("composed");
        for part in &self.0 {
            let encoding = if part.encoding == PartEncoding::Raw {
                "raw"
            } else {
                "string"
            };
            builder.field(encoding, part.value.digest().0);
        }
        InputValue::Composed(Arc::new(ComposedValue {
            digest: builder.finish(),
            parts: self.0,
        }))
    }
}
