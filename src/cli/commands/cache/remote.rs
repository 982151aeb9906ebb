//! The cache that is shared: `cache push`, `cache pull`, `cache stats --shared`, `cache prune --remote`, and `cache key`,
//! which makes the key that signs what is pushed.

use serde_json::json;

use super::entry::snapshot;
use crate::action::ActionKey;
use crate::cli::failure::{Exit, Failure, new_key};
use crate::cli::format::{Noun, count, size};
use crate::cli::project::{open_store, print_notices};
use crate::cli::remote::{RemoteArgs, SIGNING_KEY};
use crate::cli::terminal::Console;
use crate::pipeline::ProjectPaths;
use crate::results::{ResultsFolder, open_results};
use base::text::shell_word;
use store::cache::{CacheSnapshot, Lookup};
use store::remote::{
    PullCounts, PushCounts, RemoteError, RemotePruneCounts, SharedCache, SharedSummary, SigningKey,
};

/// The name in `cache key --name NAME`.
pub(super) fn writer_name(text: &str) -> Result<String, String> {
    if !text.trim().is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_. ".contains(c))
    {
        Ok(text.trim().to_owned())
    } else {
        Err("expected letters, digits, spaces, `-`, `_` and `.`".into())
    }
}

/// Runs `work` on a runtime of its own. That of a run has a blocking thread for each processor, which is too few here:
/// each file of a shared folder is read and written on one, and waits for the network.
fn block_on<T, E: Into<Failure>>(work: impl Future<Output = Result<T, E>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::error(format!("failed to start the runtime: {error}")))?;
    runtime.block_on(work).map_err(Into::into)
}

fn load_summary(shared: &SharedCache, console: &Console) -> Result<SharedSummary, Failure> {
    shared
        .take_warnings()
        .into_iter()
        .for_each(|warning| console.warn("remote:", warning));
    shared
        .summary()
        .ok_or_else(|| Failure::error("the remote could not be read"))
}

pub(super) fn push(
    paths: &ProjectPaths,
    args: &RemoteArgs,
    label: Option<&str>,
    console: &Console,
) -> Result<Exit, Failure> {
    let snapshot = snapshot(&paths.cache, console)?;
    let set = label
        .map(|label| open_results(&paths.results, label))
        .transpose()?;
    let keys = keys_to_share(&snapshot, set.as_ref())?;
    let shared = args.writing().required(&paths.remote)?;
    if !shared.is_written() {
        return Err(Failure::input("the remote is only read")
            .hinted(format!("--remote-mode write; {}", new_key())));
    }
    let pushed = block_on(async {
        shared.load().await?;
        let pushed = shared.push(&snapshot, &keys).await?;
        if let Some(set) = &set {
            shared.push_label(&set.label(), &keys).await?;
        }
        Ok::<_, RemoteError>(pushed)
    })?;
    print_pushed(pushed, &load_summary(&shared, console)?.url, console);
    Ok(Exit::Done)
}

/// Prints what was uploaded to the remote `to`, and what was not.
fn print_pushed(pushed: PushCounts, to: &str, console: &Console) {
    let PushCounts {
        entries,
        texts,
        packs,
        bytes,
        present,
        of_others,
        lost,
    } = pushed;
    let mut left = Vec::new();
    left.extend((present > 0).then(|| format!("{present} were there already")));
    left.extend((of_others > 0).then(|| format!("{of_others} were made by others")));
    if lost > 0 {
        let lost = count(lost, Noun::Entry);
        let text = format!(
            "{lost} not uploaded: damaged, or no longer in the cache; a run makes them again"
        );
        console.warn("remote:", text);
    }
    let left = if left.is_empty() {
        String::new()
    } else {
        format!("; {}", left.join(", "))
    };
    console.print(&format!(
        "Uploaded {} ({}) to {to}{left}.",
        count(entries, Noun::Entry),
        size(bytes)
    ));
    console.json(&json!({
        "remote": to, "entries": entries, "texts": texts, "packs": packs, "bytes": bytes, "present": present,
        "of_others": of_others, "lost": lost,
    }));
}

pub(super) fn pull(
    paths: &ProjectPaths,
    args: &RemoteArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let shared = args.required(&paths.remote)?;
    let store = open_store(&paths.cache, console)?;
    store.trust_only(&args.trusted(&paths.remote)?)?;
    let pulled = block_on(async {
        shared.load().await?;
        Ok::<_, Failure>(shared.pull_all(&store).await?)
    })?;
    let PullCounts {
        entries,
        texts,
        bytes,
    } = pulled?;
    print_notices(&store, console);
    store.close()?;
    let summary = load_summary(&shared, console)?;
    console.print(&format!(
        "Pulled {} ({}) from {}.",
        count(entries, Noun::Entry),
        size(bytes),
        summary.url
    ));
    console.json(
        &json!({ "remote": summary.url, "entries": entries, "texts": texts, "bytes": bytes }),
    );
    Ok(Exit::Done)
}

/// Marks and deletes packs in the remote. Whoever may upload may do this.
pub(super) fn prune(
    paths: &ProjectPaths,
    args: &RemoteArgs,
    is_dry: bool,
    console: &Console,
) -> Result<Exit, Failure> {
    let shared = args.required(&paths.remote)?;
    if !is_dry && !shared.is_written() {
        return Err(Failure::input("the remote is only read").hinted("COMPEVAL_REMOTE_MODE=write"));
    }
    let RemotePruneCounts {
        labels,
        kept,
        marked,
        waiting,
        deleted,
        deleted_bytes,
        records,
    } = block_on(shared.prune(is_dry))?;
    let would = if is_dry { "Would mark" } else { "Marked" };
    let and = if is_dry { "delete" } else { "deleted" };
    console.print(&format!(
        "{would} {} and {and} {} ({}). {} marked earlier; {} stay for {}.",
        count(marked, Noun::Pack),
        deleted,
        size(deleted_bytes),
        count(waiting, Noun::Pack),
        kept,
        count(labels, Noun::Label)
    ));
    if records > 0 {
        let old = count(records, Noun::PartRecord);
        console.print(&if is_dry {
            format!("Would delete {old}: 30 days have passed.")
        } else {
            format!("Deleted {old}: 30 days had passed.")
        });
    }
    if is_dry {
        let url = args
            .remote
            .as_ref()
            .map(|url| format!(" {}", shell_word(url)))
            .unwrap_or_default();
        let delete = format!("compeval cache prune --remote{url} --delete");
        // Whoever may only read may count.
        let mode = if shared.is_written() {
            ""
        } else {
            "COMPEVAL_REMOTE_MODE=write "
        };
        let when = "(a pack goes 30 days after it was marked)";
        console.next(format_args!("{mode}{delete}   {when}"));
    }
    console.json(&json!({
        "labels": labels, "kept": kept, "marked": marked, "waiting": waiting, "deleted": deleted,
        "deleted_bytes": deleted_bytes, "part_records": records, "dry_run": is_dry,
    }));
    Ok(Exit::Done)
}

fn keys_to_share(
    snapshot: &CacheSnapshot,
    set: Option<&ResultsFolder>,
) -> Result<Vec<ActionKey>, Failure> {
    let keys = match set {
        Some(set) => keys_of(set)?,
        None => all_keys(snapshot),
    };
    if keys.is_empty() {
        return Err(
            Failure::input("there is nothing to push: the cache is empty")
                .hinted("`compeval run` fills it"),
        );
    }
    Ok(keys)
}

fn all_keys(snapshot: &CacheSnapshot) -> Vec<ActionKey> {
    let records = snapshot.records().into_iter();
    records
        .filter(|record| !record.is_failed())
        .map(|record| record.key)
        .collect()
}

/// The entries of a result set. They are recorded when its run ends.
fn keys_of(folder: &ResultsFolder) -> Result<Vec<ActionKey>, Failure> {
    let (manifest, keys) = (folder.manifest()?, folder.keys()?);
    if keys.is_empty() {
        let message = format!(
            "the result set `{}` does not list its entries",
            manifest.label
        );
        return Err(Failure::input(message).hinted("run it again"));
    }
    Ok(keys.into_iter().collect())
}

/// Prints a new key pair; nothing is stored.
pub(super) fn make_key(name: &str, console: &Console) -> Result<Exit, Failure> {
    let (key, secret) =
        SigningKey::generate().map_err(|error| Failure::error(error.to_string()))?;
    let public = key.public();
    console.report(&json!({ "name": name, "public": public.to_string(), "secret": secret }), || {
        console.print(&format!("The secret key signs what you upload. Keep it in your secret store; it is written nowhere else:\n\
             {SIGNING_KEY}={secret}\n\n\
             The public key is what others trust. Add it to pipeline.toml, or to COMPEVAL_TRUST in CI:\n\
             [cache]\n\
             trust = [\"{name} {public}\"]"));
    });
    Ok(Exit::Done)
}
