//! Where the built program is, for tools that run it.

use std::path::PathBuf;

/// The program of the build that this tool is from: beside it, or one folder above a bench.
pub(crate) fn program() -> PathBuf {
    let here = std::env::current_exe().expect("a path of its own");
    let beside = here.ancestors().skip(1).take(2);
    beside
        .map(|folder| folder.join("compeval"))
        .find(|program| program.exists())
        .unwrap_or_else(|| panic!("no program beside {}: build it first", here.display()))
}
