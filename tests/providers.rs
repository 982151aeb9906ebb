//! The providers' room against a provider on loopback, and every request against the vendors' schemas.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(unreachable_pub, reason = "the simulator serves several binaries")]

#[path = "support/simulator.rs"]
mod simulator;

mod providers {
    mod calls;
    mod client;
    mod contract;
    mod limits;
    mod replies;
}
