#!/usr/bin/env bash
# Fuzzes every reader of foreign bytes (tests/fuzz.rs) for so many minutes each, one after the other.
# Usage: tools/fuzz.sh MINUTES [TARGET]
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: tools/fuzz.sh MINUTES [TARGET]}
COMPEVAL_FUZZ_SECONDS=$((minutes * 60)) cargo test --test fuzz "${@:2}" -- --nocapture --test-threads=1
