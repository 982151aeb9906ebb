//! The cache as its users meet it: through its public face, over real files.

mod crashed_files;
mod damage;
mod frames;
mod journal;
mod kill;
mod maintenance;
mod power_loss;
mod stored;
pub(crate) mod support;
mod without_locks;
