#!/usr/bin/env bash
# Checks the build itself: a second `cargo check` of a copy that has nothing beside it must compile nothing, and the sets of
# features that people may choose must compile. Dependencies are those that the lints have compiled already.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo="${CARGO:-cargo}"
copy="$PWD/.cache/build-check"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

rm -rf "$copy"
mkdir -p "$copy"
trap 'rm -rf "$copy"' EXIT
# Files keep their times, so that what did not change is not compiled again.
git ls-files --cached --others --exclude-standard -z |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --null --files-from=- --create --file=- | tar --extract --file=- --directory="$copy"
cd "$copy"

check() {
  echo "cargo check $*"
  "$cargo" check --locked --quiet "$@"
}

check --workspace
second="$("$cargo" check --locked --workspace 2>&1)"
if grep -E '^ *(Compiling|Checking) ' <<<"$second"; then
  echo "error: a second build without changes compiled the crates above" >&2
  exit 1
fi

# The smallest program, and the two crates that other people's programs depend on, each without what the others ask for.
check -p assize --no-default-features
check -p assize-contracts
check -p assize-report
