#!/bin/sh
# install.sh: what the tests of containers need: podman with runc from the system's packages, and two small images made without
# a registry. Does nothing where that cannot be had; the tests then say why they are skipped.
set -eu

skip() {
    echo "containers: $1; the tests that need them will be skipped" >&2
    exit 0
}

[ "$(uname -s)" = Linux ] || skip "tests use podman on Linux"
[ "$(id -u)" = 0 ] || skip "tests run podman as root"

if ! command -v podman >/dev/null 2>&1 || ! command -v runc >/dev/null 2>&1 || [ ! -x /bin/busybox ]; then
    command -v apt-get >/dev/null 2>&1 || skip "podman is not installed and there is no apt-get"
    # Another program may be installing something: wait for it.
    install="apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends podman runc busybox-static"
    $install >/dev/null 2>&1 || { apt-get -o DPkg::Lock::Timeout=300 update >/dev/null 2>&1 && $install >/dev/null 2>&1; } \
        || skip "podman cannot be installed"
fi

image=localhost/assize-test:1
podman image exists "$image" 2>/dev/null && exit 0

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/etc" "$root/root" "$root/app" "$root/usr/bin" "$root/proc" "$root/sys" "$root/dev"
install -d -m 1777 "$root/tmp"
cp /bin/busybox "$root/bin/busybox"
for name in $("$root/bin/busybox" --list); do
    [ "$name" = busybox ] || ln -sf busybox "$root/bin/$name"
done
printf 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/tmp:/bin/sh\n' > "$root/etc/passwd"
printf 'root:x:0:\nagent:x:1000:\n' > "$root/etc/group"
tar -C "$root" -c . | podman import --change 'WORKDIR /app' --change 'ENV PATH=/bin:/usr/bin:/usr/local/bin' - "$image" >/dev/null
