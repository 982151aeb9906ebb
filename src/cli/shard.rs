//! The shard that this process runs: its number, its part of the matrix, its folders.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cache::{Layered, Store};
use crate::cli::args::SHARDS;
use crate::cli::environment::variable;
use crate::cli::failure::{Failure, chain};
use crate::cli::project::open_snapshot;
use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::Pipeline;
use crate::plan::reachable;
use crate::results::{Label, ShardFolder};
use crate::shard::{Assignment, Engine, EngineError, Shard, ShardArgument, ShardRecord};

/// Which part of the matrix this process runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShardArgs {
    /// Run part I of N; `auto` and `auto/N` take I from the job array that started this process
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = SHARDS)]
    pub(crate) shard: Option<ShardArgument>,
    /// Do not divide the providers' rate limits by N
    #[arg(long, requires = "shard", help_heading = SHARDS)]
    pub(crate) whole_limits: bool,
}

/// A shard by its number, with the engine that gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedShard {
    shard: Shard,
    engine: Option<Engine>,
    whole_limits: bool,
}

impl ShardArgs {
    /// The shard that this process runs, if it is to run one.
    pub(crate) fn number(&self) -> Result<Option<NumberedShard>, Failure> {
        let of = |shard, engine| NumberedShard { shard, engine, whole_limits: self.whole_limits };
        Ok(match self.shard {
            None => None,
            Some(ShardArgument::Number(shard)) => Some(of(shard, None)),
            Some(ShardArgument::Auto(count)) => {
                let found = Engine::shard(variable, count)
                    .map_err(|error: EngineError| Failure::input(format!("--shard auto: {error}")))?;
                Some(of(found.0, Some(found.1)))
            }
        })
    }

    /// Says that this process is a task of an array, where it would run the whole matrix all the same.
    pub(crate) fn mention_engine(&self, console: &Console) {
        if let Some((_, name)) = Engine::detect(variable).filter(|_| self.shard.is_none()) {
            let text = format!("{name} is set; this runs the whole matrix, and --shard auto/N a part of it");
            console.note(&console.labelled(TextStyle::Hint, "note:", text));
        }
    }
}

impl NumberedShard {
    /// Processes that the providers' limits are divided among.
    pub(crate) fn sharers(self) -> Option<NonZeroU32> {
        (!self.whole_limits).then_some(self.shard.of())
    }
}

/// A shard with its part of the matrix.
pub(crate) struct ShardOfRun {
    pub(crate) record: ShardRecord,
    assignment: Assignment,
    /// The project's cache, which is read beside the shard's own and never locked: on a shared file system all shards
    /// read it.
    pub(crate) project_cache: PathBuf,
}

/// The part of a plan about its shard.
#[derive(Debug, Serialize)]
pub(crate) struct ShardJson {
    #[serde(flatten)]
    shard: Shard,
    chains: usize,
    chains_of_all: usize,
    /// Its part of the estimated work, from 0 to 1.
    share: f64,
    /// The work of the largest shard, in means of all.
    largest_to_mean: f64,
}

impl ShardOfRun {
    /// Leaves `pipeline` the chains of the shard, and gives it the shard's cache and results folder.
    pub(crate) fn restrict_to_shard(pipeline: &mut Pipeline, number: NumberedShard, label: &Label) -> ShardOfRun {
        let NumberedShard { shard, engine, .. } = number;
        let assignment = Assignment::of(pipeline, shard.of());
        let folder = ShardFolder::of(&pipeline.results, label, shard);
        pipeline.part = Some(assignment.part(shard).chains);
        folder.path().clone_into(&mut pipeline.results);
        let project_cache = std::mem::replace(&mut pipeline.cache, folder.cache());
        let record = ShardRecord { shard, assignment: assignment.digest(), engine };
        ShardOfRun { record, assignment, project_cache }
    }

    /// Copies what this part of the matrix finds in the project's cache into the shard's own, so that a merge needs
    /// nothing but the shard's folder, on whatever machine it is.
    pub(crate) fn copy_known(&self, pipeline: &Pipeline, store: &Store) -> Result<(), Failure> {
        let known = open_snapshot(&self.project_cache)?;
        if !known.is_empty() {
            let found = reachable(pipeline, &Layered { upper: store, lower: &known });
            let keys = found.map_err(|error| Failure::input(chain(&error)))?;
            store.import_from_cache(&known, &keys.keys)?;
        }
        Ok(())
    }

    /// Its part of the money and of the requests.
    pub(crate) fn share(&self) -> f64 {
        self.assignment.share(self.record.shard)
    }

    pub(crate) fn json(&self) -> ShardJson {
        ShardJson {
            shard: self.record.shard,
            chains: self.chains(),
            chains_of_all: self.assignment.chains(),
            share: self.share(),
            largest_to_mean: self.assignment.largest_to_mean(),
        }
    }

    fn chains(&self) -> usize {
        self.assignment.part(self.record.shard).chains.len()
    }

    /// Its part of the matrix, in words.
    pub(crate) fn line(&self) -> String {
        let (shard, all) = (self.record.shard, self.assignment.chains());
        match self.chains() {
            0 => format!("Shard {shard} has nothing to do: the matrix has {all} chains, some of which stay together."),
            chains => format!(
                "Shard {shard}: {chains} of {all} chains (a method on a fixture), {:.0}% of the estimated work; the \
                 largest shard has {:.2} times the mean.",
                self.share() * 100.0,
                self.assignment.largest_to_mean(),
            ),
        }
    }
}
