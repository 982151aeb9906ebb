//! The writer thread. It takes all requests that are waiting, writes them as one batch with one sync, and then
//! acknowledges them; it never waits for a batch to fill up.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::StoreInner;
use crate::cache::entry::FrameLocation;
use crate::cache::error::CacheError;

/// A request to the writer thread.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    /// A frame whose caller waits until it is on disk.
    Put {
        frame: Vec<u8>,
        ack: oneshot::Sender<Result<FrameLocation, CacheError>>,
    },
    /// A frame that can be derived again: written in order, durable with the next `Put` or `Sync`.
    Background(Vec<u8>),
    /// Makes everything before it durable.
    Sync(mpsc::Sender<Result<(), CacheError>>),
}

/// The writer thread and its queue. The queue needs no bound: whoever puts an entry waits for its acknowledgement, so it
/// is never longer than the number of actions in flight.
#[derive(Debug)]
pub(crate) struct WriterThread {
    requests: Option<UnboundedSender<WriteRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(crate) fn start(store: Arc<StoreInner>) -> std::io::Result<WriterThread> {
        let (requests, queue) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("cache".into())
            .spawn(move || write_all(&store, queue))?;
        Ok(WriterThread {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Queues a request. If the thread has ended the request is dropped, which its sender sees from its channel.
    pub(crate) fn send(&self, request: WriteRequest) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(request);
        }
    }
}

impl Drop for WriterThread {
    /// Waits until everything queued is on disk.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(store: &StoreInner, mut queue: UnboundedReceiver<WriteRequest>) {
    const BATCH_FRAMES: usize = 256;
    const BATCH_BYTES: usize = 4 << 20;
    while let Some(first) = queue.blocking_recv() {
        let mut batch = WriteBatch::default();
        batch.add(first);
        while batch.frames.len() < BATCH_FRAMES && batch.bytes < BATCH_BYTES {
            match queue.try_recv() {
                Ok(request) => batch.add(request),
                Err(_) => break,
            }
        }
        batch.commit(store);
    }
    // a failure is recorded in the store; there is no caller left to return it to
    let _ = store.sync();
}

#[derive(Default)]
struct WriteBatch {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    puts: Vec<(usize, oneshot::Sender<Result<FrameLocation, CacheError>>)>,
    syncs: Vec<mpsc::Sender<Result<(), CacheError>>>,
}

impl WriteBatch {
    fn add(&mut self, request: WriteRequest) {
        let frame = match request {
            WriteRequest::Put { frame, ack } => {
                self.puts.push((self.frames.len(), ack));
                frame
            }
            WriteRequest::Background(frame) => frame,
            WriteRequest::Sync(ack) => return self.syncs.push(ack),
        };
        self.bytes += frame.len();
        self.frames.push(frame);
    }

    fn commit(self, store: &StoreInner) {
        let result = if self.frames.is_empty() {
            Ok(Vec::new())
        } else {
            store.commit(&self.frames, !self.puts.is_empty())
        };
        for (index, ack) in self.puts {
            let outcome = match &result {
                Ok(locations) => {
                    let location = locations.get(index).copied();
                    location.ok_or_else(|| store.fail(&store.poisoned("a frame was not written")))
                }
                Err(error) => Err(store.fail(error)),
            };
            // a caller that was cancelled does not listen; its entry is stored all the same
            let _ = ack.send(outcome);
        }
        for ack in self.syncs {
            let _ = ack.send(store.sync());
        }
    }
}
