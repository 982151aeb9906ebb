//! Reads a reply, a program's output or a computed result as a context. Pure, and repeated at every use.

use std::sync::Arc;

use super::CompressFault;
use super::command::{self, ProgramUsage};
use super::context::{Context, ContextRef};
use super::prompts::missing_sections;
use super::shape::Kept;
use super::spec::{Method, Strategy};
use crate::action::{Digest, DigestBuilder};
use models::Completion;
use sessions::transcript::Message;

/// The output of a compression, as the cache stores it.
#[derive(Clone, Copy, Debug)]
pub enum CompressOutput<'a> {
    /// A model's or vendor's reply.
    Reply(&'a Completion),
    /// What a program wrote to its standard output, or [`super::compute`] returned.
    Bytes(&'a [u8]),
}

#[derive(Clone, Debug)]
pub struct Compressed {
    /// The digest of what goes downstream, which the cache records as `out`.
    pub out: Digest,
    pub context: Context,
    /// The context by its digests; equal to what [`context_ref`] makes of `out`.
    pub reference: ContextRef,
    /// What the next point is given, if the strategy keeps state: a summary, a JSON array of items, or the JSON object
    /// that a program gets as `previous`.
    pub state: Option<Arc<str>>,
    /// The summary, where it is only a part of the context.
    pub summary: Option<Arc<str>>,
    /// What a program says it used; a model's usage is in its reply.
    pub usage: Option<ProgramUsage>,
    /// Whether nothing was compressed: the context has all that it replaces. [`read()`] takes a program's word for it; the
    /// caller, who has the messages, checks it.
    pub is_unchanged: bool,
    /// Findings that do not invalidate the output.
    pub warnings: Vec<String>,
}

/// Reads an output of `method`.
///
/// # Errors
/// An output that is empty, damaged, or breaks the protocol. A missing section is a warning, never an error.
pub fn read(
    method: &Method,
    output: CompressOutput<'_>,
    kept: Option<&Kept>,
) -> Result<Compressed, CompressFault> {
    let (mut usage, mut warnings, mut is_unchanged) = (None, Vec::new(), false);
    let (mut context, state): (Context, Option<Arc<str>>) = match (&method.strategy, output) {
        (
            Strategy::Prompted {
                style,
                template,
                extract,
                ..
            },
            CompressOutput::Reply(reply),
        ) => {
            let text = match extract {
                Some(tag) => summary_of(inside(&reply.text, tag).ok_or_else(|| {
                    CompressFault::new(format!(
                        "the reply has no <{tag}>…</{tag}>, which `extract` takes the summary from"
                    ))
                })?)?,
                None => summary_of(&reply.text)?,
            };
            let missing = missing_sections(template, *style, text);
            if !missing.is_empty() {
                let names = missing.join(", ");
                warnings.push(format!(
                    "the summary lacks sections that its prompt asks for: {names}"
                ));
            }
            (Context::summary(text), Some(text.into()))
        }
        (Strategy::Prompted { .. }, CompressOutput::Bytes(bytes)) if kept.is_some() => {
            let text = summary_before(bytes)?;
            is_unchanged = text.is_empty();
            (Context::summary(text.as_str()), Some(text.into()))
        }
        (Strategy::Opaque { .. }, CompressOutput::Reply(reply)) => bound(reply, None)?,
        (Strategy::ProviderCompaction { .. }, CompressOutput::Reply(reply)) => {
            bound(reply, Some(summary_of(&reply.text)?))?
        }
        (Strategy::Command(_), CompressOutput::Bytes(stdout)) => {
            let returned = command::read(stdout)?;
            (usage, warnings, is_unchanged) =
                (returned.usage, returned.warnings, returned.is_unchanged);
            (returned.context, Some(returned.previous.into()))
        }
        (Strategy::Rule(_), CompressOutput::Bytes(bytes)) => (
            Context::Readable {
                messages: computed_messages(bytes)?,
            },
            None,
        ),
        (strategy, _) => {
            let strategy = strategy.name();
            return Err(CompressFault::new(format!(
                "a `{strategy}` method cannot have made this kind of output"
            )));
        }
    };
    // A state contains everything that goes downstream, so its digest identifies the output.
    let out = state.as_deref().map_or_else(
        || Digest::hash(&*context.text().unwrap_or_default()),
        Digest::hash,
    );
    let mut summary = None;
    if let (Some(kept), Some(state)) = (kept, &state) {
        context = Context::Readable {
            messages: kept.around(state),
        };
        summary = Some(state.clone());
    }
    let reference = context_ref(method, out, kept);
    Ok(Compressed {
        out,
        context,
        reference,
        state,
        summary,
        usage,
        is_unchanged,
        warnings,
    })
}

/// The context that a compression with this `out` yields, by its digests.
pub fn context_ref(method: &Method, out: Digest, kept: Option<&Kept>) -> ContextRef {
    let (model, text) = match &method.strategy {
        Strategy::Prompted { .. } => {
            let text = kept.map_or(out, |kept| {
                DigestBuilder::new("kept context")
                    .field("summary", out.0)
                    .field("kept", kept.digest.0)
                    .finish()
            });
            return ContextRef::Readable { text };
        }
        Strategy::Rule(_) => return ContextRef::Readable { text: out },
        Strategy::Command(_) => {
            return ContextRef::Readable {
                text: derived("program context", out),
            };
        }
        Strategy::Opaque { model } => (model, None),
        Strategy::ProviderCompaction { model, .. } => {
            (model, Some(derived("compaction text", out)))
        }
    };
    let (endpoint, model) = (
        model.provider.endpoint.clone(),
        model.reference.model.clone(),
    );
    ContextRef::Bound {
        items: out,
        text,
        endpoint,
        model,
    }
}

/// The digest of the state that a compression with this `out` leaves to the next point, if its strategy keeps any. A
/// summary is never empty: where there is none, nothing has been summarised yet.
pub fn state_digest(method: &Method, out: Digest) -> Option<Digest> {
    let is_nothing = method.strategy.shape().is_some() && out == Digest::hash("");
    (method.strategy.keeps_state() && !is_nothing).then_some(out)
}

/// The digest that stands for a text which is a part of the output `out`.
fn derived(what: &str, out: Digest) -> Digest {
    DigestBuilder::new(what).field("output", out.0).finish()
}

impl Compressed {
    /// Every text that a digest in [`Compressed::reference`] or the next point's state stands for.
    pub fn texts(&self) -> Vec<(Digest, Arc<str>)> {
        let state = self.state.as_ref().map(|state| (self.out, state.clone()));
        let mut texts: Vec<_> = state.into_iter().collect();
        match (&self.reference, &self.context) {
            (ContextRef::Bound { items: digest, .. }, Context::Bound { items, .. }) => {
                texts.push((*digest, items.clone()))
            }
            (ContextRef::Readable { text: digest }, context) => {
                texts.extend(context.text().map(|text| (*digest, text)))
            }
            (ContextRef::Bound { .. }, Context::Readable { .. }) => {}
        }
        if let (
            ContextRef::Bound {
                text: Some(digest), ..
            },
            Some(text),
        ) = (&self.reference, self.context.text())
        {
            texts.push((*digest, text));
        }
        texts
    }
}

/// The summary of the point before, as [`super::prepare()`] hands it on where nothing new is to be summarised.
fn summary_before(bytes: &[u8]) -> Result<String, CompressFault> {
    Ok(computed_messages(bytes)?
        .into_iter()
        .next()
        .map(|message| message.content)
        .unwrap_or_default())
}

/// The messages that a rule computed.
fn computed_messages(bytes: &[u8]) -> Result<Vec<Message>, CompressFault> {
    serde_json::from_slice(bytes).map_err(|error| {
        CompressFault::new(format!("the computed context cannot be read: {error}"))
    })
}

/// The text in the last pair of `<tag>` and `</tag>` in a reply that is not inside another, with the tags in it. A pair
/// without a text counts only if there is no other: it is a mention of the tags.
fn inside<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let (mut opened, mut last) = (Vec::new(), None);
    for (start, found) in tags_in(text, &open, &close) {
        if found == open {
            opened.push(start + found.len());
        } else if let Some(from) = opened.pop() {
            let inner = text.get(from..start)?;
            if last.is_none() || !inner.trim().is_empty() {
                last = Some(inner);
            }
        }
    }
    // Some models write the tags twice.
    let last = last?;
    let doubled = last
        .trim()
        .strip_prefix(&*open)
        .and_then(|inner| inner.strip_suffix(&*close));
    Some(
        doubled
            .filter(|inner| !inner.contains(&*open))
            .unwrap_or(last),
    )
}

/// All tags with their places, in order.
fn tags_in<'t>(text: &'t str, open: &'t str, close: &'t str) -> Vec<(usize, &'t str)> {
    let mut tags: Vec<(usize, &str)> = text
        .match_indices(open)
        .chain(text.match_indices(close))
        .collect();
    tags.sort_unstable();
    tags
}

/// A reply's summary: trimmed, and out of the code fence that some models put around all they write.
fn summary_of(text: &str) -> Result<&str, CompressFault> {
    let text = text.trim();
    let inner = ["```markdown\n", "```md\n", "```text\n", "```\n"]
        .into_iter()
        .find_map(|open| text.strip_prefix(open)?.strip_suffix("```"))
        .filter(|inner| !inner.contains("```"));
    let text = inner.unwrap_or(text).trim();
    if text.is_empty() {
        Err(CompressFault::empty())
    } else {
        Ok(text)
    }
}

/// A context that only its provider can take back; its items are the state, too.
fn bound(
    reply: &Completion,
    text: Option<&str>,
) -> Result<(Context, Option<Arc<str>>), CompressFault> {
    let missing = || CompressFault::new("the reply holds no compaction item to send back later");
    let items: Arc<str> = reply.items.as_deref().ok_or_else(missing)?.into();
    Ok((
        Context::Bound {
            items: items.clone(),
            text: text.map(str::to_owned),
        },
        Some(items),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_is_nested_in_the_summary_does_not_end_it() {
        let nested = "Files.\n<details><summary>Click</summary>a.rs</details>\nNext: b.rs";
        let cases = [
            (format!("<summary>{nested}</summary>"), Some(nested)),
            (
                format!("<summary>draft</summary> again: <summary>{nested}</summary> done"),
                Some(nested),
            ),
            (
                format!("I will use <summary> tags. <summary>{nested}</summary>"),
                Some(nested),
            ),
            (
                "<summary>draft</summary><summary>last</summary>".to_owned(),
                Some("last"),
            ),
            (
                "I will use <summary> tags. <summary>S</summary>".to_owned(),
                Some("S"),
            ),
            (
                "<summary>S</summary> That was </summary>.".to_owned(),
                Some("S"),
            ),
            (
                "<summary>\n<summary>S</summary>\n</summary>".to_owned(),
                Some("S"),
            ),
            ("</summary> no summary".to_owned(), None),
        ];
        for (reply, expected) in cases {
            assert_eq!(inside(&reply, "summary"), expected, "{reply}");
        }
    }

    #[test]
    fn tags_that_are_mentioned_before_the_summary_do_not_count() {
        for before in [
            "I put it between <summary> and </summary>.\n",
            "I begin with <summary> and\n",
            "The prompt wants a \"<summary>\" block.\n",
            "我会把它放在<summary>标签里，以 </summary> 结束。\n",
        ] {
            let reply = format!("{before}<summary>\nS\n</summary>");
            assert_eq!(inside(&reply, "summary"), Some("\nS\n"), "{reply}");
        }
        for reply in [
            "Here: <summary> S </summary> done.",
            "`<summary> S </summary>`",
            "<summary>S</summary> in <summary></summary> tags",
            "<summary>S</summary>\nI used the <summary> tag.",
        ] {
            assert_eq!(
                inside(reply, "summary").map(str::trim),
                Some("S"),
                "{reply}"
            );
        }
        assert_eq!(
            inside("<summary></summary>", "summary"),
            Some(""),
            "an empty reply is not one without tags"
        );
    }
}
