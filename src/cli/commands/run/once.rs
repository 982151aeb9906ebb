//! One run, of the whole matrix or of a shard: validated, then executed and published.

use std::path::Path;

use super::args::RunArgs;
use super::finish;
use super::matrix_run::{ExecutedRun, PreparedRun, publication, run_whole};
use crate::cache::{Lookup, Store};
use crate::cli::args::Common;
use crate::cli::commands::import_failure;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{given, open_store, print_notices, with_store};
use crate::cli::terminal::Console;
use crate::pipeline::{JudgeIx, Pipeline};
use crate::plan::{SelftestTask, selftest};
use crate::results::names;

/// Validates the run and opens its cache.
pub(super) fn prepare(common: &Common, args: &RunArgs, console: &Console) -> Result<(PreparedRun, Store), Failure> {
    let prepare = || PreparedRun::of(common, args, console);
    match args.shards.shard {
        // Its cache is its own; that of the project is not locked.
        Some(_) => {
            let prepared = prepare()?;
            let store = open_store(prepared.cache(), console)?;
            Ok((prepared, store))
        }
        None => with_store(common, console, prepare, PreparedRun::cache),
    }
}

pub(super) fn run_prepared(
    common: &Common,
    prepared: PreparedRun,
    store: Store,
    args: &RunArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    if let Some(file) = &args.selftest {
        import_selftest(&prepared.pipeline, &store, &given(common, file), console)?;
    }
    match prepared.shard {
        Some(_) => run_shard(prepared, store, args, console),
        None => run_whole(prepared, store, args, |_, exit| exit, console),
    }
}

/// Runs a shard. It leaves rows, manifest and cache; the merge makes reports of all shards.
fn run_shard(prepared: PreparedRun, store: Store, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    if let Some(shard) = &prepared.shard {
        console.note(&shard.line());
        shard.copy_known(&prepared.pipeline, &store)?;
    }
    let ExecutedRun { folder, manifest, exit, is_broken, .. } = prepared.execute(&store, args, None, console)?;
    let PreparedRun { label, writer, .. } = prepared;
    let files = writer.lock_files()?;
    let synced = store.sync();
    print_notices(&store, console);
    let folder =
        publication(writer.publish(folder.stage_json(names::MANIFEST, &manifest)?, &manifest)?, &label, console);
    drop(files);
    finish::print_shard(&manifest, &folder, console);
    if !is_broken {
        synced?;
    }
    Ok(exit)
}

/// Adds the exported self-test to the cache, so that no judge is asked about it.
fn import_selftest(pipeline: &Pipeline, store: &Store, file: &Path, console: &Console) -> Result<(), Failure> {
    if !file.is_file() {
        let message = format!("there is no file {}", file.display());
        return Err(Failure::input(message).hinted("compeval judge selftest --export FILE   writes it"));
    }
    store.import(file, None).map_err(import_failure)?;
    let cases = (0..pipeline.judges.len()).filter_map(|judge| selftest(pipeline, JudgeIx(judge)).ok()).flatten();
    let is_missing = |case: &SelftestTask| !store.find(&case.action.key).is_some_and(|record| record.is_usable());
    let missing = cases.filter(is_missing).count();
    if missing > 0 {
        let text =
            format!("{} lacks {missing} self-test cases of the judges of this run: they will be asked", file.display());
        console.warn("warning:", text);
    }
    Ok(())
}
