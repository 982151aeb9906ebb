//! The committer: one thread that writes for all callers. It takes what waits, writes it as one group, and only then
//! answers; it never sleeps to fill a group.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::error::CacheError;
use super::record::Location;
use super::writer::Core;

/// What the committer is asked to do.
#[derive(Debug)]
pub(super) enum Job {
    /// A frame whose writer waits until it is on disk.
    Put { frame: Vec<u8>, ack: oneshot::Sender<Result<Location, CacheError>> },
    /// A frame that can be made again: written in its turn, on disk with the next group that is.
    Quiet(Vec<u8>),
    /// Everything so far is to be on disk.
    Sync(mpsc::Sender<Result<(), CacheError>>),
}

/// The thread and the way to it. The queue needs no bound: whoever puts waits for his acknowledgement, so there is
/// never more in it than there are actions in flight.
#[derive(Debug)]
pub(super) struct Committer {
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub(super) fn start(core: Arc<Core>) -> std::io::Result<Committer> {
        let (jobs, queue) = unbounded_channel();
        let thread = std::thread::Builder::new().name("cache".into()).spawn(move || work(&core, queue))?;
        Ok(Committer { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a job. If the thread is gone the job is dropped, and its waiter learns that from its channel.
    pub(super) fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Committer {
    /// Waits until everything queued is on disk.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const GROUP: usize = 256;
const GROUP_BYTES: usize = 4 << 20;

fn work(core: &Core, mut queue: UnboundedReceiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = Group::default();
        group.add(first);
        while group.frames.len() < GROUP && group.bytes < GROUP_BYTES {
            match queue.try_recv() {
                Ok(job) => group.add(job),
                Err(_) => break,
            }
        }
        group.commit(core);
    }
    // a fault is remembered by the core, which has no one left to tell
    let _ = core.sync();
}

#[derive(Default)]
struct Group {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    puts: Vec<(usize, oneshot::Sender<Result<Location, CacheError>>)>,
    syncs: Vec<mpsc::Sender<Result<(), CacheError>>>,
}

impl Group {
    fn add(&mut self, job: Job) {
        let frame = match job {
            Job::Put { frame, ack } => {
                self.puts.push((self.frames.len(), ack));
                frame
            }
            Job::Quiet(frame) => frame,
            Job::Sync(ack) => return self.syncs.push(ack),
        };
        self.bytes += frame.len();
        self.frames.push(frame);
    }

    fn commit(self, core: &Core) {
        let result =
            if self.frames.is_empty() { Ok(Vec::new()) } else { core.commit(&self.frames, !self.puts.is_empty()) };
        for (index, ack) in self.puts {
            let answer = match &result {
                Ok(places) => places.get(index).copied().ok_or_else(|| core.fail(&lost())),
                Err(error) => Err(core.fail(error)),
            };
            // a caller that no longer waits has been cancelled; its entry is kept all the same
            let _ = ack.send(answer);
        }
        for ack in self.syncs {
            let _ = ack.send(core.sync());
        }
    }
}

fn lost() -> CacheError {
    let source = std::io::Error::other("a frame was not written");
    CacheError::Io { doing: "write to", path: "packs".into(), source }
}
