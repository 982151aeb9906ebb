//! The crate against a provider on loopback, and every request against the vendors' schemas.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(unreachable_pub, reason = "the simulator serves several binaries")]

#[path = "../../../tests/support/simulator.rs"]
mod simulator;
use simulator::limited;
#[path = "../../../tests/support/virtual_time.rs"]
mod virtual_time;

mod providers {
    mod batches;
    mod calls;
    mod client;
    mod contract;
    mod law;
    mod limits;
    mod replies;
}
