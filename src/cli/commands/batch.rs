//! `compeval batch`: the batches that are open at vendors.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{age, money};
use crate::cli::project::{open_snapshot, project_paths_of};
use crate::cli::terminal::Console;
use crate::entries::{Journal, OpenBatch};
use crate::evaluation::runtime;
use crate::report::TextTable;
use models::BatchClient;
use store::cache::{BatchNonce, now_ms};

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// List open batches; `run` collects those that have ended
    Ls,
    /// Ask the provider to end batches early; what is done by then is kept and paid for
    Cancel {
        /// The batches, as `batch ls` names them
        #[arg(required = true, value_name = "BATCH", allow_hyphen_values = true)]
        batches: Vec<BatchNonce>,
    },
}

pub(crate) fn run(
    common: &Common,
    command: &BatchCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    let cache = project_paths_of(common)?.cache;
    match command {
        BatchCommand::Ls => {
            let open = Journal::read(&open_snapshot(&cache)?)?.open;
            let batches: Vec<Value> = open.iter().map(batch_json).collect();
            console.report(&json!({ "batches": batches }), || print(&open, console));
        }
        BatchCommand::Cancel { batches } => {
            let open = Journal::read(&open_snapshot(&cache)?)?.open;
            let batches = named(&open, batches)?;
            for batch in &batches {
                cancel(batch)?;
                console.print(&format!(
                    "{}: to be cancelled; run again to collect what is done",
                    batch.intent.nonce
                ));
            }
            let nonces = batches.iter().map(|batch| batch.intent.nonce.to_string());
            console.json(&json!({ "cancelled": nonces.collect::<Vec<_>>() }));
        }
    }
    Ok(Exit::Done)
}

/// The batches that are named; all of them must be open.
fn named<'b>(open: &'b [OpenBatch], names: &[BatchNonce]) -> Result<Vec<&'b OpenBatch>, Failure> {
    let named = names.iter().map(|nonce| {
        let found = open.iter().find(|batch| batch.intent.nonce == *nonce);
        found.ok_or_else(|| {
            Failure::input(format!("no open batch is called {nonce}"))
                .hinted("`compeval batch ls` lists them")
        })
    });
    named.collect()
}

fn cancel(OpenBatch { intent, id }: &OpenBatch) -> Result<(), Failure> {
    let Some(id) = id else {
        let message = format!(
            "{}: the provider has not confirmed it, so it cannot be cancelled yet",
            intent.nonce
        );
        return Err(Failure::error(message).hinted("run again: the next run looks for it"));
    };
    let client =
        BatchClient::new(&intent.account).map_err(|failure| Failure::input(failure.to_string()))?;
    let cancelled = runtime()?.block_on(client.cancel(id));
    cancelled
        .map_err(|failure| Failure::error(format!("{}: not cancelled: {failure}", intent.nonce)))
}

fn batch_json(OpenBatch { intent, id }: &OpenBatch) -> Value {
    json!({
        "nonce": intent.nonce.to_string(),
        // The vendor's name for it; null until it is confirmed.
        "id": id,
        "provider": intent.account.name.to_string(),
        "model": intent.model.to_string(),
        "requests": intent.lines.len(),
        "reserved_usd": intent.reserved(),
        // Milliseconds since 1970 (UTC).
        "created": intent.created,
    })
}

fn print(open: &[OpenBatch], console: &Console) {
    if open.is_empty() {
        console.print("No open batches.");
        return;
    }
    let columns = ["batch", "model", "requests", "at most", "age", "where"];
    let rows = open.iter().map(|batch| {
        let intent = &batch.intent;
        let is_known = intent.lines.iter().any(|line| line.reserved.is_some());
        vec![
            intent.nonce.to_string(),
            intent.model.to_string(),
            intent.lines.len().to_string(),
            money(is_known.then(|| intent.reserved())),
            age(now_ms().saturating_sub(intent.created) / 1000),
            batch.place().to_owned(),
        ]
    });
    console.print(&console.table(&TextTable::plain(&columns, &[1, 5], rows)));
}
