#!/usr/bin/env python3
"""Simulated agents with known truth through the real command: early stopping, plans and budgets.

    tests/study/design.py target/release/assize --experiments 1000 --runs 1000 --seed 1 --commit COMMIT

Prints, as Markdown for docs/planning.md: verdicts of equal modes over all looks; how often a difference that the plan promises to
show in 80 % is shown, and at which cost; how often ranges of plans hold the true need; by how much budgets were exceeded.
Exits with 1 when a promise is broken: more than 6 % false verdicts, power more than 5 points below the promise, a mean cost that is not
below the fixed design's, ranges that hold in less than 80 % less the error of the simulation, a budget exceeded by more than its dearest
block in more than 1 % or ever by more than the blocks under way, a block that was cut.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SCENARIOS = 8
LOOKS = 5
MOST = 10
AT_ONCE = 8
PLAIN_TOKENS = 9000
SPREAD = 0.3
SUCCESS = 0.7


def mode(tokens, success=SUCCESS):
    return (
        "{ provider_overrides: { success_rate: %.4f, tokens: { input: { median: %d, spread: %s }, output: 0, reasoning: 0, "
        "cache_read: 0, cache_write: 0 } } }" % (success, tokens, SPREAD)
    )


def suite(modes, until, scenarios=SCENARIOS, primary=None):
    named = ", ".join(f"{name}: {text}" for name, text in modes.items())
    analysis = f"analysis: {{ primary: [{primary}] }}\n" if primary else ""
    numbers = ", ".join(str(number) for number in range(1, scenarios + 1))
    return {
        "assize.yaml": f"""name: early
provider: {{ uses: simulated, model: m, latency_ms: 0, scenario_spread: 0.2 }}
modes: {{ {named} }}
scenarios: {{ paths: ['s.yaml'] }}
execution: {{ repetitions: {MOST}, concurrency: {AT_ONCE}, warmup: false{until} }}
{analysis}""",
        "s.yaml": f"id: s\nprompt: do it\nvars: {{ n: [{numbers}] }}\n",
    }


def until(method="obrien-fleming", looks=LOOKS, most=MOST):
    return f", until: {{ decided: true, method: {method}, looks: {looks}, max_repetitions: {most} }}"


def paid_suite(cap):
    """Nine of ten costs lie between a third and three times the median, a tenth beyond; trials end in any order."""
    files = suite({"plain": "{}", "other": "{}"}, f", budget: {{ usd: {cap} }}")
    text = files["assize.yaml"].replace("name: early", "name: paid").replace(f"repetitions: {MOST}", "repetitions: 20")
    text = text.replace("latency_ms: 0", "latency_ms: { min: 0, max: 4 }, cost_usd: { median: 0.1, spread: 0.6 }")
    return {**files, "assize.yaml": text}


def write(place, files):
    for name, text in files.items():
        (place / name).write_text(text)


def command(binary, place, *words):
    return subprocess.run(
        [binary, *words], cwd=place, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(place), "CI": "1"},
    )


def run(binary, files, seed, look):
    """Runs a suite once in a directory of its own and returns what `look` finds in the run's directory."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="assize-study-"))
    try:
        write(place, files)
        done = command(binary, place, "run", "--quiet", "--no-preflight", "--seed", str(seed))
        if done.returncode not in (0, 5):
            raise RuntimeError(f"the run failed: {done.stderr}")
        return look(next((place / ".assize/runs").glob("*/manifest.json")).parent)
    finally:
        shutil.rmtree(place)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def verdicts_of(directory):
    """The metrics that looks decided, and the trials that were run."""
    decided = [found["metric"] for look in lines(directory / "looks.jsonl") for found in look.get("decided", [])]
    return decided, len(lines(directory / "rows.jsonl"))


def spending_of(directory):
    """What every block cost, and how many of them lack a trial."""
    blocks = {}
    for row in lines(directory / "rows.jsonl"):
        blocks.setdefault(row["block"], []).append(row["cost"]["totalUsd"])
    return [sum(cells) for cells in blocks.values()], sum(len(cells) != 2 for cells in blocks.values())


def promised(binary, scenarios=400):
    """What the fixed design shows in 80 % of cases, as `assize plan` says when it knows nearly everything: from a large earlier run."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="assize-study-"))
    try:
        equal = {"plain": mode(PLAIN_TOKENS), "other": mode(PLAIN_TOKENS)}
        write(place, suite(equal, "", scenarios))
        done = command(binary, place, "run", "--quiet", "--no-preflight", "--seed", "1")
        if done.returncode != 0:
            raise RuntimeError(f"the run failed: {done.stderr}")
        write(place, suite(equal, until(), SCENARIOS))
        plan = json.loads(command(binary, place, "plan", "--json").stdout)
        return {metric["metric"]: metric["detectable"]["value"] / 100 for metric in plan["metrics"]}
    finally:
        shutil.rmtree(place)


def pilot_rows(chance, scenarios, repetitions, omega, sigma):
    """Rows of two modes whose ratio of tokens differs from scenario to scenario by `omega`."""
    rows = []
    for scenario in range(scenarios):
        effect = omega * chance.gauss(0, 1)
        for name, shift in (("plain", 0.0), ("other", effect)):
            for repetition in range(repetitions):
                tokens = round(1e6 * math.exp(shift + sigma * chance.gauss(0, 1)))
                rows.append({
                    "schemaVersion": 2, "runId": "pilot", "scenarioId": f"t{scenario}", "mode": name, "model": "m",
                    "iteration": repetition, "success": True, "outcome": "pass",
                    "timing": {"wallMs": 1000}, "tokens": {"total": tokens, "active": tokens},
                })
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def need_of(binary, chance_or_size, scenarios, repetitions, omega, sigma):
    """The range of scenarios that `assize plan --detect 20%` names from a pilot, and its best guess."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="assize-study-"))
    try:
        text = pilot_rows(chance_or_size, scenarios, repetitions, omega, sigma)
        (place / "pilot.jsonl").write_text(text)
        modes = {"plain": "{}", "other": "{}"}
        files = suite(modes, "", SCENARIOS, "tokens_active")
        files["assize.yaml"] = files["assize.yaml"].replace(f"repetitions: {MOST}", f"repetitions: {repetitions}")
        write(place, files)
        done = command(binary, place, "plan", "--from", "pilot.jsonl", "--detect", "20%", "--json")
        if done.returncode != 0:
            raise RuntimeError(f"the plan failed: {done.stderr}")
        target = json.loads(done.stdout)["metrics"][0]["targets"][0]
        return target["scenarios"], target["scenariosRange"]
    finally:
        shutil.rmtree(place)


class Study:
    def __init__(self, given):
        self.binary = str(given.binary.resolve())
        self.seed = given.seed
        self.broken = []
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)

    def all(self, work, count):
        """`work(seed)` for many seeds; each experiment has its own."""
        return list(self.pool.map(work, range(self.seed, self.seed + count)))

    def hold(self, promise, text):
        if not promise:
            self.broken.append(text)

    def early(self, name, files, count):
        found = self.all(lambda seed: run(self.binary, files, seed, verdicts_of), count)
        decided = {metric: sum(metric in metrics for metrics, _ in found) / count for metric in ("success", "tokens_active")}
        either = sum(bool(metrics) for metrics, _ in found) / count
        trials = sum(rows for _, rows in found) / count
        return either, decided, trials

    def equal_modes(self, count):
        print(f"| equal modes | runs | any verdict % | on success % | on tokens % | trials, of {2 * SCENARIOS * MOST} for two modes |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        two = {"plain": mode(PLAIN_TOKENS), "other": mode(PLAIN_TOKENS)}
        kinds = [
            (f"obrien-fleming, {LOOKS} looks", suite(two, until()), count),
            ("obrien-fleming, four modes", suite({**two, "third": mode(PLAIN_TOKENS), "fourth": mode(PLAIN_TOKENS)}, until()), count // 4),
            ("obrien-fleming, three scenarios", suite(two, until(), 3), count // 4),
            ("obrien-fleming, a look per round", suite(two, until(looks=MOST)), count // 4),
            ("anytime, a look per round", suite(two, until("anytime", MOST)), count // 4),
            ("anytime, three scenarios", suite(two, until("anytime", MOST), 3), count // 4),
        ]
        for name, files, runs in kinds:
            runs = max(runs, 1)
            either, decided, trials = self.early(name, files, runs)
            print(f"| {name} | {runs} | {100 * either:.1f} | {100 * decided['success']:.1f} | {100 * decided['tokens_active']:.1f} | "
                  f"{trials:.0f} |", flush=True)
            self.hold(either <= 0.06, f"{name}: {100 * either:.1f} % false verdicts")

    def different_modes(self, count):
        shown = promised(self.binary)
        full = 2 * SCENARIOS * MOST
        count = max(count, 1)
        print(f"\n| true difference, the smallest that `plan` promises to show in 80 % | runs | shown in % | trials, of {full} |")
        print("| --- | --- | --- | --- |", flush=True)
        tokens, points = shown["tokens_active"], shown["success"]
        kinds = [
            (f"{100 * tokens:.1f} % fewer tokens", "tokens_active", mode(round(PLAIN_TOKENS * (1 - tokens)))),
            (f"{100 * points:.0f} points less success", "success", mode(PLAIN_TOKENS, SUCCESS - points)),
        ]
        if SUCCESS + points <= 1:
            # Close to 100 % successes vary less than in the runs that the plan knows, so that more is shown than promised.
            kinds.append((f"{100 * points:.0f} points more success", "success", mode(PLAIN_TOKENS, SUCCESS + points)))
        for name, metric, other in kinds:
            files = suite({"plain": mode(PLAIN_TOKENS), "other": other}, until())
            either, decided, trials = self.early(name, files, count)
            # The other metric does not differ and would keep the run going, so cost is measured with this one alone.
            alone = suite({"plain": mode(PLAIN_TOKENS), "other": other}, until()[:-2] + f", metrics: [{metric}] }}")
            _, _, cost = self.early(name, alone, max(count // 2, 1))
            print(f"| {name} | {count} | {100 * decided[metric]:.1f} | {cost:.0f} |", flush=True)
            self.hold(decided[metric] >= 0.75, f"{name}: shown in {100 * decided[metric]:.1f} %, promised 80 %")
            self.hold(cost < full, f"{name}: {cost:.0f} trials on average")

    def ranges(self, count):
        print("\n| pilot | spread of the effect | true need, scenarios | plans | ranges that hold it % |")
        print("| --- | --- | --- | --- | --- |", flush=True)
        count = max(count, 1)
        for scenarios, repetitions, omega in [(8, 5, 0.2), (8, 2, 0.3), (20, 5, 0.2)]:
            sigma = 0.3
            need, _ = need_of(self.binary, random.Random(0), 4000, repetitions, omega, sigma)
            found = self.all(
                lambda seed: need_of(self.binary, random.Random(seed), scenarios, repetitions, omega, sigma)[1], count
            )
            held = sum(bool(ends) and ends[0] <= need <= ends[1] for ends in found) / count
            print(f"| {scenarios} scenarios × {repetitions} | {omega} | {need} | {count} | {100 * held:.1f} |", flush=True)
            error = 2 * math.sqrt(0.8 * 0.2 / count)
            self.hold(held >= 0.8 - error, f"ranges of {scenarios} × {repetitions} hold in {100 * held:.1f} %")

    def budgets(self, count):
        cap = 5.0
        found = self.all(lambda seed: run(self.binary, paid_suite(cap), seed, spending_of), count)
        over, beyond, cut, worst, worst_blocks = 0, 0, 0, 0.0, 0.0
        for costs, lacking in found:
            excess, dearest = sum(costs) - cap, sorted(costs, reverse=True)
            over += excess > dearest[0]
            beyond += excess > sum(dearest[:AT_ONCE])
            worst = max(worst, excess)
            worst_blocks = max(worst_blocks, excess / dearest[0])
            cut += lacking
        spent = sum(sum(costs) for costs, _ in found) / count
        most = max(max(costs) / min(costs) for costs, _ in found)
        print(f"\nA budget of $5, {count} runs, {AT_ONCE} trials at once, dearest block up to {most:.0f} times the cheapest: exceeded by more than the "
              f"dearest block in {100 * over / count:.1f} %, at worst by ${max(worst, 0):.2f} ({max(worst_blocks, 0):.2f} dearest blocks), in "
              f"{beyond} by more than the blocks under way; {cut} blocks cut; ${spent:.2f} spent on average.")
        self.hold(over <= 0.01 * count and not beyond and not cut, "budgets")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary", type=pathlib.Path)
    arguments.add_argument("--experiments", type=int, default=1000)
    arguments.add_argument("--runs", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--commit", default="unknown")
    arguments.add_argument("--only", nargs="+", choices=["equal", "different", "ranges", "budgets"], help="only these parts")
    given = arguments.parse_args()
    study = Study(given)
    print(f"{given.experiments} experiments, {SCENARIOS} scenarios, at most {MOST} rounds, seed {given.seed}, at commit {given.commit}.\n")
    parts = {
        "equal": lambda: study.equal_modes(given.experiments),
        "different": lambda: study.different_modes(given.experiments // 2),
        "ranges": lambda: study.ranges(given.experiments // 2),
        "budgets": lambda: study.budgets(given.runs),
    }
    for name, work in parts.items():
        if not given.only or name in given.only:
            work()
    for broken in study.broken:
        print(f"broken promise: {broken}", file=sys.stderr)
    sys.exit(1 if study.broken else 0)


if __name__ == "__main__":
    main()
