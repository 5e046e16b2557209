"""The largest merge: 1,000 shards with 504,000 rows, traces and findings. At most 10 CPU-s and 100 MB."""

import json
import os
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

from support import REPOSITORY, TARGET, MachineTest, assize, rows

SCENARIOS, MODES, REPETITIONS, SHARDS = 300, 20, 84, 1000
PLANNED = SCENARIOS * MODES * REPETITIONS
MOST_CPU_SECONDS, MOST_MEGABYTES = 10, 100


def write_shards(model, directory):
    """A thousand shards made after one that was really run; every cell has its own names and position."""
    manifest = json.loads((model / "manifest.json").read_text())
    model_rows = rows(model)
    analysis = [json.loads(line) for line in open(model / "analysis.jsonl", encoding="utf-8")]
    index = [json.loads(line) for line in open(model / "traces/index.jsonl", encoding="utf-8")]
    pack = (model / "traces/traces.zst").read_bytes()
    cells = PLANNED // SHARDS
    for shard in range(SHARDS):
        run = directory / f"shard-{shard + 1}"
        (run / "traces").mkdir(parents=True)
        run_id = f"20261118-000000-0000-{shard + 1}of{SHARDS}"
        manifest.update(runId=run_id, state="complete")
        manifest["shard"].update(index=shard + 1, cells=cells)
        (run / "manifest.json").write_text(json.dumps(manifest, indent=2))
        with open(run / "rows.jsonl", "w") as row_file, open(run / "analysis.jsonl", "w") as analysis_file, open(
            run / "traces/index.jsonl", "w"
        ) as index_file:
            for number in range(cells):
                position = shard * cells + number
                key = {
                    "scenarioId": f"s{position // MODES % SCENARIOS}",
                    "mode": f"m{position % MODES}",
                    "iteration": position // (MODES * SCENARIOS),
                }
                row = {**model_rows[number % len(model_rows)], **key, "runId": run_id, "position": position}
                row_file.write(json.dumps(row, separators=(",", ":")) + "\n")
                finding = {**analysis[number % len(analysis)], **key}
                analysis_file.write(json.dumps(finding, separators=(",", ":")) + "\n")
                entry = {**index[number % len(index)], **key}
                index_file.write(json.dumps(entry, separators=(",", ":")) + "\n")
        (run / "traces/traces.zst").write_bytes(pack)


class MergeTest(MachineTest):
    def test_half_a_million_rows_take_seconds_and_little_memory(self):
        program = Path(os.environ.get("ASSIZE_MERGE", TARGET / "release/examples/merge"))
        if "ASSIZE_MERGE" not in os.environ:
            build = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "assize-engine", "--example", "merge"]
            subprocess.run(build, cwd=REPOSITORY, check=True)
        shutil.rmtree(self.suite)
        (self.suite / "scenarios").mkdir(parents=True)
        modes = ", ".join(f"m{number}: {{}}" for number in range(MODES))
        (self.suite / "assize.yaml").write_text(
            f"provider: {{ uses: simulated, latency_ms: 0, tool_calls: 3 }}\nanalyzers: [efficiency, tool-pattern, error]\nmodes: {{ {modes} }}\nscenarios: {{ paths: ['scenarios/*.yaml'] }}\n"
            f"execution: {{ repetitions: {REPETITIONS}, warmup: false }}\n"
        )
        for number in range(SCENARIOS):
            text = f"id: s{number}\nprompt: {'do this and that ' * 20}{number}\n"
            (self.suite / "scenarios" / f"s{number}.yaml").write_text(text)
        assize(self.suite, "run", "-q", "--shard", f"1/{SHARDS}", "--output", self.directory / "model")
        write_shards(next((self.directory / "model").iterdir()), self.directory / "shards")
        size = sum(path.stat().st_size for path in (self.directory / "shards").rglob("*") if path.is_file())
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            ["/usr/bin/env", "-i", str(program), self.directory / "merged", self.directory / "shards"], capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.stdout.strip(), f"{SHARDS} runs, {PLANNED} of {PLANNED} rows", done.stderr)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        memory = peak_megabytes(program, self.directory)
        print(f"{PLANNED} rows, {size / 1e6:.0f} MB: {cpu:.1f} CPU-s, {memory:.0f} MB")
        self.assertLessEqual(cpu, MOST_CPU_SECONDS)
        self.assertLessEqual(memory, MOST_MEGABYTES)


def peak_megabytes(program, directory):
    """The largest resident size of a second merge."""
    process = subprocess.Popen([program, directory / "again", directory / "shards"], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_maxrss / 1000


if __name__ == "__main__":
    unittest.main(verbosity=2)
