#!/usr/bin/env bash
# Builds the wheel, installs the wheel, the npm packages and an archive from nothing, and runs each. Slow: a release build.
# WHEEL=FILE tests a wheel that exists.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

try() { # NAME PROGRAM…
    local name=$1 folder="$work/try-$1"
    shift
    mkdir "$folder"
    [ "$("$@" --version)" = "compeval $version" ]
    (cd "$folder" && "$@" && "$@" init -q && "$@" run -q --label first && test -f results/first/report.html)
    echo "ok: $name"
}

if [ -z "${WHEEL:-}" ]; then
    python3 -m venv "$work/build" && "$work/build/bin/pip" -q install maturin
    (cd packaging && "$work/build/bin/maturin" build --release --locked --out "$work/wheel")
    WHEEL=$(ls "$work"/wheel/*.whl)
fi
python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q install --no-index "$WHEEL"
try wheel "$work/venv/bin/compeval"

target=$(rustc -vV | sed -n 's/^host: //p')
node packaging/packages.mjs npm "$work/npm" "$target=$work/venv/bin/compeval"
for package in "$work"/npm/*; do (cd "$work" && npm pack --silent "$package" >/dev/null); done
mkdir "$work/app" && (cd "$work/app" && npm init -y >/dev/null && npm install --silent --offline "$work"/*.tgz)
try npm "$work/app/node_modules/.bin/compeval"

mkdir -p "$work/release"
for each in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin; do
    name="compeval-v$version-$each"
    mkdir "$work/$name" && cp "$work/venv/bin/compeval" "$work/$name/"
    tar czf "$work/release/$name.tar.gz" -C "$work" "$name"
done
(cd "$work/release" && sha256sum ./*.tar.gz >SHA256SUMS)
node packaging/packages.mjs installers "$work/installers" owner/repository "$work/release/SHA256SUMS"
! grep -n '@[A-Z]' "$work"/installers/* || exit 1
COMPEVAL_INSTALL_DIR="$work/bin" COMPEVAL_RELEASE_URL="file://$work/release" sh "$work/installers/install.sh"
try installer "$work/bin/compeval"
echo broken >>"$work/release/compeval-v$version-$target.tar.gz"
! COMPEVAL_INSTALL_DIR="$work/bin2" COMPEVAL_RELEASE_URL="file://$work/release" sh "$work/installers/install.sh" || exit 1
echo "3 passed, 0 failed"
