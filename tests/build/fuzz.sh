#!/usr/bin/env bash
# fuzz.sh TARGET MINUTES: one target, with its corpus in fuzz/corpus/TARGET. Fails when an input makes it panic.
set -euo pipefail
target=$1 minutes=$2
cd "$(dirname "$0")/../../fuzz"
command -v cargo-fuzz >/dev/null || { echo "needs cargo-fuzz: cargo install cargo-fuzz" >&2; exit 1; }
if rustup toolchain list 2>/dev/null | grep -q nightly; then
  fuzz="cargo +nightly fuzz"
else
  # The stable compiler can build the instrumentation, too, when it is told that it may.
  export RUSTC_BOOTSTRAP=1
  fuzz="cargo fuzz"
fi
mkdir -p "corpus/$target"
# Without a sanitizer there is nothing that stable lacks; the code is safe Rust, so panics are what can be found.
$fuzz run --sanitizer none "$target" "corpus/$target" -- -max_total_time=$((minutes * 60)) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1
