#!/usr/bin/env bash
# Lists words that the project replaced by standard terms, with their places; the last line is their number.
# Usage: tools/vocabulary.sh [--count]
set -euo pipefail
cd "$(dirname "$0")/.."

# `lane` is the setting of that name (docs/batch.md) and no longer a queue.
# Type names, as whole words; some ended up as parts of snake_case names, too.
types='Errand|Errands|Purse|Doors|Door|Shelf|Sheet|Sheets|FullSheet|Footing|Foretold|HeldBack|Desk|Tempo|Pace|Standing|Pulse|Board|Catalogue|Proven|Vouch|Orders|Today|Places|Aside|Flight|Flights|Landed|Allowance|Arm|Material|OutOfReach'
names='errands?|purse|doors?|shelf|footing|foretold|is_foretold|held_back|cut_off|squeezed|tempo|catalogue|vouch(es|ed)?|asked_below|oddit(y|ies)'
# English that is not written here.
prose='whom|befell|befalls?|heeds?|heeded|shall|tells?|told|lays? over|laid over|nobody asks'

pattern="\\b($types)\\b|\\b($names)\\b|\\b($prose)\\b"
found=$(git grep -nIwP --untracked "$pattern" -- . ':!Cargo.lock' ':!fixtures' ':!probes' ':!assets/schemas' ':!assets/selftest' \
    ':!assets/starter' ':!tests/import' ':!LICENSE-*' ':!tools/vocabulary.sh' ':!src/probe/phrases.rs' ':!crates/lexical' ':!assets/NOTICES.md' ':!assets/prompts' || true)
if [ "${1:-}" != --count ] && [ -n "$found" ]; then
    printf '%s\n' "$found"
fi
printf '%s\n' "$found" | { grep -oiP "$pattern" || true; } | wc -l
