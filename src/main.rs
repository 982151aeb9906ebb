//! The program `compeval`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(compeval::cli::main())
}
