//! The cache as its users meet it: through its public face, over real files.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod cache {
    mod crashed_files;
    mod damage;
    mod journal;
    mod kill;
    mod maintenance;
    mod packed;
    mod power_loss;
    mod stored;
    mod support;
    mod without_locks;
}
