//! The vendors' batch APIs: a file of requests, answered within a day at a lower price.
//!
//! `lines` turns requests into what is uploaded and result lines into replies. `client` creates, finds, polls and reads
//! batches. A call that creates a batch is never repeated blindly: if its reply was lost, the batch is searched for.
//!
//! Not here: what the requests are for, what is stored, and when to poll.

mod client;
mod lines;

pub use client::{BatchAccount, BatchClient, BatchEnding, BatchSearch, BatchStatus, CreateFault};
pub use lines::{BatchReply, BatchRequest, BatchResult};
