//! Reading outputs: a reply, a program's output or a computed result, to a context. Pure, and done again at every use.

use std::sync::Arc;

use super::command;
use super::context::{CompressState, Context, ContextRef, StateRef, with_index};
use super::fault::{CompressFault, Warning};
use super::prompts::missing_sections;
use super::spec::{Method, Strategy};
use crate::action::{Digest, DigestBuilder};
use crate::provider::{Completion, ModelUse};
use crate::transcript::Message;
use crate::units::Usage;

/// The output of a compression, as the cache stores it.
#[derive(Clone, Copy, Debug)]
pub enum CompressOutput<'a> {
    /// A model's or vendor's reply.
    Reply(&'a Completion),
    /// What a program wrote to its standard output.
    Stdout(&'a [u8]),
    /// What [`super::compute`] returned.
    Computed(&'a [u8]),
}

#[derive(Clone, Debug)]
pub struct Compressed {
    /// Names what goes downstream, without the artifact index: the digest that the cache records as `out`.
    pub out: Digest,
    /// The context, the artifact index appended where the method asks for it.
    pub context: Context,
    /// The names of the context; equal to what [`context_ref`] makes of `out`.
    pub reference: ContextRef,
    /// What the next point is given, if the strategy keeps state.
    pub state: Option<CompressState>,
    /// What a program says it used; a model's usage is in its reply.
    pub usage: Option<Usage>,
    /// Findings that do not invalidate the output.
    pub warnings: Vec<Warning>,
}

/// Reads what `method` put out. `index` is the artifact index of the prefix; it is used only where the method asks
/// for one, and may be empty elsewhere.
///
/// # Errors
/// An output that is empty, damaged, or breaks the protocol. A missing section is a warning, never an error.
pub fn read(method: &Method, output: CompressOutput<'_>, index: &str) -> Result<Compressed, CompressFault> {
    let mut compressed = match (&method.strategy, output) {
        (Strategy::Prompted { style, template, .. }, CompressOutput::Reply(reply)) => {
            let text = summary_of(&reply.text)?;
            let missing = missing_sections(template, *style, text);
            let warnings = if missing.is_empty() { Vec::new() } else { vec![Warning::MissingSections(missing)] };
            Compressed { warnings, ..plain(Context::summary(text), Some(text)) }
        }
        (Strategy::Opaque { model }, CompressOutput::Reply(reply)) => bound(method, model, reply, None)?,
        (Strategy::ProviderCompaction { model, .. }, CompressOutput::Reply(reply)) => {
            let text = summary_of(&reply.text)?.to_owned();
            bound(method, model, reply, Some(text))?
        }
        (Strategy::Command(_), CompressOutput::Stdout(bytes)) => program(method, bytes)?,
        (Strategy::Rule(_), CompressOutput::Computed(bytes)) => {
            let messages: Vec<Message> =
                serde_json::from_slice(bytes).map_err(|error| CompressFault::Damaged(error.to_string()))?;
            plain(Context::Readable { messages }, None)
        }
        (strategy, _) => return Err(CompressFault::WrongKind { strategy: strategy.name() }),
    };
    if method.wants_index() {
        compressed.context = compressed.context.with_index(index);
    }
    compressed.reference = context_ref(method, compressed.out, Digest::of(index));
    Ok(compressed)
}

/// The names of the context that a compression with this `out` yields, without its bytes. `index` names the artifact
/// index of the prefix; it counts only where the method asks for one.
pub fn context_ref(method: &Method, out: Digest, index: Digest) -> ContextRef {
    let index = if method.wants_index() { index } else { Digest::of("") };
    let bound = |model: &ModelUse, text| ContextRef::Bound {
        items: out,
        text,
        endpoint: model.provider.endpoint.clone(),
        model: model.reference.model.clone(),
    };
    match &method.strategy {
        Strategy::Prompted { .. } | Strategy::Rule(_) => ContextRef::Readable { text: with_index(out, index) },
        Strategy::Command(_) => ContextRef::Readable { text: with_index(derived("program context", out), index) },
        Strategy::Opaque { model } => bound(model, None),
        Strategy::ProviderCompaction { model, .. } => bound(model, Some(derived("compaction text", out))),
    }
}

/// The state that a compression with this `out` leaves to the next point, if its strategy keeps any.
pub fn state_ref(method: &Method, out: Digest) -> Option<StateRef> {
    method.strategy.keeps_state().then_some(StateRef { digest: out })
}

/// Names a text that is a part of the output named `out`.
fn derived(what: &str, out: Digest) -> Digest {
    DigestBuilder::new(what).field("output", out.0).finish()
}

impl Compressed {
    /// Every text that a name in [`Compressed::reference`] or the next point's state stands for.
    pub fn texts(&self) -> Vec<(Digest, Arc<str>)> {
        let state = self.state.as_ref().map(|state| (self.out, state.text.clone()));
        let mut texts: Vec<_> = state.into_iter().collect();
        match (&self.reference, &self.context) {
            (ContextRef::Bound { items: name, .. }, Context::Bound { items, .. }) => texts.push((*name, items.clone())),
            (ContextRef::Readable { text: name }, context) => texts.extend(context.text().map(|text| (*name, text))),
            (ContextRef::Bound { .. }, Context::Readable { .. }) => {}
        }
        if let (ContextRef::Bound { text: Some(name), .. }, Some(text)) = (&self.reference, self.context.text()) {
            texts.push((*name, text));
        }
        texts
    }
}

/// A reply's summary: trimmed, and out of the code fence that some models put around all they write.
fn summary_of(text: &str) -> Result<&str, CompressFault> {
    let text = text.trim();
    let inner = ["```markdown\n", "```md\n", "```text\n", "```\n"]
        .into_iter()
        .find_map(|open| text.strip_prefix(open)?.strip_suffix("```"))
        .filter(|inner| !inner.contains("```"));
    let text = inner.unwrap_or(text).trim();
    if text.is_empty() { Err(CompressFault::Empty) } else { Ok(text) }
}

/// A context that is named by its own text.
fn plain(context: Context, state: Option<&str>) -> Compressed {
    let out = Digest::of(context.text().unwrap_or_default().as_bytes());
    Compressed {
        out,
        context,
        reference: ContextRef::Readable { text: out },
        state: state.map(|text| CompressState { text: text.into() }),
        usage: None,
        warnings: Vec::new(),
    }
}

fn bound(
    method: &Method,
    model: &ModelUse,
    reply: &Completion,
    text: Option<String>,
) -> Result<Compressed, CompressFault> {
    let items: Arc<str> = reply.items.as_deref().ok_or(CompressFault::NoItems)?.into();
    let out = Digest::of(items.as_bytes());
    let state = Some(CompressState { text: items.clone() });
    let endpoint = model.provider.endpoint.clone();
    let context = Context::Bound { items, endpoint, model: model.reference.model.clone(), text };
    let reference = context_ref(method, out, Digest::of(""));
    Ok(Compressed { out, context, reference, state, usage: None, warnings: Vec::new() })
}

fn program(method: &Method, stdout: &[u8]) -> Result<Compressed, CompressFault> {
    let returned = command::read(stdout)?;
    // The state goes downstream too, so it belongs to what `out` names.
    let out = Digest::of(&returned.previous);
    Ok(Compressed {
        out,
        context: returned.context,
        reference: context_ref(method, out, Digest::of("")),
        state: Some(CompressState { text: returned.previous.into() }),
        usage: returned.usage,
        warnings: returned.warnings,
    })
}
