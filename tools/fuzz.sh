#!/usr/bin/env bash
# Fuzzes every reader of foreign bytes (tests/fast/fuzz.rs), one after the other, for SECONDS in total.
# Usage: tools/fuzz.sh SECONDS [TARGET | FLAGS of cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET]}
targets=$(cargo test --locked --test fast fuzz:: "${@:2}" -- --list | grep -c ': test$')
COMPEVAL_FUZZ_SECONDS=$((seconds / targets + 1)) \
    cargo test --locked --test fast fuzz:: "${@:2}" -- --nocapture --test-threads=1
