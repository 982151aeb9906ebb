//! The page of the rows that a run has written so far, and the server that shows it to a browser on this machine.

mod loopback;
mod server;

pub use loopback::{LoopbackServer, PageReply, PageRequest, Site};
pub use server::{LiveServer, PartialResults};
