"""What the tests with real schedulers share: a suite, comparison of runs, the search for secrets."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "machines"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
ASSIZE = os.environ.get("ASSIZE_BIN", str(TARGET / "debug" / "assize"))
SECRET = "hunter2-correct-horse-battery"

SUITE = """\
name: machines
provider: {{ uses: simulated, latency_ms: {latency_ms}, tool_calls: 2 }}
modes:
  plain: {{}}
  other: {{ environment: {{ SERVICE_TOKEN: '${{env:SERVICE_TOKEN}}' }} }}
scenarios: {{ paths: ['scenarios/*.yaml'] }}
execution: {{ repetitions: {repetitions}, warmup: false, concurrency: 1, seed: 7 }}
"""


# Looks after every second repetition; one mode needs far fewer tokens and is decided early, the other one is open to the end.
ROUNDS = """\
name: rounds
provider: {{ uses: simulated, model: m, latency_ms: {latency_ms}, success_rate: 1, scenario_spread: 0.2 }}
modes:
  plain: {{ provider_overrides: {{ tokens: {{ input: {{ median: 9000, spread: 0.3 }}, output: {{ median: 10, spread: 0.1 }} }} }} }}
  fewer: {{ provider_overrides: {{ tokens: {{ input: {{ median: 2500, spread: 0.3 }}, output: {{ median: 10, spread: 0.1 }} }} }} }}
  same:
    environment: {{ SERVICE_TOKEN: '${{env:SERVICE_TOKEN}}' }}
    provider_overrides: {{ tokens: {{ input: {{ median: 9000, spread: 0.3 }}, output: {{ median: 10, spread: 0.1 }} }} }}
scenarios: {{ paths: ['scenarios/*.yaml'] }}
execution: {{ warmup: false, concurrency: 1, seed: 7, until: {{ decided: true, looks: 3, max_repetitions: 6 }} }}
analysis: {{ primary: [tokens_active] }}
"""


def write_suite(directory, scenarios, repetitions, latency_ms):
    (directory / "scenarios").mkdir(parents=True)
    (directory / "assize.yaml").write_text(SUITE.format(repetitions=repetitions, latency_ms=latency_ms))
    for number in range(scenarios):
        (directory / "scenarios" / f"s{number}.yaml").write_text(f"id: s{number}\nprompt: do thing {number}\n")


def environment(**more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LANG") if name in os.environ}
    return {**kept, "NO_COLOR": "1", "CI": "1", "SERVICE_TOKEN": SECRET, **more}


def assize(directory, *arguments, expect=(0,), env=None, timeout=600):
    done = subprocess.run(
        [ASSIZE, *map(str, arguments)], cwd=directory, env=env or environment(), capture_output=True, text=True, timeout=timeout
    )
    if expect is not None and done.returncode not in expect:
        raise AssertionError(f"assize {arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def rows(run):
    with open(Path(run) / "rows.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def without_times(value):
    if isinstance(value, dict):
        is_time = lambda key: key.endswith(("Ms", "_ms", "At")) or key in ("runId", "sessionId", "timing")
        return {key: without_times(item) for key, item in value.items() if not is_time(key)}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def comparable(run):
    """Rows in the order of the plan, ids and times aside."""
    return [without_times(row) for row in sorted(rows(run), key=lambda row: row["position"])]


def files_with_secret(*directories):
    found = []
    for directory in directories:
        for path in Path(directory).rglob("*"):
            try:
                if path.is_file() and not path.is_symlink() and SECRET.encode() in path.read_bytes():
                    found.append(path)
            except OSError:
                pass
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


class MachineTest(unittest.TestCase):
    """A suite in a directory of its own, and the run of one machine to compare with."""

    scenarios = 10
    repetitions = 4
    latency_ms = 300

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="assize-machines-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.suite = self.directory / "suite"
        write_suite(self.suite, self.scenarios, self.repetitions, self.latency_ms)

    def run_of_one_machine(self):
        assize(self.suite, "run", "-q", "-j", "8", "--output", self.directory / "whole")
        return next((self.directory / "whole").iterdir())

    def looks(self, run):
        """The looks at a run, without the moment and the command."""
        with open(Path(run) / "looks.jsonl", encoding="utf-8") as lines:
            looks = [json.loads(line) for line in lines]
        return [{key: value for key, value in look.items() if key not in ("at", "command")} for look in looks]

    def check_rounds(self, merged):
        """The looks, decisions and rows of one machine, and fewer trials than planned."""
        whole = self.run_of_one_machine()
        self.assertEqual(self.looks(merged), self.looks(whole))
        self.assertEqual(len(self.looks(merged)), 3)
        self.assertEqual(comparable(merged), comparable(whole))
        self.assertLess(len(rows(merged)), self.scenarios * 6 * 3)

    def check_merged(self, merged):
        """Every cell once, and the rows of one machine."""
        planned = self.scenarios * self.repetitions * 2
        positions = [row["position"] for row in rows(merged)]
        self.assertEqual(len(positions), planned)
        self.assertEqual(len(set(positions)), planned)
        self.assertEqual(comparable(merged), comparable(self.run_of_one_machine()))
