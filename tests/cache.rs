//! The cache as its users meet it: through its public face, over real files.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod cache {
    mod damage;
    mod journal;
    mod kill;
    mod maintenance;
    mod packed;
    mod stored;
    mod support;
}
