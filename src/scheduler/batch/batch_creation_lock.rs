//! Turns of the processes that create batches of one account. Where the answer of a create call is lost, the batch is
//! looked for among those that were created since: with one call at a time there are few of these.

use std::path::PathBuf;
use std::time::Duration;

use crate::action::DigestBuilder;
use base::files::{FileLock, user_folder};
use models::BatchAccount;

const INTERVAL: Duration = Duration::from_millis(50);

/// The right to create a batch, until it is dropped. It is a lock on a file, which the system releases when the process
/// ends in any way.
pub(super) struct BatchCreationLock(#[expect(dead_code, reason = "held for its lock")] Option<FileLock>);

impl BatchCreationLock {
    /// Waits until no other process of this user creates a batch of the account. Without a place for the lock nobody is
    /// waited for: it makes searches shorter, and nothing wrong.
    pub(super) async fn wait(account: &BatchAccount, fingerprint: u32) -> BatchCreationLock {
        let Some(path) = lock_file(account, fingerprint) else { return BatchCreationLock(None) };
        loop {
            match FileLock::try_acquire(&path) {
                Ok(Some(lock)) => return BatchCreationLock(Some(lock)),
                Ok(None) => tokio::time::sleep(INTERVAL).await,
                Err(error) => {
                    tracing::debug!(path = %path.display(), "no lock for the account: {error}");
                    return BatchCreationLock(None);
                }
            }
        }
    }
}

fn lock_file(account: &BatchAccount, fingerprint: u32) -> Option<PathBuf> {
    let mut name = DigestBuilder::new("compeval account v1");
    name.field("dialect", account.dialect.name());
    name.field("base_url", &account.base_url);
    name.field("key", fingerprint.to_le_bytes());
    Some(user_folder()?.join(format!("batches-{}.lock", name.finish().short())))
}
