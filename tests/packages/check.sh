#!/usr/bin/env bash
# check.sh debug|shipped: packs the program, installs every package into an empty place without network or toolchain, and runs the quickstart.
# `debug` takes the program of `cargo build -p assize --all-features`; `shipped` builds what a release has, and tries it in an empty root, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=$1
root=$PWD
target=$(rustc -vV | sed -n 's/^host: //p')
tools=$root/.cache/tools
maturin_version=1.16.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 skipped=0

pass() { passed=$((passed + 1)); echo "ok: $1"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $1: $2"; }

if ! grep -q "^$target	" dist/targets.tsv; then
  echo "packages are tried only for the targets in dist/targets.tsv, this machine is $target"
  exit 0
fi

case $kind in
debug)
  out=$work/packages
  cp "${CARGO_TARGET_DIR:-target}/debug/assize" "$work/assize"
  strip "$work/assize"
  binary=$work/assize
  ;;
shipped)
  out=$root/target/packages
  rm -rf "$out"
  binary=$(dist/build.sh "$target")
  ;;
esac
dist/pack.sh "$binary" "$target" "$out" > /dev/null

# quickstart PROGRAM…: runs it where nothing else is, and looks for the verdict and the page.
quickstart() {
  local place
  place=$(mktemp -d "$work/place.XXXXXX")
  (cd "$place" && HOME=$place "$@" init demo > /dev/null && HOME=$place "$@" run demo --quiet --yes > out.txt 2>&1) || {
    cat "$place/out.txt"
    return 1
  }
  grep -q 'against plain' "$place/out.txt" && ls "$place"/demo/.assize/runs/*/report/report.html > /dev/null
}

# npm: the launcher and the program's package from files, no registry asked.
mkdir "$work/npm"
(cd "$work/npm" && npm init --yes > /dev/null &&
  npm install --offline --no-audit --no-fund --loglevel=error "$out"/assize-linux-x64-*.tgz "$out"/assize-[0-9]*.tgz > /dev/null)
quickstart "$work/npm/node_modules/.bin/assize"
pass "npm package: install, quickstart"
code=0
"$work/npm/node_modules/.bin/assize" run "$work/nothing-here" 2> /dev/null || code=$?
[ "$code" = 2 ] || { echo "the npm launcher ends with $code, the program with 2" >&2; exit 1; }
pass "npm package: exit code"
rm -rf "$work/npm/node_modules/@assize"
said=$("$work/npm/node_modules/.bin/assize" --version 2>&1) && exit 1
grep -q 'hint:' <<< "$said" || { echo "no hint in: $said" >&2; exit 1; }
pass "npm package: a missing platform says what to do"

# The wheel, by maturin.
if [ ! -x "$tools/maturin-$maturin_version/bin/maturin" ]; then
  python3 -m venv "$tools/maturin-$maturin_version"
  "$tools/maturin-$maturin_version/bin/pip" install --quiet --disable-pip-version-check "maturin==$maturin_version"
fi
case $kind in
debug) flags=(--profile dev --all-features) ;;
shipped)
  flags=(--target "$target")
  export RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl,--icf=safe"
  ;;
esac
(cd dist/python && "$tools/maturin-$maturin_version/bin/maturin" build --quiet --compatibility linux "${flags[@]}" --out "$out")
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$out"/assize-*.whl
quickstart "$work/venv/bin/assize"
pass "wheel: install, quickstart"

# install.sh from a directory of archives; a changed archive is refused.
ASSIZE_DOWNLOAD=file://$out sh dist/install.sh --to "$work/bin" > /dev/null
quickstart "$work/bin/assize"
pass "install.sh: install, quickstart"
mkdir "$work/changed"
cp "$out/assize-$target.tar.gz" "$out/assize-$target.tar.gz.sha256" "$work/changed/"
echo x >> "$work/changed/assize-$target.tar.gz"
if said=$(ASSIZE_DOWNLOAD=file://$work/changed sh dist/install.sh --to "$work/never" 2>&1) || [ -e "$work/never/assize" ]; then
  echo "a changed archive was installed" >&2
  exit 1
fi
grep -q checksum <<< "$said" || { echo "unexpected: $said" >&2; exit 1; }
pass "install.sh: a changed archive is refused"

# The action's own step takes the release; the text is that of action.yml.
awk '/- name: Install/ { step = 1 } step && /run: \|/ { body = 1; next } body && /^ *$/ { exit } body' action.yml > "$work/install-step.sh"
RUNNER_TEMP=$work/runner GITHUB_PATH=$work/github-path GITHUB_ACTION_PATH=$root REPOSITORY=none ASSIZE_DOWNLOAD=file://$out \
  PATH=/usr/bin:/bin bash -e -o pipefail "$work/install-step.sh" > /dev/null
quickstart "$(cat "$work/github-path")/assize"
pass "action.yml: the released program is installed"

# The workflow builds what the table lists, and nothing else.
listed=$(grep -v '^#' dist/targets.tsv | awk -F '\t' '$5 != "-" { print $1 " " $5 }' | sort)
built=$(sed -n 's/.*{ target: \(.*\), runner: \(.*\) }/\1 \2/p' .github/workflows/release.yml | sort)
[ "$listed" = "$built" ] || { echo "dist/targets.tsv and release.yml differ:"; diff <(echo "$listed") <(echo "$built"); exit 1; } >&2
pass "release.yml: the targets of dist/targets.tsv"

if [ "$kind" = shipped ]; then
  if ldd "$binary" > /dev/null 2>&1; then
    echo "$binary is linked dynamically" >&2
    exit 1
  fi
  pass "static: no shared library"
  # An empty root: the program, the examples and nothing else.
  mkdir -p "$work/root/tmp" "$work/root/proc"
  cp "$binary" "$work/root/assize"
  cp -R examples/quickstart "$work/root/quickstart"
  rm -rf "$work/root/quickstart/.assize"
  if [ "$(id -u)" = 0 ]; then
    chroot "$work/root" /assize run /quickstart --quiet --yes > "$work/chroot.txt" 2>&1 || { cat "$work/chroot.txt"; exit 1; }
    grep -q 'against plain' "$work/chroot.txt"
    pass "static: quickstart in an empty root"
  else
    skip "static: quickstart in an empty root" "needs root for chroot"
  fi
  skip "Dockerfile" "no container engine is used here"
fi
echo "packages: $passed passed, 0 failed, $skipped skipped"
