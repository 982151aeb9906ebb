#!/bin/sh
# Makes the pictures of README.md and docs/tutorial.md: runs the sample twice in a scratch folder, with an edit between,
# and photographs the pages. Needs chromium. The program is built first; COMPEVAL names another one.
set -eu
cd "$(dirname "$0")/.."
docs=$PWD/docs
if [ -z "${COMPEVAL:-}" ]; then
    cargo build --release
    COMPEVAL=$PWD/target/release/compeval
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r pipeline.toml fixtures probes prompts examples "$work"

picture() { # PAGE FILE WIDTH HEIGHT
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --user-data-dir="$work/browser" --hide-scrollbars \
        --window-size="$3,$4" --virtual-time-budget=5000 --screenshot="$docs/$2" "file://$1" 2>/dev/null
}

"$COMPEVAL" -C "$work" run --label before --quiet
picture "$work/results/before/report.html" report.png 1000 900
# The edit of the example: the section `## Current state` is removed.
sed -i '/^## Current state/,/^## Next steps/{/^## Next steps/!d}' "$work/prompts/anchored.md"
"$COMPEVAL" -C "$work" run --label after --compare-to before --quiet
"$COMPEVAL" -C "$work" compare after before --html "$work/changes.html" --quiet
picture "$work/changes.html" comparison.png 1100 900
