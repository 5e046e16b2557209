#!/bin/sh
# What the tests with real schedulers and receivers need: Slurm from Debian's packages; Ray, a local S3 server, Phoenix with DuckDB, and
# Harbor's models of trajectories from PyPI into .cache/machines, at pinned versions. What cannot be installed is said, and the tests that
# need it are skipped by name.
# Usage: tests/machines/install.sh [slurm] [ray] [s3] [phoenix] [harbor]; without arguments everything.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/machines
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

install_slurm() {
    command -v slurmctld > /dev/null && command -v slurmd > /dev/null && command -v sbatch > /dev/null \
        && command -v munged > /dev/null && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        echo "no Slurm, and no right to install it; the tests with Slurm will be skipped" >&2
        return
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
        slurmctld slurmd slurm-client munge > /dev/null
}

# Programs name their interpreter by its full path, so that a checkout that was moved installs them again.
fingerprint() {
    (echo "$cache" && cat "$here/requirements-$1.txt") | cksum
}

# A virtual environment with exactly the packages of requirements-NAME.txt.
install_python() {
    fingerprint=$(fingerprint "$1")
    [ "$(cat "$cache/$1.installed" 2> /dev/null)" = "$fingerprint" ] && return
    rm -rf "${cache:?}/$1"
    python3 -m venv "$cache/$1"
    "$cache/$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements-$1.txt"
    echo "$fingerprint" > "$cache/$1.installed"
}

# Harbor wants a newer Python than most systems have, and of its packages only the models are needed.
install_harbor() {
    for python in python3 python3.14 python3.13 python3.12 "${HOME:-}"/.pyenv/versions/3.1[2-9].*/bin/python3; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2> /dev/null || continue
        fingerprint=$(fingerprint harbor)
        [ "$(cat "$cache/harbor.installed" 2> /dev/null)" = "$fingerprint" ] && return
        rm -rf "${cache:?}/harbor"
        "$python" -m venv "$cache/harbor"
        "$cache/harbor/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements-harbor.txt"
        echo "$fingerprint" > "$cache/harbor.installed"
        return
    done
    echo "no Python 3.12 or newer; the tests with Harbor's validator will be skipped" >&2
}

[ $# -gt 0 ] || set -- slurm ray s3 phoenix harbor
for part in "$@"; do
    case $part in
        slurm) install_slurm ;;
        harbor) install_harbor ;;
        *) install_python "$part" ;;
    esac
done
