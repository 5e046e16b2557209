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

# image CONTEXT NAME ARGUMENTS…: builds the Dockerfile of a directory and runs assize in the image.
image() {
  local context=$1 name=$2 said
  # Engines raise limits by themselves, which is not allowed everywhere.
  local limits=(--ulimit nofile=1024:1024 --ulimit nproc=1024:1024)
  shift 2
  "$engine" build "${limits[@]}" --quiet --build-arg BASE=localhost/assize-test:1 --tag "localhost/assize-packages-$kind" "$context" > "$work/build.txt" 2>&1 ||
    { cat "$work/build.txt"; return 1; }
  said=$("$engine" run "${limits[@]}" --rm --network none --volume "$root:/work:ro" --tmpfs /tmp "localhost/assize-packages-$kind" "$@" 2>&1) || { echo "$said"; return 1; }
  "$engine" rmi --force "localhost/assize-packages-$kind" > /dev/null
  grep -q 'against plain' <<< "$said" || { echo "$said"; return 1; }
  pass "image by podman, $name: quickstart"
}

# npm: the launcher and the program's package from files, no registry asked. The lines are those of the README.
mkdir -p "$work/npm/target"
ln -s "$out" "$work/npm/target/packages"
readme=$(grep -E '^    (npm install|npx assize) ' README.md | head -n 3)
[ "$(wc -l <<< "$readme")" = 3 ] || { echo "README.md does not begin with the three commands: $readme" >&2; exit 1; }
(cd "$work/npm" && HOME=$work/npm npm_config_offline=true npm_config_audit=false npm_config_fund=false npm_config_loglevel=error \
  bash -e <<< "$readme" > out.txt 2>&1) || { cat "$work/npm/out.txt"; exit 1; }
grep -q 'against plain' "$work/npm/out.txt"
ls "$work"/npm/demo/.assize/runs/*/report/report.html > /dev/null
pass "npm package: the first three commands of the README"
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
  RUSTFLAGS=$(dist/build.sh --flags "$target")
  export RUSTFLAGS
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

  # Images without a registry: one of nothing but the program, and the Dockerfile on the small image of the container tests.
  tests/containers/install.sh
  engine=$(command -v podman || true)
  if [ -z "$engine" ]; then
    skip "image FROM scratch" "podman is not here"
    skip "Dockerfile" "podman is not here"
  else
    mkdir "$work/scratch"
    cp -R "$work/root/assize" examples/quickstart "$work/scratch/"
    rm -rf "$work/scratch/quickstart/.assize"
    printf 'FROM scratch\nCOPY assize /assize\nCOPY quickstart /quickstart\nENTRYPOINT ["/assize"]\n' > "$work/scratch/Dockerfile"
    image "$work/scratch" FROM-scratch run /quickstart --quiet --yes
    image "$root" Dockerfile run /work/examples/quickstart --quiet --yes --output /tmp/runs
  fi
fi
echo "packages: $passed passed, 0 failed, $skipped skipped"
