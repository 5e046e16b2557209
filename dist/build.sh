#!/bin/sh
# build.sh [TARGET]: the program as it is shipped for one target: every feature, statically linked on Linux. Prints the path of the binary.
set -eu
cd "$(dirname "$0")/.."
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
case $target in
*-linux-*) RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl,--icf=safe" ;;
*) RUSTFLAGS="" ;;
esac
export RUSTFLAGS
"${CARGO:-cargo}" build -p assize --bin assize --profile dist --features shipped --locked --target "$target" >&2
echo "${CARGO_TARGET_DIR:-target}/$target/dist/assize"
