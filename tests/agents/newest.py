#!/usr/bin/env python3
"""newest.py PACKAGE.JSON: the same with the newest published versions; stderr tells what differs from the pinned ones.
newest.py --pip PINNED.TXT: tells which of the packages on stdin (as `pip freeze` writes them) differ from the pinned ones.
newest.py --packed PINNED PACKAGE.JSON: tells whether an installed package differs from the pinned one, written as name@version."""
import json, subprocess, sys


def newest(name, pinned):
    """The newest version of a package, written as the pinned one is: some stand for another package and a platform."""
    if not pinned.startswith("npm:"):
        return published(name)
    package, _, version = pinned.removeprefix("npm:").rpartition("@")
    _, dash, platform = version.partition("-")
    return f"npm:{package}@{published(package)}{dash}{platform}"


def published(name):
    found = subprocess.run(["npm", "view", name, "version", "--loglevel=error"], stdout=subprocess.PIPE, text=True, check=True)
    return found.stdout.strip()


def tell(name, pinned, now):
    if pinned != now:
        print(f"changed: {name} {pinned} -> {now}", file=sys.stderr)


def packages(path):
    package = json.load(open(path))
    for name, pinned in package["dependencies"].items():
        package["dependencies"][name] = newest(name, pinned)
        tell(name, pinned, package["dependencies"][name])
    json.dump(package, sys.stdout, indent=2)


def pip(path):
    def versions(lines):
        return dict(line.strip().split("==", 1) for line in lines if "==" in line)
    pinned, now = versions(open(path)), versions(sys.stdin)
    for name in ("aider-chat", "mini-swe-agent"):
        if name in now:
            tell(name, pinned.get(name), now[name])


def packed(pinned, path):
    name, _, version = pinned.rpartition("@")
    tell(name, version, json.load(open(path))["version"])


if sys.argv[1] == "--pip":
    pip(sys.argv[2])
elif sys.argv[1] == "--packed":
    packed(*sys.argv[2:])
else:
    packages(sys.argv[1])
