#!/usr/bin/env python3
"""Simulated agents with known truth through the real command: early stopping and budgets.

    tests/study/design.py target/release/assize --experiments 1000 --runs 1000 --seed 1

Prints false verdicts over all looks of equal modes, power and trials of different ones, and by how much budgets were exceeded.
Exits with 1 when a promise is broken: more than 6 % false verdicts, or a budget exceeded by more than its dearest block in more than 1 %.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCENARIOS = 8
LOOKS = 5
MOST = 10


def mode(tokens):
    return (
        "{ provider_overrides: { tokens: { input: { median: %d, spread: 0.3 }, output: { median: 10, spread: 0.1 } } } }"
        % tokens
    )


def early_suite(tokens):
    # Where tokens differ they alone decide when to stop; success is the same in both modes and would never be decided.
    only = ", metrics: [tokens_active]" if tokens != 9000 else ""
    return f"""name: early
provider: {{ uses: simulated, model: m, latency_ms: 0, success_rate: 0.7, scenario_spread: 0.2 }}
modes: {{ plain: {mode(9000)}, other: {mode(tokens)} }}
scenarios: {{ paths: ['s.yaml'] }}
execution: {{ repetitions: {MOST}, concurrency: 8, warmup: false, until: {{ decided: true, looks: {LOOKS}, max_repetitions: {MOST}{only} }} }}
"""


def paid_suite(cap):
    # Costs between a third and three times the median: tenfold.
    return f"""name: paid
provider: {{ uses: simulated, model: m, latency_ms: 0, cost_usd: {{ median: 0.1, spread: 0.6 }} }}
modes: {{ plain: {{}}, other: {{}} }}
scenarios: {{ paths: ['s.yaml'] }}
execution: {{ repetitions: 20, concurrency: 8, warmup: false, budget: {{ usd: {cap} }} }}
"""


def run(binary, suite, seed):
    """Runs a suite once in a directory of its own and returns the directory of the run."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="assize-study-"))
    (place / "assize.yaml").write_text(suite)
    numbers = ", ".join(str(number) for number in range(1, SCENARIOS + 1))
    (place / "s.yaml").write_text(f"id: s\nprompt: do it\nvars: {{ n: [{numbers}] }}\n")
    done = subprocess.run(
        [binary, "run", "--quiet", "--no-preflight", "--seed", str(seed)],
        cwd=place, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(place), "CI": "1"},
    )
    if done.returncode not in (0, 5):
        sys.exit(f"the run failed: {done.stderr}")
    return place, next((place / ".assize/runs").glob("*/manifest.json")).parent


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def early(binary, tokens, experiments, seed):
    """Shares of experiments with a verdict on tokens and on either metric, and the mean number of trials."""
    either, of_tokens, trials = 0, 0, 0
    for number in range(experiments):
        place, directory = run(binary, early_suite(tokens), seed + number)
        decided = [found for look in lines(directory / "looks.jsonl") for found in look.get("decided", [])]
        either += bool(decided)
        of_tokens += any(found["metric"] == "tokens_active" for found in decided)
        trials += len(lines(directory / "rows.jsonl"))
        shutil.rmtree(place)
    return either / experiments, of_tokens / experiments, trials / experiments


def budgets(binary, cap, runs, seed):
    """By how many dearest blocks each run exceeded its budget, and the dollars by which the worst did."""
    over, worst, cut = 0, 0.0, 0
    for number in range(runs):
        place, directory = run(binary, paid_suite(cap), seed + number)
        blocks = {}
        for row in lines(directory / "rows.jsonl"):
            blocks.setdefault(row["block"], []).append(row["cost"]["totalUsd"])
        cut += sum(len(cells) != 2 for cells in blocks.values())
        costs = [sum(cells) for cells in blocks.values()]
        excess = sum(costs) - cap
        over += excess > max(costs)
        worst = max(worst, excess)
        shutil.rmtree(place)
    return over / runs, worst, cut


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("binary", type=pathlib.Path)
    arguments.add_argument("--experiments", type=int, default=1000)
    arguments.add_argument("--runs", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    binary = given.binary.resolve()
    full = 2 * SCENARIOS * MOST
    either, of_tokens, trials = early(binary, 9000, given.experiments, given.seed)
    print(f"equal modes, {given.experiments} runs, {LOOKS} looks: {100 * either:.1f} % with any verdict, "
          f"{100 * of_tokens:.1f} % on tokens; {trials:.0f} of {full} trials on average")
    few = max(given.experiments // 4, 1)
    _, power, trials = early(binary, 7200, few, given.seed)
    print(f"20 % fewer tokens, {few} runs: decided in {100 * power:.1f} %; {trials:.0f} of {full} trials on average")
    over, worst, cut = budgets(binary, 5.0, given.runs, given.seed)
    print(f"a budget of $5, {given.runs} runs, 8 at once: exceeded by more than the dearest block in {100 * over:.1f} %; "
          f"at worst by ${max(worst, 0):.2f}; {cut} blocks cut")
    sys.exit(1 if either > 0.06 or over > 0.01 or cut else 0)


if __name__ == "__main__":
    main()
