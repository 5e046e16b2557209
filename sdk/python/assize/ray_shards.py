"""Runs the shards of an Assize suite on a Ray cluster: one task per shard, retried when its node is lost, results streamed back.

`assize submit SUITE --on ray --shards N` writes this file and its settings and starts it. It can be changed and started by hand:

    python3 ray_shards.py ray.json

Values of environment variables come from a file that only the user can read, and travel as an argument of the tasks: they stand in no
settings, no log and no environment that Ray shows.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator

#: Exit codes of `assize run` after which a shard is not tried again: done, usage, trials that stay open.
FINAL = (0, 2, 5)


def read_environment(path: str) -> dict[str, str]:
    """Reads shell assignments, one per line, a quoted value possibly over several."""
    environment: dict[str, str] = {}
    for word in shlex.split(Path(path).read_text(encoding="utf-8")):
        name, _, value = word.partition("=")
        environment[name] = value
    return environment


def pack(runs: list[Path]) -> bytes:
    """Run directories as one archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for run in runs:
            archive.add(run, arcname=run.name)
    return packed.getvalue()


def unpack(packed: bytes, directory: Path) -> None:
    """Puts the runs of an archive into a directory; each appears whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=directory) as beside:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            archive.extractall(beside, filter="data")
        for run in list(Path(beside).iterdir()):
            target = directory / run.name
            if target.exists():
                # One that was begun before comes back longer.
                target.rename(Path(beside) / f".old-{run.name}")
            run.rename(target)


def run_shard(
    command: list[str], shard: int, count: int, environment: dict[str, str], begun: bytes = b"", record: str = ""
) -> tuple[int, int, bytes, str]:
    """One shard, on the machine where the task is placed: its number, exit code, runs, and the end of what it said.

    `begun` holds runs of it that an earlier job left unfinished, `record` tells what was merged before.
    """
    with tempfile.TemporaryDirectory(prefix="assize-shard-") as place:
        directory = Path(place) / "runs"
        directory.mkdir()
        if begun:
            unpack(begun, directory)
        after: list[str] = []
        if record:
            file = Path(place) / "round.json"
            file.write_text(record, encoding="utf-8")
            after = ["--after", str(file)]
        done = subprocess.run(
            [*command, *after, "--output", str(directory), "--shard", f"{shard}/{count}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        said = done.stderr[-4000:].decode("utf-8", "replace")
        if done.returncode not in FINAL:
            raise RuntimeError(f"shard {shard} of {count} ended with {done.returncode}: {said}")
        return shard, done.returncode, pack(sorted(directory.iterdir())), said


def open_shards(directory: Path, count: int, round_number: int | None) -> dict[int, list[Path]]:
    """Shards without a complete run here, and the runs that they have begun: a driver that is started again does only these."""
    done = set()
    begun: dict[int, list[Path]] = {shard: [] for shard in range(1, count + 1)}
    for manifest in sorted(directory.glob("*/manifest.json")):
        try:
            record = json.loads(manifest.read_text(encoding="utf-8"))
        except ValueError:
            continue
        shard = record.get("shard") or {}
        of_round = (shard.get("round") or {}).get("number")
        if shard.get("count") != count or of_round not in (None, round_number):
            continue
        if record.get("state") == "complete":
            done.add(shard.get("index"))
        elif shard.get("index") in begun:
            begun[shard["index"]].append(manifest.parent)
    return {shard: runs for shard, runs in begun.items() if shard not in done}


def results(settings: dict[str, Any], ray: Any) -> Iterator[tuple[int, int, bytes, str]]:
    """Submits the shards, at most so many at once, and yields each result when it comes."""
    environment = read_environment(settings["environmentFile"])
    count = settings["shards"]
    options: dict[str, Any] = {
        "num_cpus": settings["cpus"],
        # A lost node is retried by Ray, a failed command as well.
        "max_retries": settings["attempts"],
        "retry_exceptions": True,
    }
    task = ray.remote(run_shard)
    record = Path(settings["roundFile"]).read_text(encoding="utf-8") if settings.get("roundFile") else ""
    unfinished = open_shards(Path(settings["results"]), count, json.loads(record)["round"] if record else None)
    waiting = list(unfinished)
    at_once = settings.get("atOnce") or len(waiting)
    running: dict[Any, int] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            shard = waiting.pop(0)
            named = task.options(name=f"assize shard {shard}/{count}", **options)
            begun = unfinished[shard]
            reference = named.remote(settings["command"], shard, count, environment, pack(begun) if begun else b"", record)
            running[reference] = shard
        ready, _ = ray.wait(list(running), num_returns=1)
        for reference in ready:
            shard = running.pop(reference)
            try:
                yield ray.get(reference)
            except Exception as error:  # the other shards go on
                yield shard, 1, b"", f"{type(error).__name__}: {error}"


def collect(found: Iterable[tuple[int, int, bytes, str]], directory: Path) -> int:
    """Writes what comes back. The number of shards that failed."""
    failed = 0
    for shard, code, packed, said in found:
        if packed:
            unpack(packed, directory)
        failed += code not in (0, 5)
        print(f"shard {shard}: exit code {code}", said.strip(), sep="\n  ", flush=True)
    return failed


def main(arguments: list[str]) -> int:
    """Drives a job that `assize submit` has written."""
    settings = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    def stop(*_: object) -> None:
        # The tasks of a driver end with it.
        ray.shutdown()
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)
    # What tasks print stays with them: it may hold anything.
    ray.init(address=settings.get("address"), include_dashboard=False, log_to_driver=False)
    failed = collect(results(settings, ray), Path(settings["results"]))
    ray.shutdown()
    print(f"done; {failed} shards failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
