#!/bin/sh
# pack.sh BINARY TARGET OUT: makes the release archive with its checksum, and the npm packages, of one built program.
# The wheel is maturin's (dist/python). All of them carry the version of the workspace.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
binary=$1 target=$2 out=$3

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
row=$(grep "^$target	" "$here/targets.tsv") || {
    echo "pack.sh: unknown target $target; known are those in dist/targets.tsv" >&2
    exit 2
}
platform=$(echo "$row" | cut -f 2) os=$(echo "$row" | cut -f 3) cpu=$(echo "$row" | cut -f 4)
[ -x "$binary" ] || { echo "pack.sh: $binary is not a program; build it with dist/build.sh $target" >&2; exit 2; }

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The archive: one directory with the program, licences and the README.
name=assize-$target
mkdir "$work/$name"
cp "$binary" "$work/$name/assize"
cp "$root/README.md" "$root/CHANGELOG.md" "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$work/$name/"
# GNU's tar and macOS's name the owner differently, and macOS's would add files for its own attributes.
case $(tar --version) in *GNU*) owner="--owner 0 --group 0" ;; *) owner="--uid 0 --gid 0" ;; esac
# shellcheck disable=SC2086 # two options with their values
COPYFILE_DISABLE=1 tar -c -z -f "$out/$name.tar.gz" -C "$work" $owner "$name"
if command -v sha256sum > /dev/null; then sum=sha256sum; else sum="shasum -a 256"; fi
(cd "$out" && $sum "$name.tar.gz" > "$name.tar.gz.sha256")

# The npm package of this platform holds the program; `assize` itself only finds and starts it.
mkdir -p "$work/platform/bin" "$work/launcher"
cp "$binary" "$work/platform/bin/assize"
cp "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$work/platform/"
cat > "$work/platform/package.json" <<JSON
{
  "name": "@assize/$platform",
  "version": "$version",
  "description": "The assize program for $os on $cpu",
  "license": "MIT OR Apache-2.0",
  "os": ["$os"],
  "cpu": ["$cpu"],
  "files": ["bin"],
  "preferUnplugged": true
}
JSON
cp -R "$here/npm/." "$work/launcher/"
cp "$root/README.md" "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$work/launcher/"
platforms=$(grep -v '^#' "$here/targets.tsv" | cut -f 2 | sort -u)
optional=$(for each in $platforms; do printf '    "@assize/%s": "%s",\n' "$each" "$version"; done | sed '$ s/,$//')
# By the environment: awk's own variables hold no line ends everywhere.
version=$version optional=$optional awk '{ gsub("@VERSION@", ENVIRON["version"]); if ($0 ~ "@PLATFORMS@") print ENVIRON["optional"]; else print }' \
    "$here/npm/package.json" > "$work/launcher/package.json"
(cd "$work/platform" && npm pack --silent --pack-destination "$out" > /dev/null)
(cd "$work/launcher" && npm pack --silent --pack-destination "$out" > /dev/null)
ls "$out"
