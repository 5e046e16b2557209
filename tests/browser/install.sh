#!/bin/sh
# What the browser tests need: Chromium from Debian's packages, playwright-core at the pinned version into .cache.
set -eu
cd "$(dirname "$0")"
tools=../../.cache/browser

if ! command -v chromium >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
    else
        echo "browser tests: no chromium, and no right to install it; they will be skipped" >&2
    fi
fi

mkdir -p "$tools"
if ! cmp -s package-lock.json "$tools/package-lock.json" || [ ! -d "$tools/node_modules" ]; then
    cp package.json package-lock.json "$tools/"
    # From inside: some versions of npm take the directory of --prefix for a package to install.
    (cd "$tools" && npm ci --no-audit --no-fund --loglevel=error)
fi
