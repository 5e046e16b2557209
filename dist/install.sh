#!/bin/sh
# Installs a released assize: finds the archive of this platform, checks its checksum, and puts the program into a directory.
#
#     sh install.sh [--to DIR]        default: $HOME/.local/bin, without a home /usr/local/bin
#
# ASSIZE_DOWNLOAD names the address that holds the archives; the copy that a release publishes knows its own.
set -eu
download=${ASSIZE_DOWNLOAD:-@DOWNLOAD@}
if [ -n "${HOME:-}" ]; then to=$HOME/.local/bin; else to=/usr/local/bin; fi

fail() {
    echo "error: $1" >&2
    [ $# -lt 2 ] || echo "hint: $2" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) echo "sh install.sh [--to DIR]   installs assize into DIR [default: $to]"; exit ;;
    --to) [ $# -ge 2 ] || fail "--to needs a directory" "sh install.sh --to ~/bin"; to=$2; shift 2 ;;
    *) fail "unknown argument $1" "sh install.sh [--to DIR]" ;;
    esac
done
case $download in
*://*) ;;
*) fail "this copy of install.sh comes from no release" "set ASSIZE_DOWNLOAD to the address that holds the archives, or build from source: cargo install --path crates/assize" ;;
esac

case $(uname -sm) in
"Linux x86_64") targets="x86_64-unknown-linux-musl x86_64-unknown-linux-gnu" ;;
"Linux aarch64" | "Linux arm64") targets=aarch64-unknown-linux-musl ;;
"Darwin x86_64") targets=x86_64-apple-darwin ;;
"Darwin arm64") targets=aarch64-apple-darwin ;;
*) fail "there is no archive for $(uname -sm)" "build from source: cargo install --path crates/assize" ;;
esac

if command -v curl > /dev/null; then
    fetch() { curl --fail --silent --show-error --location --output "$2" "$1"; }
elif command -v wget > /dev/null; then
    fetch() { wget --quiet --output-document "$2" "$1"; }
else
    fail "neither curl nor wget is here" "install one of them"
fi
if command -v sha256sum > /dev/null; then
    sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum > /dev/null; then
    sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
    fail "neither sha256sum nor shasum is here, so the archive could not be checked" "install one of them"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=
for target in $targets; do
    archive=assize-$target.tar.gz
    if fetch "$download/$archive" "$work/$archive" 2> "$work/why"; then
        found=$target
        break
    fi
done
[ -n "$found" ] || fail "$download has no archive for this platform: $(tail -n 1 "$work/why")" "build from source: cargo install --path crates/assize"
fetch "$download/$archive.sha256" "$work/$archive.sha256" || fail "$download/$archive.sha256 cannot be had, so the archive is not trusted"
expected=$(cut -d ' ' -f 1 "$work/$archive.sha256")
[ -n "$expected" ] && [ "$(sum "$work/$archive")" = "$expected" ] || fail "the checksum of $archive is not the published one; nothing was installed" "try again; if it stays so, tell the people who publish it"

tar -xzf "$work/$archive" -C "$work"
mkdir -p "$to" && [ -w "$to" ] || fail "$to cannot be written" "name another directory: sh install.sh --to DIR"
# Under another name first, so that a running assize is replaced, not overwritten.
cp "$work/assize-$found/assize" "$to/.assize.new"
chmod 755 "$to/.assize.new"
mv -f "$to/.assize.new" "$to/assize"
echo "installed $("$to/assize" --version) as $to/assize"
case :$PATH: in
*:"$to":*) ;;
*) echo "hint: $to is not on PATH: export PATH=\"$to:\$PATH\"" ;;
esac
