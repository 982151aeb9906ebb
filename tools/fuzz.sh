#!/usr/bin/env bash
# Fuzzes every reader of foreign bytes (tests/fuzz.rs), one after the other, for MINUTES in total.
# Usage: tools/fuzz.sh MINUTES [TARGET | FLAGS of cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: tools/fuzz.sh MINUTES [TARGET]}
targets=$(cargo test --locked --test fuzz "${@:2}" -- --list | grep -c ': test$')
COMPEVAL_FUZZ_SECONDS=$((minutes * 60 / targets + 1)) \
    cargo test --locked --test fuzz "${@:2}" -- --nocapture --test-threads=1
