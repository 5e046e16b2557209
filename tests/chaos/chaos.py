#!/usr/bin/env python3
"""Kills Assize at random moments and compares what is left with what must be there.

    chaos.py BINARY [--rounds N] [--seed S] [--at-once K]

Every round makes a run, breaks it in one way (kill -9, a full disk, a dead plugin, a clock that jumps), lets Assize go on, and looks at
the files. The seed of a round repeats it: `--rounds 1 --seed S`. Nothing lost is the only good end.
"""

import argparse, json, os, random, resource, shutil, signal, subprocess, sys, tempfile, threading, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = {
    # Analyzers on, many short trials.
    "run": {
        "assize.yaml": "provider: { uses: simulated, latency_ms: 2, tool_calls: 3 }\nmodes: { a: {}, b: {} }\n"
        "scenarios: { paths: [s.yaml] }\nanalyzers: [efficiency, time, tool-pattern]\nexecution: { repetitions: 40, warmup: false, concurrency: 4 }\n",
        "s.yaml": "id: s\nprompt: hello\nchecks:\n  - output: { contains: e }\n",
    },
    # Programs in workspaces.
    "command": {
        "assize.yaml": "modes: { shell: { provider: { uses: command, command: [sh, -c, 'echo more >> f; echo done'] } } }\n"
        "scenarios: { paths: [s.yaml] }\nexecution: { repetitions: 6, warmup: false, concurrency: 2 }\noutput: { keep_workspace: all }\n",
        "s.yaml": "id: s\nprompt: hello\nworkspace: { from: source }\nchecks:\n  - file: { path: f, contains: more }\n",
        "source/f": "text\n",
    },
    # Tasks, their records and scores.
    "lab": {
        "assize.yaml": "modes: { table: {} }\ntasks: { paths: [tasks.jsonl] }\n"
        "runners:\n  - { id: table, uses: rules, type: greeting, config: { rules: [ { output: 'Hello, Ada!' } ] } }\n"
        "evaluators:\n  - { id: reply, uses: EVALUATOR }\nexecution: { repetitions: 1, warmup: false, concurrency: 4 }\n",
        "tasks.jsonl": "".join(json.dumps({"id": f"t{n}", "input": str(n), "expected": "hello ada"}) + "\n" for n in range(60)),
    },
    # A plugin that measures.
    "plugin": {
        "assize.yaml": "plugins:\n  - { id: p, command: [python3, plugin.py] }\nprovider: { uses: simulated, latency_ms: 5 }\nmodes: { a: {} }\n"
        "scenarios: { paths: [s.yaml] }\ncollectors: [length]\nexecution: { repetitions: 20, warmup: false, concurrency: 2 }\n",
        "s.yaml": "id: s\nprompt: hello\nchecks:\n  - output: { contains: e }\n",
        "plugin.py": (HERE / "plugin.py").read_text() if (HERE / "plugin.py").exists() else "",
    },
}
TRIALS = {"run": 80, "command": 6, "lab": 60, "plugin": 20}
WITHOUT_PLUGIN = [name for name in SUITES if name != "plugin"]


class Lost(Exception):
    """Something that had to be there is not."""


class Round:
    # How long each command took when nobody killed it, by suite: kills come at moments within that time, however busy the machine is.
    took = {}

    def __init__(self, binary, seed):
        self.binary, self.seed, self.random = binary, seed, random.Random(seed)
        self.place = Path(tempfile.mkdtemp(prefix="assize-chaos-"))
        self.log, self.name = [], None

    def suite(self, name, evaluator="exact"):
        for path, text in SUITES[name].items():
            path = self.place / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("EVALUATOR", evaluator))
        self.name = name

    def start(self, *arguments, limit=None):
        environment = dict(os.environ, TMPDIR=str(self.place), NO_COLOR="1")
        if self.random.random() < 0.3:
            environment["ASSIZE_CLOCK_JUMPS"] = str(self.random.choice([1000, 3_600_000, 86_400_000_000]))

        def bound():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.log.append(" ".join(arguments) + (f" (files end at {limit} bytes)" if limit is not None else ""))
        return subprocess.Popen([self.binary, *arguments], cwd=self.place, env=environment, preexec_fn=bound, restore_signals=False,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def done(self, *arguments, codes=(0,)):
        began = time.monotonic()
        child = self.start(*arguments)
        try:
            out, err = child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            child.kill()
            raise Lost(f"`{' '.join(arguments)}` does not end")
        if child.returncode not in codes:
            raise Lost(f"`{' '.join(arguments)}` ends with {child.returncode}: {err.decode(errors='replace')[-600:]}")
        if "--resume" not in arguments:
            self.took[self.name, arguments[0]] = time.monotonic() - began
        return out

    def killed(self, *arguments, longest=0.6):
        """Kills it at a random moment. Its programs are on their own."""
        child = self.start(*arguments)
        longest = max(longest, 1.1 * self.took.get((self.name, arguments[0]), 0))
        try:
            child.wait(self.random.random() * longest)
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()

    def runs(self):
        place = self.place / ".assize/runs"
        return sorted(path for path in place.iterdir() if path.is_dir()) if place.exists() else []

    def complete(self):
        """Lets the run go on to its end."""
        if not any((run / "manifest.json").exists() for run in self.runs()):
            return self.done("run", "-q", codes=(0, 1, 5))
        self.done("run", "-q", "--resume", "last", codes=(0, 1, 5))

    def check(self):
        run = [run for run in self.runs() if (run / "manifest.json").exists()][-1]
        manifest = json.loads((run / "manifest.json").read_text())
        rows = lines(run / "rows.jsonl")
        cells = {(row["scenarioId"], row["mode"], row["iteration"]) for row in rows}
        expected = TRIALS[self.name]
        if manifest["state"] != "complete" or len(rows) != expected or len(cells) != expected:
            raise Lost(f"{len(rows)} rows of {len(cells)} cells, expected {expected}; the run is {manifest['state']}")
        if self.name in ("run", "command", "plugin"):
            index = {(entry["scenarioId"], entry["mode"], entry["iteration"]) for entry in lines(run / "traces/index.jsonl")}
            if index != cells:
                raise Lost(f"{len(cells - index)} rows without a trace, {len(index - cells)} traces without a row")
        if self.name == "run":
            analyzed = {(one["scenarioId"], one["mode"], one["iteration"]) for one in lines(run / "analysis.jsonl")}
            if analyzed != cells:
                raise Lost("analysis and rows differ")
        if self.name == "lab":
            records = {record["id"] for record in lines(run / "runs.jsonl")}
            if records != {row["sessionId"] for row in rows}:
                raise Lost("run records and rows differ")
            self.check_scores(run, manifest, rows)
        leftovers = [path.name for path in run.iterdir() if path.name.endswith((".scoring", ".commit", ".tmp"))]
        if leftovers:
            raise Lost(f"left behind: {leftovers}")
        json.loads(self.done("show", f"last/{self.random.randrange(expected)}", "--json"))
        return run

    def check_scores(self, run, manifest, rows):
        """Rows, scores and manifest are of one scoring."""
        evaluator = manifest["suite"]["evaluators"][0]["uses"]
        metric, other = ("text_match", "accuracy") if evaluator == "text" else ("accuracy", "text_match")
        scores = lines(run / "scores.jsonl")
        metrics = {score["metric"] for score in scores}
        if metric not in metrics or other in metrics or len({score["runId"] for score in scores}) != len(rows):
            raise Lost(f"scored by `{evaluator}`, but scores are {metrics}")
        for row in rows:
            names = " ".join(row["extensions"])
            if metric not in names or other in names:
                raise Lost(f"scored by `{evaluator}`, but a row has {names}")

    # The ways to break it.

    def kill_run(self):
        self.suite(self.random.choice(WITHOUT_PLUGIN))
        for _ in range(self.random.randint(1, 4)):
            self.killed("run", "-q", *(["--resume", "last"] if self.has_run() else []))
        self.complete()
        self.check()

    def has_run(self):
        return any((run / "manifest.json").exists() for run in self.runs())

    def kill_score(self):
        self.suite("lab")
        self.complete()
        evaluators = ["text", "exact"]
        for number in range(self.random.randint(1, 4)):
            self.suite("lab", evaluators[number % 2])
            self.killed("score", "--yes", longest=0.25)
            self.done("runs")
            run = self.runs()[-1]
            self.check_scores(run, json.loads((run / "manifest.json").read_text()), lines(run / "rows.jsonl"))
        before = self.superseded()
        self.suite("lab", evaluators[number % 2])
        self.done("score", "--yes")
        self.check()
        if self.superseded() > before + TRIALS["lab"]:
            raise Lost("superseded rows grow with killed scorings")

    def superseded(self):
        path = self.runs()[-1] / "superseded.jsonl"
        return len(lines(path)) if path.exists() else 0

    def kill_report(self):
        self.suite(self.random.choice(WITHOUT_PLUGIN))
        self.complete()
        self.killed("report")
        self.done("report")
        run = self.check()
        json.loads((run / "report/data/results.json").read_text())

    def kill_prune(self):
        self.suite("run")
        for _ in range(3):
            self.done("run", "-q", "-n", "1", codes=(0, 1, 5))
        self.killed("runs", "prune", "--keep", "1", longest=0.05)
        listed = self.done("runs", "--json").decode()
        there = [run for run in self.runs()]
        for run in there:
            if run.name not in listed:
                raise Lost(f"`{run.name}` is there and not listed")
        self.done("runs", "prune", "--keep", "1")
        if len(self.runs()) != 1:
            raise Lost(f"{len(self.runs())} runs are left, expected 1")

    def kill_baseline(self):
        self.suite("run")
        self.complete()
        kept = self.random.random() < 0.5
        if kept:
            self.done("baseline", "set", "main")
        for _ in range(self.random.randint(1, 4)):
            self.killed("baseline", "set", "main", longest=0.1)
            self.check_baseline(may_miss=not kept)
        self.done("baseline", "set", "main")
        self.check_baseline()
        self.check()

    def check_baseline(self, may_miss=False):
        """It is whole, or was never there."""
        listed = [json.loads(line)["name"] for line in self.done("baseline", "list", "--json").decode().splitlines()]
        if listed not in (["main"], *([[]] if may_miss else [])):
            raise Lost(f"the baselines are {listed}")
        rows = [lines(path) for path in (self.place / ".assize").rglob("main/rows.jsonl")]
        if listed and [len(found) for found in rows] != [TRIALS["run"]]:
            raise Lost(f"the baseline has {[len(found) for found in rows]} rows")

    def fill_disk(self):
        self.suite(self.random.choice(WITHOUT_PLUGIN))
        for _ in range(self.random.randint(1, 3)):
            limit = int(10 ** self.random.uniform(0, 5.3))
            child = self.start("run", "-q", *(["--resume", "last"] if self.has_run() else []), limit=limit)
            try:
                child.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                child.kill()
                raise Lost("a run on a full disk does not end")
        self.complete()
        self.check()

    def kill_plugin(self):
        self.suite("plugin")
        child = self.start("run", "-q")
        time.sleep(self.random.random() * 0.8)
        for process in Path("/proc").iterdir():
            try:
                is_plugin = (process / "cwd").resolve() == self.place and b"plugin.py" in (process / "cmdline").read_bytes()
                if is_plugin and process.name != str(child.pid):
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ValueError):
                continue
        try:
            child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            child.kill()
            raise Lost("a run whose plugin was killed does not end")
        self.complete()
        self.check()

    WAYS = ["kill_run"] * 4 + ["kill_score"] * 3 + ["kill_report", "kill_prune", "kill_baseline", "fill_disk", "fill_disk", "kill_plugin"]

    def play(self):
        way = self.random.choice(self.WAYS)
        try:
            getattr(self, way)()
        except Lost as lost:
            return way, f"{lost} [{'; '.join(self.log[-6:])}; files in {self.place}]"
        shutil.rmtree(self.place, ignore_errors=True)
        return way, None


def lines(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--rest-while", metavar="FILE", help="rests while this file exists")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    counts, losses, lock = {}, 0, threading.Lock()
    seeds = iter(range(arguments.seed, arguments.seed + arguments.rounds))
    began = time.monotonic()

    def work():
        nonlocal losses
        while True:
            with lock:
                seed = next(seeds, None)
            if seed is None:
                return
            while arguments.rest_while and os.path.exists(arguments.rest_while):
                time.sleep(1)
            way, lost = Round(binary, seed).play()
            with lock:
                counts[way] = counts.get(way, 0) + 1
                losses += bool(lost)
                done = sum(counts.values())
                if lost:
                    print(f"round {seed}, {way}: {lost}", flush=True)
                if done % 50 == 0:
                    print(f"{done} rounds in {time.monotonic() - began:.0f} s", flush=True)

    workers = [threading.Thread(target=work) for _ in range(arguments.at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    made = ", ".join(f"{way} {count}" for way, count in sorted(counts.items()))
    print(f"{arguments.rounds} rounds ({made}): {losses or 'nothing'} lost")
    sys.exit(1 if losses else 0)


if __name__ == "__main__":
    main()
