# The commands of CONTRIBUTING.md. `just` lists them; each line works without just, too.

default:
    @just --list

# What is needed besides Rust: rustfmt and clippy.
setup:
    rustup component add rustfmt clippy

# Does it compile? The fastest answer after an edit.
check:
    cargo check --all-targets

# All tests, or those whose name contains FILTER.
test *FILTER:
    cargo test {{FILTER}}

# Formatting and lints, as CI has them.
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# The program, optimized for daily work: `just run plan --model openai/NAME`.
run *ARGS:
    cargo run --profile dev-release -- {{ARGS}}

# Everything that a change must pass.
ci:
    .ci/run

# Kill runs with batches at COUNT random calls to each vendor, and compare what they leave with a live run.
batch-kills COUNT="200":
    COMPEVAL_KILLS={{COUNT}} cargo test --test cli kill_9_at_many -- --ignored --nocapture

# Fuzz every reader of foreign bytes for SECONDS in all; what it finds is in target/fuzz.
fuzz SECONDS="3600":
    tools/fuzz.sh {{SECONDS}}

# Every place at which a system call may fail, not a few.
faults:
    COMPEVAL_FAULTS=all cargo test --test cli faults

# Write the snapshots of the tests anew; look at every line of the diff.
snapshots *FILTER:
    INSTA_UPDATE=always cargo test {{FILTER}}

# Words that the project does not use any more, with their places.
vocabulary:
    tools/vocabulary.sh

# Licences and advisories of the dependencies (needs cargo-deny).
deny:
    cargo deny check
