#!/usr/bin/env python3
"""Runs fuzz targets with libFuzzer and prints what each of them reached.

    campaign.py [--minutes M] [--still S] [--executions N] [--at-once K] TARGET...

With `--minutes` a target runs that long. Without, it runs until its coverage has not grown for `--still` minutes and it has
made `--executions` executions. Minutes are processor time of the fuzzer, so that a busy machine does not end it early.
Fails when an input makes a target panic, hang or eat memory; the input lies in fuzz/artifacts/TARGET.
"""

import argparse, os, re, shutil, subprocess, sys, threading, time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FUZZ = REPOSITORY / "fuzz"
# Targets that write files: their executions take longer, and fewer of them are asked for.
WRITING = {"run_directory", "stored_run", "data_sets", "session_logs"}
# What a corpus begins with: files of this repository that the target's parser reads.
SEEDS = {
    "suite_files": ["examples/*/assize.yaml", "examples/*/scenarios/*.yaml"],
    "data_sets": ["examples/*/tasks/*"],
    "records": ["crates/assize/tests/fixtures/runs-0.1/*/runs/*/rows.jsonl"],
    "rows": ["crates/assize/tests/fixtures/runs-0.1/*/runs/*/rows.jsonl"],
    "wire": ["crates/assize-llm/tests/fixtures/**/*.sse", "crates/assize-llm/tests/fixtures/**/*.json*"],
    "agent_output": ["crates/assize-agents/tests/recordings/**/*stdout*"],
    "acp": ["crates/assize-agents/tests/recordings/**/*.acp.jsonl"],
    "cassettes": ["crates/assize/tests/fixtures/runs-0.1/cassette/*.jsonl"],
}
# Larger seeds slow every execution down.
LARGEST_SEED = 64 << 10


def tool(arguments):
    """The cargo command: a nightly compiler where there is one, else the stable one, which may be told that it may."""
    listed = subprocess.run(["rustup", "toolchain", "list"], capture_output=True, text=True).stdout if shutil.which("rustup") else ""
    environment = dict(os.environ)
    if "nightly" in listed:
        return ["cargo", "+nightly", *arguments], environment
    environment["RUSTC_BOOTSTRAP"] = "1"
    return ["cargo", *arguments], environment


def build(targets):
    if not shutil.which("cargo-fuzz"):
        sys.exit("needs cargo-fuzz: cargo install cargo-fuzz --version 0.13.1 --locked")
    for target in targets:
        # Without a sanitizer there is nothing that stable lacks; the code is safe Rust, so panics are what can be found.
        command, environment = tool(["fuzz", "build", "--sanitizer", "none", target])
        subprocess.run(command, cwd=FUZZ, env=environment, check=True)


def program(target):
    directory = Path(os.environ.get("CARGO_TARGET_DIR", FUZZ / "target"))
    return next(path for path in directory.glob(f"*/release/{target}") if path.is_file())


def corpus(target):
    """The corpus in fuzz/corpus, with what was found before and what the repository has."""
    place = FUZZ / "corpus" / target
    place.mkdir(parents=True, exist_ok=True)
    for pattern in SEEDS.get(target, []):
        for file in REPOSITORY.glob(pattern):
            if file.is_file() and file.stat().st_size <= LARGEST_SEED:
                shutil.copy(file, place / f"seed-{abs(hash(str(file.relative_to(REPOSITORY)))):x}")
    for file in sorted((REPOSITORY / "tests/fuzz/found").glob(f"{target}-*")):
        shutil.copy(file, place / file.name)
    return place


def processor_seconds(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return None


class Campaign:
    """One target until its end."""

    def __init__(self, target, options):
        self.target, self.options = target, options
        self.executions = self.coverage = 0
        self.spent = self.grown_at = 0.0
        self.find = None

    def least(self):
        return self.options.executions // (10 if self.target in WRITING else 1)

    def is_done(self):
        if self.options.minutes:
            return self.spent >= 60 * self.options.minutes
        still = self.spent - self.grown_at >= 60 * self.options.still
        return still and self.executions >= self.least()

    def run(self):
        artifacts = FUZZ / "artifacts" / self.target
        artifacts.mkdir(parents=True, exist_ok=True)
        child = subprocess.Popen(
            [program(self.target), corpus(self.target), f"-artifact_prefix={artifacts}/", "-timeout=20", "-rss_limit_mb=2048",
             "-max_len=16384", "-reload=0", "-use_value_profile=0", "-report_slow_units=20"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", cwd=FUZZ)
        watcher = threading.Thread(target=self.watch, args=(child,), daemon=True)
        watcher.start()
        for line in child.stderr:
            self.read(line)
        code = child.wait()
        if code not in (0, -2, -15) and not self.find:
            self.find = f"ended with {code}"
        return self

    def watch(self, child):
        while child.poll() is None:
            self.spent = processor_seconds(child.pid) or self.spent
            if self.is_done():
                child.terminate()
                return
            time.sleep(1)

    def read(self, line):
        status = re.match(r"#(\d+)\s+\w+.*?cov: (\d+)", line)
        if status:
            self.executions = max(self.executions, int(status[1]))
            if int(status[2]) > self.coverage:
                self.coverage, self.grown_at = int(status[2]), self.spent
        elif "Test unit written to" in line:
            self.find = line.split()[-1]
        elif "panicked at" in line:
            print(f"{self.target}: {line.strip()}", file=sys.stderr)

    def row(self):
        still = (self.spent - self.grown_at) / 60
        found = self.find or "none"
        return f"| `{self.target}` | {self.executions:,} | {self.coverage:,} | {self.spent / 60:.1f} | {still:.1f} | {found} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--still", type=float, default=10)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    build(options.targets)
    print("| target | executions | coverage | processor minutes | minutes without growth | finds |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    waiting, done, lock = list(options.targets), [], threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                target = waiting.pop(0)
            campaign = Campaign(target, options).run()
            with lock:
                done.append(campaign)
                print(campaign.row(), flush=True)

    workers = [threading.Thread(target=work) for _ in range(options.at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"\n{sum(campaign.executions for campaign in done):,} executions in all")
    sys.exit(any(campaign.find for campaign in done))


if __name__ == "__main__":
    main()
