//! The user's own programs: started once for each request, or as workers that answer one request after the other.

mod pool;
mod process;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::compress::{CommandSpec, Protocol};
use pool::WorkerPool;
use process::ProgramError;
pub(super) use process::ProgramOutput;

/// The programs of a run. Workers end when this is dropped.
#[derive(Debug, Default)]
pub struct Programs {
    pools: RefCell<BTreeMap<WorkerKind, Rc<WorkerPool>>>,
    stderr_counts: RefCell<BTreeMap<Vec<String>, StderrCounts>>,
}

/// What workers must have in common for one to answer in place of another: methods may start the same program with other
/// variables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WorkerKind {
    argv: Vec<String>,
    variables: Vec<String>,
}

impl WorkerKind {
    fn new(spec: &CommandSpec) -> WorkerKind {
        WorkerKind {
            argv: spec.argv.clone(),
            variables: spec.variables().map(str::to_owned).collect(),
        }
    }
}

/// The right to start a program, or to ask one of its workers. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct ProgramTurn {
    _permit: Option<OwnedSemaphorePermit>,
}

/// How often a program wrote to standard error.
#[derive(Debug, Default)]
struct StderrCounts {
    executions: u32,
    with_output: u32,
    last_line: String,
}

impl Programs {
    /// Waits until the program may be started: if it has workers, until one of them is free.
    pub(super) async fn turn(&self, spec: &CommandSpec) -> ProgramTurn {
        let permit = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).turn().await,
            Protocol::One | Protocol::Two => None,
        };
        ProgramTurn { _permit: permit }
    }

    /// Passes `stdin` to the program and returns its answer.
    pub(super) async fn run(
        &self,
        spec: &CommandSpec,
        stdin: Bytes,
        _turn: ProgramTurn,
    ) -> Result<ProgramOutput, ProgramError> {
        process::redact_secrets(spec);
        let output = match spec.protocol {
            Protocol::Lines { .. } => self.pool(spec).ask(spec, stdin).await?,
            Protocol::One | Protocol::Two => {
                let began = Instant::now();
                let (stdout, stderr) = process::run(spec, stdin).await?;
                ProgramOutput {
                    stdout,
                    stderr,
                    elapsed: began.elapsed(),
                }
            }
        };
        self.note(spec, &output.stderr);
        Ok(output)
    }

    fn pool(&self, spec: &CommandSpec) -> Rc<WorkerPool> {
        let mut pools = self.pools.borrow_mut();
        Rc::clone(
            pools
                .entry(WorkerKind::new(spec))
                .or_insert_with(|| Rc::new(WorkerPool::new(spec))),
        )
    }

    fn note(&self, spec: &CommandSpec, stderr: &str) {
        let mut programs = self.stderr_counts.borrow_mut();
        let counts = programs.entry(spec.argv.clone()).or_default();
        counts.executions += 1;
        if let Some(line) = stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            counts.with_output += 1;
            counts.last_line = line.trim().to_owned();
        }
    }

    /// Notes on programs that wrote to standard error in most executions, which may explain their results, and on workers
    /// that were replaced though no request failed.
    pub(super) fn notes(&self) -> Vec<String> {
        let programs = self.stderr_counts.borrow();
        let talkative = programs
            .iter()
            .filter(|(_, counts)| counts.with_output * 2 > counts.executions);
        let notes = talkative.map(|(argv, StderrCounts { executions, with_output, last_line })| {
            let program = argv.join(" ");
            format!("`{program}` wrote to standard error in {with_output} of {executions} executions, last: {last_line}")
        });
        let pools = self.pools.borrow();
        let replaced = pools
            .iter()
            .filter_map(|(kind, pool)| pool.note(&kind.argv.join(" ")))
            .collect::<Vec<_>>();
        notes.chain(replaced).collect()
    }
}

#[cfg(test)]
mod tests;
