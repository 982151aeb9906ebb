//! Finds the outputs of programs that depend on the modules that they load. These are known only after a run.
//!
//! An action of such a program is prepared with the key of the declared inputs. No output has that key: it leads to the
//! outputs that were made of the same declared inputs, and the key of each is also made of the modules that were loaded.
//! An output fits if all these modules are on disk as they were. If none fits, the program runs, and the modules that it
//! lists become part of the key ([`made_output`]). A missed output costs an execution. A found output is never a wrong
//! one, because the inputs that its own key is made of are compared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::prepare::Action;
use crate::action::{
    ActionKey, Digest, INPUTS_FROM, InputChange, InputPart, Inputs, Modules, Program, Sources,
    Stage, Work, module_path, package_name,
};
use crate::compress::{CommandSpec, CompressFault, split_modules};
use crate::entries::{BodyFormat, EntryLookup, EntryMeta, EntryRecord};
use crate::pipeline::{ModuleFault, Pipeline};
use store::cache::{Lookup, Record};

/// Whether an action has the key of its declared inputs alone, under which no output is stored.
pub(super) fn has_unknown_modules(action: &Action) -> bool {
    matches!(&action.work, Work::Execute(program) if program.modules == Modules::Unknown)
}

/// Finds the output that was made of the declared inputs of an action and of modules that are on disk as they were then.
pub(super) fn find_fitting<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
) -> Option<Record> {
    let mut unusable = None;
    for (record, meta) in candidates(lookup, pipeline, action) {
        if changed_modules(pipeline, &meta).is_empty() {
            if record.is_usable() {
                return Some(record);
            }
            unusable = unusable.or(Some(record));
        }
    }
    unusable
}

/// Finds the output that an action is compared with if no output fits: the latest one in its place, else the newest.
pub(super) fn find_nearest<L: Lookup>(
    lookup: &L,
    pipeline: &Pipeline,
    action: &Action,
    latest: Option<ActionKey>,
) -> Option<EntryMeta> {
    let found: Vec<(Record, EntryMeta)> = candidates(lookup, pipeline, action).collect();
    let own = found
        .iter()
        .position(|(record, _)| Some(record.key) == latest)
        .unwrap_or(0);
    found.into_iter().nth(own).map(|(_, meta)| meta)
}

/// The outputs that were made of the declared inputs of an action, the newest first.
fn candidates<'l, L: Lookup>(
    lookup: &'l L,
    pipeline: &Pipeline,
    action: &Action,
) -> impl Iterator<Item = (Record, EntryMeta)> + use<'l, L> {
    let keys = pipeline
        .module_files
        .outputs(&action.key, || index_by_declaration(lookup));
    keys.into_iter().rev().filter_map(move |key| {
        let record = lookup.find(&key)?;
        let meta = lookup.meta(&record).ok()?;
        Some((record, meta))
    })
}

/// All outputs in the cache that depend on modules, by the key of their declared inputs, the oldest first.
fn index_by_declaration<L: Lookup>(lookup: &L) -> HashMap<ActionKey, Vec<ActionKey>> {
    let mut found: HashMap<ActionKey, Vec<ActionKey>> = HashMap::new();
    for record in lookup.records() {
        if record.stage() != Some(Stage::Compress) || record.body_format() != BodyFormat::Local {
            continue;
        }
        let declared = lookup
            .meta(&record)
            .ok()
            .and_then(|meta| meta.inputs.declared_key());
        if let Some(declared) = declared {
            found.entry(declared).or_default().push(record.key);
        }
    }
    found
}

/// The differences between the inputs of an action and the inputs of an earlier output, whose modules are compared with
/// the files on disk.
pub fn changes_since(pipeline: &Pipeline, action: &Action, old: &EntryMeta) -> Vec<InputChange> {
    let mut changes = action.inputs().changes_since(&old.inputs.declared());
    // An output of a method without the setting says nothing about modules.
    if has_unknown_modules(action) && !changes.iter().any(|change| change.part == INPUTS_FROM) {
        changes.extend(changed_modules(pipeline, old));
    }
    changes
}

/// The modules and packages of an output that are not on disk as they were.
fn changed_modules(pipeline: &Pipeline, old: &EntryMeta) -> Vec<InputChange> {
    let mut changes = Vec::new();
    for (name, part) in &old.inputs.parts {
        let now = match (module_path(name), package_name(name)) {
            (Some(path), _) => module_now(pipeline, path),
            (None, Some(_)) => package_now(pipeline, name, part, &old.sources),
            (None, None) => continue,
        };
        if now.as_ref().map(|now| now.digest) != Some(part.digest) {
            changes.push(InputChange {
                part: name.to_string(),
                old: Some(part.clone()),
                new: now,
            });
        }
    }
    changes
}

fn module_now(pipeline: &Pipeline, path: &str) -> Option<InputPart> {
    let digest = pipeline.module_files.digest(&pipeline.folder, path)?;
    Some(InputPart { digest, text: None })
}

/// A package by the file with its version: the same file is the same version. `None` if the file is gone.
fn package_now(
    pipeline: &Pipeline,
    name: &str,
    old: &InputPart,
    sources: &Sources,
) -> Option<InputPart> {
    let source = sources.0.get(name)?;
    let path = source.path.as_deref()?;
    if pipeline.module_files.digest(&pipeline.folder, path)? == source.digest {
        return Some(old.clone());
    }
    let version = pipeline
        .module_files
        .package_version(&pipeline.folder, path);
    // A changed file is another package, even if it says the same version or none.
    let text = version.filter(|version| old.text.as_ref() != Some(version));
    let digest = text.as_ref().map_or_else(
        || Digest::hash([&source.digest.0[..], b"changed"].concat()),
        Digest::hash,
    );
    Some(InputPart { digest, text })
}

/// The output of a program, ready to be stored.
#[derive(Debug)]
pub struct MadeOutput {
    /// The action under whose key the output is stored: with the loaded modules among its inputs, if they are known.
    pub action: Action,
    pub stdout: Bytes,
    /// The files that say the versions of packages.
    pub sources: Sources,
    /// Why the output is stored for inspection only: nothing would show when it is stale.
    pub fault: Option<CompressFault>,
}

/// Makes the output of an action from the standard output of a program that was started at `started`.
///
/// # Errors
/// A module has changed since then: nothing may be stored.
pub fn made_output(
    pipeline: &Pipeline,
    action: &Action,
    spec: &CommandSpec,
    stdout: Bytes,
    started: SystemTime,
) -> Result<MadeOutput, ModuleFault> {
    let plain = MadeOutput {
        action: action.clone(),
        stdout,
        sources: Sources::default(),
        fault: None,
    };
    let Work::Execute(program) = &action.work else {
        return Ok(plain);
    };
    if !has_unknown_modules(action) {
        return Ok(plain);
    }
    let (listed, stdout) = match split_modules(&plain.stdout) {
        Ok(split) => split,
        Err(fault) => {
            return Ok(MadeOutput {
                fault: Some(fault),
                ..plain
            });
        }
    };
    let (modules, sources) = match pipeline.module_files.make_inputs(spec, &listed, started) {
        Ok(taken) => taken,
        Err(fault @ ModuleFault::Changed(_)) => return Err(fault),
        Err(fault) => {
            return Ok(MadeOutput {
                fault: Some(CompressFault::Modules(fault.to_string())),
                ..plain
            });
        }
    };
    let work = Work::Execute(Program {
        modules: Modules::Loaded(Arc::new(modules)),
        ..program.clone()
    });
    let key = Inputs::key_of(action.stage, action.repetition, &work);
    let action = Action {
        key,
        work,
        ..action.clone()
    };
    Ok(MadeOutput {
        action,
        stdout: stdout.into(),
        sources,
        fault: None,
    })
}
