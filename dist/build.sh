#!/bin/sh
# build.sh [TARGET]: the program as it is shipped for one target: every feature, statically linked on Linux. Prints the path of the binary.
# build.sh --flags TARGET: prints the compiler flags alone, for maturin, so that wheels hold the same program and nothing is compiled twice.
set -eu
cd "$(dirname "$0")/.."
only_flags=
if [ "${1:-}" = --flags ]; then
    only_flags=1
    shift
fi
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
case $target in
# Equal functions are folded into one by lld, which Rust links with on this target; the linkers of the other targets do not know the option.
x86_64-unknown-linux-gnu) flags="-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl,--icf=safe" ;;
*-linux-*) flags="-C target-feature=+crt-static -C relocation-model=static" ;;
*) flags="" ;;
esac
if [ -n "$only_flags" ]; then
    echo "$flags"
    exit
fi
export RUSTFLAGS="$flags"
"${CARGO:-cargo}" build -p assize --bin assize --profile dist --features shipped --locked --target "$target" >&2
echo "${CARGO_TARGET_DIR:-target}/$target/dist/assize"
