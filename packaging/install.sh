#!/bin/sh
# Installs compeval @VERSION@ into ~/.local/bin, or into COMPEVAL_INSTALL_DIR.
set -eu

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) archive=@ARCHIVE x86_64-unknown-linux-gnu@ sum=@SHA256 x86_64-unknown-linux-gnu@ ;;
Linux-aarch64) archive=@ARCHIVE aarch64-unknown-linux-gnu@ sum=@SHA256 aarch64-unknown-linux-gnu@ ;;
Darwin-arm64) archive=@ARCHIVE aarch64-apple-darwin@ sum=@SHA256 aarch64-apple-darwin@ ;;
*) echo "there is no build for $(uname -s) $(uname -m): build it from source" >&2; exit 1 ;;
esac

folder=${COMPEVAL_INSTALL_DIR:-$HOME/.local/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
curl -fsSL "${COMPEVAL_RELEASE_URL:-@URL@}/$archive" -o "$work/$archive"
found=$( (sha256sum "$work/$archive" 2>/dev/null || shasum -a 256 "$work/$archive") | cut -d' ' -f1)
[ "$found" = "$sum" ] || { echo "the checksum of $archive is $found, expected $sum" >&2; exit 1; }
tar xzf "$work/$archive" -C "$work"
mkdir -p "$folder"
mv "$work/${archive%.tar.gz}/compeval" "$folder/compeval"
echo "installed $folder/compeval"
case ":$PATH:" in *":$folder:"*) ;; *) echo "add $folder to PATH" ;; esac
