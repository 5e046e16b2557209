"""The driver for Ray without Ray: a stand-in that runs tasks at once."""

import contextlib
import io
import tarfile
import tempfile
import unittest
from pathlib import Path

from assize import ray_shards


class FakeRay:
    """Tasks run when they are waited for; the first one is lost and retried."""

    def __init__(self):
        self.calls = 0

    def remote(self, function):
        return FakeTask(self, function)

    def wait(self, references, num_returns):
        return references[:num_returns], references[num_returns:]

    def get(self, reference):
        return reference()


class FakeTask:
    def __init__(self, ray, function):
        self.ray, self.function = ray, function

    def options(self, **_):
        return self

    def remote(self, *arguments):
        self.ray.calls += 1
        return lambda: self.function(*arguments)


PROGRAM = """#!/bin/sh
# Stands in for `assize run`: one run directory per shard.
while [ $# -gt 0 ]; do
    case $1 in --output) out=$2 ;; --shard) shard=$2 ;; esac
    shift
done
number=${shard%/*}
[ "$number" != 3 ] || { echo "no such agent" >&2; exit 1; }
mkdir "$out/run-$number"
echo "{\\"state\\": \\"complete\\", \\"shard\\": {\\"index\\": $number, \\"count\\": 3}}" > "$out/run-$number/manifest.json"
"""


class RayShards(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        program = self.directory / "assize"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        environment = self.directory / "environment"
        environment.write_text("PATH=/usr/bin:/bin\nTOKEN='it'\"'\"'s two\nlines'\n")
        self.settings = {
            "command": [str(program), "run", "suite.yaml"],
            "shards": 3,
            "atOnce": 2,
            "attempts": 3,
            "cpus": 1,
            "environmentFile": str(environment),
            "results": str(self.directory / "shards"),
        }

    def collect(self, results):
        with contextlib.redirect_stdout(io.StringIO()):
            return ray_shards.collect(results, Path(self.settings["results"]))

    def test_values_are_read_as_a_shell_would(self):
        found = ray_shards.read_environment(self.settings["environmentFile"])
        self.assertEqual(found, {"PATH": "/usr/bin:/bin", "TOKEN": "it's two\nlines"})

    def test_every_shard_is_run_and_those_that_fail_are_named(self):
        results = ray_shards.results(self.settings, FakeRay())
        self.assertEqual(self.collect(results), 1)
        found = sorted(path.name for path in (self.directory / "shards").iterdir())
        self.assertEqual(found, ["run-1", "run-2"])

    def test_shards_that_are_done_are_not_run_again(self):
        self.collect(ray_shards.results(self.settings, FakeRay()))
        again = FakeRay()
        list(ray_shards.results(self.settings, again))
        self.assertEqual(again.calls, 1)

    def test_archives_cannot_leave_the_directory(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            entry = tarfile.TarInfo("../outside")
            archive.addfile(entry, io.BytesIO(b""))
        with self.assertRaises(tarfile.TarError):
            ray_shards.unpack(packed.getvalue(), self.directory / "shards")
        self.assertFalse((self.directory / "outside").exists())


if __name__ == "__main__":
    unittest.main()
