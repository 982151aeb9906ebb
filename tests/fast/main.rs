//! What can be tested without starting the program: the architecture, the cache through its public face, readers of
//! foreign bytes, and the files that are shipped.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(unreachable_pub, reason = "helpers of tests")]

mod architecture;
mod cache;
mod fuzz;
mod shipped;
