#!/usr/bin/env bash
# Checks the build itself, in a copy of the checkout that has nothing beside it: a second `cargo check` must compile nothing,
# and every set of features that somebody may choose must compile. Dependencies are kept in .cache between runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo="${CARGO:-cargo}"
home="$PWD/.cache/build-check"
copy="$home/checkout"
export CARGO_TARGET_DIR="$home/target"

rm -rf "$copy"
mkdir -p "$copy"
# Files keep their times, so that what did not change is not compiled again.
git ls-files --cached --others --exclude-standard -z |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --null --files-from=- --create --file=- | tar --extract --file=- --directory="$copy"
cd "$copy"

"$cargo" check --locked --quiet
second="$("$cargo" check --locked 2>&1)"
if grep -E '^ *(Compiling|Checking) ' <<<"$second"; then
  echo "error: a second build without changes compiled the crates above" >&2
  exit 1
fi

check() {
  echo "cargo check $*"
  "$cargo" check --locked --quiet "$@"
}
check -p assize --no-default-features
check -p assize --all-features
for crate in crates/assize-*; do
  check -p "$(basename "$crate")"
done
