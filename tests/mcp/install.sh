#!/bin/sh
# Puts the MCP server for the tests into .cache/mcp, at the pinned version, once, and links it beside the agents.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache
fingerprint=$(cat "$here/install.sh" "$here/package.json" "$here/package-lock.json" | cksum)
[ "$(cat "$cache/mcp/installed" 2>/dev/null)" = "$fingerprint" ] && exit 0

command -v npm > /dev/null || {
    echo "npm is missing; the test with an MCP server by others will be skipped" >&2
    exit 0
}
mkdir -p "$cache/mcp" "$cache/agents/bin"
cp "$here/package.json" "$here/package-lock.json" "$cache/mcp/"
npm ci --prefix "$cache/mcp" --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error
ln -sfn "$cache/mcp/node_modules/.bin/mcp-server-filesystem" "$cache/agents/bin/mcp-server-filesystem"
echo "$fingerprint" > "$cache/mcp/installed"
