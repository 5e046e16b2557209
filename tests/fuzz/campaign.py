#!/usr/bin/env python3
"""Runs fuzz targets with libFuzzer and says what each of them reached.

    campaign.py [--minutes M] [--still S] [--executions N] [--at-once K] [--rest-while FILE] TARGET...
    campaign.py --table [--write]        what was reached, as the table of docs/testing.md, or into it
    campaign.py --keep                   the corpora, made small, into tests/fuzz/corpus

With `--minutes` a target runs that long. Without, it runs until its coverage has not grown for `--still` minutes and it has
made `--executions` executions, a tenth of it where it writes files. Minutes are processor time of the fuzzer, so that a busy machine
does not end it early. What was reached is kept in tests/fuzz/reached: a campaign that was stopped goes on where it was, and a target that is
done is not run again until its program has changed and `--again` is said.
Fails when an input makes a target panic, hang or eat memory; the input lies in fuzz/artifacts/TARGET.
"""

import argparse, hashlib, io, json, os, re, shutil, signal, sqlite3, subprocess, sys, tarfile, tempfile, threading, time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FUZZ = REPOSITORY / "fuzz"
KEPT = REPOSITORY / "tests/fuzz/corpus"
FOUND = REPOSITORY / "tests/fuzz/found"
REACHED = REPOSITORY / "tests/fuzz/reached"
PAGE = REPOSITORY / "docs/testing.md"
MARKS = ("<!-- fuzzing: begin -->", "<!-- fuzzing: end -->")
# Targets that write files: their executions take longer, and fewer of them are asked for.
WRITING = {"run_directory", "stored_run", "data_sets"}
# In seconds of wall time, since a program that is stopped or starved must not pass for one that hangs; then tried again alone.
LONGEST = 900
# In processor seconds, of one input.
HANGS = 20
RUNS = "crates/assize/tests/fixtures/runs-0.1/*/runs/*"
# What a corpus begins with: files of this repository that the target's parser reads, whole or by line.
SEEDS = {
    "suite_files": ["examples/*/assize.yaml", "examples/*/scenarios/*.yaml", "crates/assize/tests/fixtures/**/*.yaml"],
    "data_sets": ["examples/*/tasks/*", "crates/assize/tests/fixtures/runs-0.1/*/tasks/*"],
    "rows": [f"{RUNS}/rows.jsonl"],
    "agent_output": ["crates/assize-agents/tests/recordings/*/*.jsonl"],
    "acp": ["crates/assize-agents/tests/recordings/acp/*.jsonl"],
    "cassettes": ["crates/assize/tests/fixtures/runs-0.1/cassette/*.jsonl"],
}
LINES = {
    "records": [f"{RUNS}/*.jsonl", "examples/*/tasks/*.jsonl"],
    "rows": [f"{RUNS}/rows.jsonl"],
    "agent_output": ["crates/assize-agents/tests/recordings/*/*.jsonl"],
    "acp": ["crates/assize-agents/tests/recordings/acp/*.jsonl"],
    "data_sets": ["examples/*/tasks/*.jsonl"],
    "cassettes": ["crates/assize/tests/fixtures/runs-0.1/cassette/c.jsonl"],
}
# Where the words of a parser stand: string literals and names of fields become its dictionary.
WORDS = {
    "suite_files": ["crates/assize/src/suite/file.rs", "crates/assize/src/suite/scenario.rs", "schemas/suite.schema.json", "schemas/scenario.schema.json"],
    "records": ["schemas/row.schema.json", "schemas/trace.schema.json", "schemas/bundle.schema.json", "schemas/task.schema.json",
                "schemas/run-record.schema.json", "schemas/score-record.schema.json"],
    "rows": ["crates/assize-report/src/row.rs", "crates/assize-report/src/rows.rs", "schemas/row.schema.json"],
    "run_directory": ["crates/assize-engine/src/store/trace_pack.rs", "crates/assize-engine/src/store/record_id.rs"],
    "stored_run": ["crates/assize-engine/src/store/manifest.rs", "crates/assize-engine/src/store/trace_pack.rs", "schemas/row.schema.json"],
    "data_sets": ["crates/assize/src/suite/data_set.rs", "crates/assize/src/suite/data_set/*.rs", "schemas/task.schema.json"],
    "gates": ["crates/assize-report/src/gate/parse.rs", "crates/assize-contracts/src/metric.rs"],
    "prices": ["crates/assize-llm/src/prices/*.rs"],
    "wire": ["crates/assize-llm/src/decode/**/*.rs", "crates/assize-llm/src/*.rs"],
    "cassettes": ["crates/assize-agents/src/capture/cassette.rs", "crates/assize-agents/src/capture/encoding.rs"],
    "agent_output": ["crates/assize-agents/src/output/*.rs"],
    "acp": ["crates/assize-agents/src/acp/messages.rs", "crates/assize-agents/src/acp.rs"],
    "mcp": ["crates/assize-agents/src/mcp.rs"],
    "mcp_messages": ["crates/assize-agents/src/chat/servers/*.rs", "crates/assize/src/commands/mcp/*.rs"],
    "checks": ["crates/assize-measures/src/checks/*.rs", "crates/assize-measures/src/judge/rubric.rs", "crates/assize-measures/src/judge/verdict.rs"],
    "plugin_messages": ["crates/assize-plugins/src/protocol.rs", "crates/assize-plugins/src/wire.rs", "schemas/trace.schema.json",
                        "schemas/scorer-result.schema.json", "schemas/prompt-result.schema.json"],
    "secrets": ["crates/assize-secrets/src/redactor.rs"],
    "session_logs": ["crates/assize-sessions/src/formats/*.rs"],
}
JSON = ['{"', '":', '",', '"]', "}]", "[[", "null", "true", "false", "-1", "0", "1e999", "-0.0", "1.5", "18446744073709551616", '\\"', "\\u0000", "\\ud800", "\n", "{}", "[]", '""']
# Longer inputs than this bring nothing but time; the seeds of some are longer than those of others.
LENGTHS = {"gates": 256, "mcp_messages": 2048, "checks": 2048, "mcp": 1024, "prices": 2048, "secrets": 1024, "acp": 2048, "plugin_messages": 4096, "records": 4096, "wire": 2048,
           "suite_files": 4096, "data_sets": 2048, "run_directory": 4096, "cassettes": 4096, "rows": 4096, "agent_output": 2048, "session_logs": 8192,
           "stored_run": 16384}


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
    # The same dependencies as the program has.
    if not (FUZZ / "Cargo.lock").exists():
        shutil.copy(REPOSITORY / "Cargo.lock", FUZZ / "Cargo.lock")
    # Without a sanitizer there is nothing that stable lacks; the code is safe Rust, so panics are what can be found.
    command, environment = tool(["fuzz", "build", "--sanitizer", "none", *(targets if len(targets) == 1 else [])])
    subprocess.run(command, cwd=FUZZ, env=environment, check=True)


def program(target):
    directory = Path(os.environ.get("CARGO_TARGET_DIR", FUZZ / "target"))
    return next(path for path in directory.glob(f"*/release/{target}") if path.is_file())


# Seeds and dictionaries.

def files(patterns):
    for pattern in patterns:
        yield from sorted(path for path in REPOSITORY.glob(pattern) if path.is_file())


def fenced(*languages):
    """Examples in the documentation."""
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        for language, text in re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", page.read_text(), re.S | re.M):
            if language in languages:
                yield text.encode()


def literals(path):
    """Texts in double quotes of a Rust file."""
    return [bytes(text, "utf-8").decode("unicode_escape", "replace").encode("utf-8", "replace")
            for text in re.findall(r'"((?:[^"\\\n]|\\.)+)"', path.read_text())]


def stored_runs(parts):
    for run in files([f"{RUNS}/manifest.json"]):
        contents = [(run.parent / part).read_bytes() if (run.parent / part).exists() else b"" for part in parts]
        # One or two rows and what belongs to them: larger runs hold nothing else.
        for lines in (1, 2):
            shortened = [b"".join(content.splitlines(True)[:lines]) if part.endswith(".jsonl") else content for part, content in zip(parts, contents)]
            yield b"\0".join(shortened)


def leftovers():
    """Rows and indexes with no more than repairing looks at."""
    cell = lambda number, **more: json.dumps({"scenarioId": f"s{number}", "mode": "m", "model": "x", "iteration": number, **more}) + "\n"
    frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc"
    for rows, entries in ((1, 1), (2, 2), (2, 1), (1, 2), (0, 2), (3, 0)):
        index = "".join(cell(number, offset=number * len(frame), length=len(frame)) for number in range(entries))
        yield "".join(cell(number) for number in range(rows)).encode() + b"\0" + index.encode() + b"\0" + frame * (entries + 1)
    yield cell(0).encode() + b"\0" + cell(0, offset=(1 << 64) - 1, length=9).encode() + b"\0" + frame
    yield cell(0).encode() * 2 + cell(1).encode()[:9] + b"\0" + b"\0" + frame[:5]


def wire():
    """Recorded answers up to the longest input, each of their events alone, and requests."""
    for file in files(["crates/assize-llm/tests/fixtures/*.jsonl"]):
        for exchange in map(json.loads, file.read_text().splitlines()):
            events = [event.encode() for _, event in exchange.get("events") or []]
            yield from events
            yield b"".join(events)[: LENGTHS["wire"]]
            for part in (exchange.get("request"), exchange.get("response")):
                yield json.dumps(shortened(part)).encode()


def shortened(value):
    """The same shape with short texts and lists."""
    if isinstance(value, dict):
        return {name: shortened(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shortened(part) for part in value[:3]]
    return value[:12] if isinstance(value, str) else value


def session_logs():
    """The first byte is the format, in the order of the registry."""
    source = (REPOSITORY / "crates/assize-sessions/src/formats/mod.rs").read_text()
    formats = re.findall(r"&(\w+)::", re.search(r"FORMATS:[^=]*=\s*\[(.*?)\]", source, re.S)[1])
    # `pi-1.5.jsonl` is of the format `pi`.
    of_log = lambda log: formats.index(re.match(r"[a-z]+(-[a-z]+)*", log.name)[0].replace("-", "_"))
    logs = [(of_log(log), log.read_bytes()) for log in files(["crates/assize-sessions/tests/logs/*.json*"])]
    own = [json.loads(file.read_text()).get("trace") for file in files(["crates/assize/tests/fixtures/runs-0.1/*/show-0.json"])]
    logs += [(formats.index("assize"), json.dumps(trace).encode()) for trace in own if trace]
    steps = [{"step_id": 1, "timestamp": "2026-01-01T00:00:00Z", "source": "user", "message": "hi"},
             {"step_id": 2, "timestamp": "2026-01-01T00:00:01Z", "source": "agent", "model_name": "m", "message": "ok", "reasoning_content": "so",
              "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"a": 1}}], "observation": {"results": [{"source_call_id": "c", "content": "r"}]},
              "metrics": {"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 1, "cost_usd": 0.1}}]
    atif = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"}, "steps": steps,
            "final_metrics": {"total_prompt_tokens": 3, "total_completion_tokens": 2, "total_cost_usd": 0.1}}
    logs.append((formats.index("atif"), json.dumps(atif).encode()))
    yield from database_logs(formats)
    for number, content in logs:
        yield bytes([number]) + content
        for line in content.splitlines(True)[:60] if content.count(b"\n") > 1 else []:
            yield bytes([number]) + line


def database_logs(formats):
    """Databases as lines: the letter of a table and its row as JSON, as `assize_sessions::fuzzing` reads them."""
    source = (REPOSITORY / "crates/assize-sessions/src/fuzzing.rs").read_text()
    for agent in ("opencode", "goose"):
        tables = re.search(rf"const {agent.upper()}:.*?= &\[(.*?)\n\];", source, re.S)[1]
        connection = sqlite3.connect(REPOSITORY / f"crates/assize-sessions/tests/logs/{agent}.db")
        lines = []
        for letter, table, columns in re.findall(r"b'(\w)',\s*\"(\w+)\",\s*\"(.*?)\"", re.sub(r"\\\n\s*", "", tables), re.S):
            known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            wanted = ", ".join(column if column in known else "NULL" for column in columns.split(", "))
            rows = connection.execute(f"SELECT {wanted} FROM {table}").fetchall() if known else []
            lines += [letter + json.dumps([unpacked(cell) for cell in row]) for row in rows]
        number = bytes([formats.index(agent)])
        yield number + "\n".join(lines).encode()
        yield from (number + "\n".join([lines[0], line]).encode() for line in lines[1:])


def unpacked(cell):
    """JSON in a column stands as it is, so that mutations keep it JSON."""
    try:
        value = json.loads(cell)
    except (TypeError, ValueError):
        return cell
    return value if isinstance(value, (dict, list)) else cell


def mcp_messages():
    message = lambda **parts: json.dumps({"jsonrpc": "2.0", "id": 1, **parts}).encode()
    tool = {"name": "find files", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    contents = [{"type": "text", "text": "t"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}, {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
                {"type": "resource_link", "uri": "file:///a", "name": "a"}]
    listed = message(result={"tools": [tool, {**tool, "name": "other"}], "nextCursor": "2"})
    called = message(result={"content": contents, "structuredContent": {"a": 1}, "isError": True})
    yield listed
    yield called
    yield from (message(result={"content": [content]}) for content in contents)
    yield message(error={"code": -32601, "message": "no", "data": {"a": 1}})
    yield message(result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    yield b"event: message\nid: 1\ndata: " + listed + b"\n\ndata: " + called + b"\n\n"
    yield b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}'
    yield message(method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}})
    for name, arguments in (("check", {"suite": "."}), ("compare", {"suite": "a/assize.yaml", "run": "last", "against": "20260101T000000-ab"}),
                            ("show", {"suite": ".", "run": "last", "position": 0}), ("run", {"suite": ".", "repetitions": 1, "modes": ["a"], "scenarios": ["b"]})):
        yield message(method="tools/call", params={"name": name, "arguments": arguments})


def checks():
    rules = {
        "checks": [{"output": {"contains": "a"}, "id": "x", "weight": 2, "required": False}, {"not": {"output": {"matches": "sum is \\d+"}}}, {"output": {"equals": "42"}},
                   {"output": {"json": {"answer": 42, "unit": "km"}}}, {"output": {"path": {"$.answer": 42, "$.unit": {"matches": "^k?m$"}}}},
                   {"output": {"schema": {"type": "object", "required": ["answer"]}}}, {"tool": {"called": "Bash", "with": {"command": {"matches": "t"}, "$.e[*].new": "r"}, "at_most": 5}},
                   {"tool": {"order": ["Read", "Bash"]}}, {"tool": {"only": ["Read"]}}, {"limit": {"tokens_total": 200000, "cost_usd": 1.5, "wall_ms": 60000, "turns": 3}},
                   {"file": {"path": "a.py", "exists": True}}, {"file": {"path": "a.json", "schema": {"type": "object"}}}, {"changed": {"only": ["*.py"]}},
                   {"command": {"run": "true", "exit": 0, "timeout_ms": 60000, "in": "host", "files": {"a": "b"}}}],
        "rubric": {"instructions": "i", "criteria": [{"id": "a", "description": "d"}, {"id": "b", "description": "d", "scale": [1, 5], "pass": ">= 4", "weight": 2}]},
        "outputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}, "required": ["a"], "$defs": {"x": {"type": "null"}}},
    }
    answer = json.dumps({"verdicts": [{"id": "a", "pass": True, "rationale": "r"}, {"id": "b", "score": 4, "rationale": "r"}]})
    for text in (answer, f"```json\n{answer}\n```", "{}"):
        yield json.dumps(rules).encode() + b"\0" + text.encode()
    for key, value in rules.items():
        yield json.dumps({key: value}).encode() + b"\0" + answer.encode()
    yield from (json.dumps({"checks": [check]}).encode() for check in rules["checks"])


def plugin_messages():
    result = {"jsonrpc": "2.0", "id": 1}
    texts = [literal for literal in literals(REPOSITORY / "crates/assize-plugins/src/protocol.rs")]
    yield json.dumps({**result, "error": {"code": -32000, "message": "no", "data": {"kind": "service", "retryable": True}}}).encode()
    for run in files([f"{RUNS}/*.jsonl", "crates/assize/tests/fixtures/runs-0.1/*/show-0.json"]):
        for line in run.read_text().splitlines()[:1] if run.suffix == ".jsonl" else [run.read_text()]:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            yield json.dumps({**result, "result": value}).encode()
            yield json.dumps({**result, "result": value.get("trace", value)}).encode()
    yield json.dumps({**result, "result": {"success": True, "score": 0.5, "checks": [{"id": "a", "passed": True}]}}).encode()
    yield json.dumps({**result, "result": {"text": "hi", "tokens": {"input": 1, "output": 2}, "costUsd": 0.1}}).encode()
    for text in texts:
        yield json.dumps({"jsonrpc": "2.0", "method": text.decode(errors="replace"), "params": {"level": "info", "message": "x", "at": 1}}).encode()
        yield json.dumps({**result, "method": text.decode(errors="replace"), "params": {}}).encode()


def prices():
    rates = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_read_input_token_cost": 1e-7, "litellm_provider": "x", "mode": "chat",
             "input_cost_per_token_above_200k_tokens": 2e-6, "cache_creation_input_token_cost": 1e-6}
    yield json.dumps({"m": rates, "other/m": rates}).encode()
    yield json.dumps({"service": {"models": {"m": {"cost": {"input": 1, "output": 2.5, "cache_read": 0.1, "cache_write": 1}}}}}).encode()


MADE = {
    "suite_files": lambda: [*fenced("yaml", "toml", "json")],
    "data_sets": lambda: [*fenced("csv", "jsonl", "yaml"), b"id,input,expected\na,b,c\n", b'input,"a ""b"""\n"x\ny",z\n'],
    "gates": lambda: [literal for literal in literals(REPOSITORY / "crates/assize-report/src/gate/parse.rs")],
    "prices": prices,
    "mcp": lambda: [b'{"a":{"command":"x","args":["1"],"env":{"K":"v"}},"b":{"type":"http","url":"https://h/p","headers":{"A":"b"}}}',
                    b'{"a":{"command":["x","{suite}/y"],"type":"stdio"},"b":{"url":"http://127.0.0.1:1/"}}'],
    "wire": wire,
    "run_directory": lambda: [*leftovers(), *stored_runs(["rows.jsonl", "traces/index.jsonl", "traces/traces.zst"])],
    "stored_run": lambda: [seed for first in ("rows.jsonl", "runs.jsonl", "scores.jsonl")
                           for seed in stored_runs(["manifest.json", first, "traces/index.jsonl", "traces/traces.zst"])],
    "mcp_messages": mcp_messages,
    "checks": checks,
    "plugin_messages": plugin_messages,
    "session_logs": session_logs,
    "secrets": lambda: ["hunter22\nthe hunter22 of".encode(), "p@ss wörd/\"2\"\n<&>".encode(), b"abcdefghij\nsk-ant-api03-abcdefghijklmnopqrstuvwxyz",
                        b"a/b+c=d%20e\nAKIAIOSFODNN7EXAMPLE -----BEGIN RSA PRIVATE KEY-----\nM\n-----END RSA PRIVATE KEY-----"],
}


def corpus(target):
    """The corpus in fuzz/corpus, with what was kept and found before and what the repository has."""
    place = FUZZ / "corpus" / target
    place.mkdir(parents=True, exist_ok=True)
    seeds = [file.read_bytes() for file in files(SEEDS.get(target, []))]
    seeds += [line for file in files(LINES.get(target, [])) for line in file.read_bytes().splitlines()[:100]]
    seeds += MADE.get(target, list)()
    packed = KEPT / f"{target}.tar.xz"
    if packed.exists():
        with tarfile.open(packed) as archive:
            seeds += [archive.extractfile(member).read() for member in archive if member.isfile()]
    seeds += [file.read_bytes() for file in sorted(FOUND.glob(f"{target}-*"))]
    for seed in seeds:
        if 0 < len(seed) <= LENGTHS[target]:
            (place / f"seed-{hashlib.sha1(seed).hexdigest()[:16]}").write_bytes(seed)
    return place


def dictionary(target):
    words = set() if target in ("gates", "secrets") else set(JSON)
    for file in files(WORDS[target]):
        text = file.read_text()
        if file.suffix == ".json":
            words |= {word for word in re.findall(r'"([\w./:-]{2,40})"', text) if not word.startswith("#")}
            continue
        text = text.split("#[cfg(test)]")[0]
        words |= set(re.findall(r'"([ -!#-\[\]-~]{1,40})"', text))
        for name in re.findall(r"^\s+(?:pub(?:\([a-z]+\))? )?([a-z][a-z_]{1,30}):", text, re.M):
            words |= {name, re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)}
        words |= {name.lower() for name in re.findall(r"^\s+([A-Z]\w{1,30})(?:,| \{|\()", text, re.M)}
    place = FUZZ / "dictionaries"
    place.mkdir(exist_ok=True)
    words = {word for word in words if len(word) <= 24 and word.count(" ") <= 1} if target == "gates" else words
    escaped = ("".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode()) for word in sorted(words))
    (place / target).write_text("".join(f'"{word}"\n' for word in escaped))
    return place / target


# One target until its end.

def processor_seconds(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return None


class Campaign:
    stopping = False

    def __init__(self, target, options):
        self.target, self.options = target, options
        self.place = REACHED / f"{target}.json"
        self.executions = self.coverage = self.features = self.spent = self.grown_at = 0
        self.finds, self.build = [], ""
        if self.place.exists():
            self.__dict__.update(json.loads(self.place.read_text()))
        self.before = (self.executions, self.spent)

    def store(self):
        self.place.parent.mkdir(exist_ok=True)
        kept = {name: getattr(self, name) for name in ("executions", "coverage", "features", "spent", "grown_at", "finds", "build")}
        temporary = self.place.with_suffix(".new")
        temporary.write_text(json.dumps(kept))
        temporary.replace(self.place)

    def least(self):
        return self.options.executions // (10 if self.target in WRITING else 1)

    def still(self):
        return (self.spent - self.grown_at) / 60

    def is_done(self):
        if self.options.minutes:
            return self.spent - self.before[1] >= 60 * self.options.minutes
        return self.still() >= self.options.still and self.executions >= self.least()

    def run(self):
        found = False
        while not (found or self.stopping or self.is_done()):
            found = self.go_on()
        self.store()
        return self

    def go_on(self):
        """Runs the fuzzer until it is done, stopped, or has found something, which is true."""
        artifacts = FUZZ / "artifacts" / self.target
        artifacts.mkdir(parents=True, exist_ok=True)
        executable = program(self.target)
        build = hashlib.sha256(executable.read_bytes()).hexdigest()[:16]
        if build != self.build:
            # Another program has other edges: its coverage cannot be compared, so its ten minutes begin anew.
            self.build, self.coverage, self.features, self.grown_at = build, 0, 0, self.spent
        self.before = (self.executions, self.spent)
        self.artifact = None
        # Where files are written, in memory.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix=f"assize-fuzz-{self.target}-", dir=memory) as place:
            child = subprocess.Popen(
                [executable, corpus(self.target), f"-artifact_prefix={artifacts}/", f"-timeout={LONGEST}", "-rss_limit_mb=2048",
                 f"-max_len={LENGTHS[self.target]}", "-reload=0", f"-report_slow_units={LONGEST}", "-print_final_stats=1", f"-dict={dictionary(self.target)}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", cwd=place, env=dict(os.environ, TMPDIR=place))
            watcher = threading.Thread(target=self.watch, args=(child,), daemon=True)
            watcher.start()
            for line in child.stderr:
                self.read(line)
            code = child.wait()
            watcher.join()
        if self.artifact and "timeout-" in self.artifact and not self.hangs(executable, self.artifact):
            os.unlink(self.artifact)
            return False
        if self.artifact or code not in (0, -signal.SIGTERM, 72):
            self.finds.append(Path(self.artifact).name if self.artifact else f"ended with {code}")
            self.store()
            return True
        return False

    def hangs(self, executable, artifact):
        """Whether an input takes long by itself, and not because the machine was busy."""
        child = subprocess.Popen([executable, artifact], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while child.poll() is None:
            if (processor_seconds(child.pid) or 0) > HANGS:
                child.kill()
                child.wait()
                return True
            time.sleep(0.2)
        return False

    def watch(self, child):
        rests, stored = False, time.monotonic()
        while child.poll() is None:
            should_rest = bool(self.options.rest_while) and os.path.exists(self.options.rest_while)
            if should_rest != rests:
                rests = should_rest
                child.send_signal(signal.SIGSTOP if rests else signal.SIGCONT)
            self.spent = max(self.spent, self.before[1] + (processor_seconds(child.pid) or 0))
            if (self.is_done() or self.stopping) and not rests:
                child.terminate()
                child.wait()
                return
            if self.stopping and rests:
                child.send_signal(signal.SIGCONT)
                rests = False
                continue
            if time.monotonic() - stored > 10:
                self.store()
                stored = time.monotonic()
            time.sleep(0.5)

    def read(self, line):
        status = re.match(r"#(\d+)\s+\w+.*?cov: (\d+) ft: (\d+)", line)
        total = re.match(r"stat::number_of_executed_units:\s*(\d+)", line)
        if status or total:
            self.executions = max(self.executions, self.before[0] + int((status or total)[1]))
        if status:
            self.features = max(self.features, int(status[3]))
            if int(status[2]) > self.coverage:
                self.coverage, self.grown_at = int(status[2]), self.spent
        elif "Test unit written to" in line:
            self.artifact = line.split()[-1]
        elif "panicked at" in line or "ERROR: libFuzzer" in line:
            print(f"{self.target}: {line.strip()}", file=sys.stderr, flush=True)

    def row(self):
        finds = len(self.finds) or "none"
        return f"| `{self.target}` | {self.executions:,} | {self.coverage:,} | {self.spent / 60:.1f} | {self.still():.1f} | {finds} |"


def table(options, targets):
    campaigns = [Campaign(target, options) for target in targets]
    lines = ["| target | executions | coverage (edges) | processor minutes | of these without growth | finds |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [campaign.row() for campaign in campaigns]
    lines.append(f"| all | {sum(campaign.executions for campaign in campaigns):,} | | {sum(campaign.spent for campaign in campaigns) / 60:.0f} | | "
                 f"{sum(len(campaign.finds) for campaign in campaigns) or 'none'} |")
    short = [f"`{campaign.target}`" for campaign in campaigns if not campaign.is_done()]
    said = f"Not done yet: {', '.join(short)}." if short else "Every target is done: ten minutes without growth, and the executions that were asked for."
    return "\n".join(lines) + f"\n\n{said}\n"


def write_table(text):
    page = PAGE.read_text()
    begin, end = (page.index(mark) for mark in MARKS)
    PAGE.write_text(f"{page[:begin]}{MARKS[0]}\n{text}{page[end:]}")


def keep(targets):
    """Merges each corpus into the fewest inputs with its coverage, and packs those that are small."""
    KEPT.mkdir(exist_ok=True)
    for target in targets:
        with tempfile.TemporaryDirectory() as small:
            artifacts = FUZZ / "artifacts" / target
            artifacts.mkdir(parents=True, exist_ok=True)
            subprocess.run([program(target), "-merge=1", f"-max_len={LENGTHS[target]}", f"-artifact_prefix={artifacts}/", small, corpus(target)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=dict(os.environ, TMPDIR="/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"), check=True)
            inputs = sorted(Path(small).iterdir(), key=lambda file: (file.stat().st_size, file.name))
            taken, size = [], 0
            for file in inputs:
                size += file.stat().st_size
                if size > 256 << 10:
                    break
                taken.append(file)
            with tarfile.open(KEPT / f"{target}.tar.xz", "w:xz", preset=9) as archive:
                for file in sorted(taken, key=lambda file: file.name):
                    entry = tarfile.TarInfo(file.name[:12])
                    entry.size = file.stat().st_size
                    archive.addfile(entry, io.BytesIO(file.read_bytes()))
            print(f"{target}: {len(taken)} of {len(inputs)} inputs, {(KEPT / f'{target}.tar.xz').stat().st_size:,} bytes", flush=True)


def stop(*_):
    Campaign.stopping = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--still", type=float, default=10)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--rest-while", metavar="FILE", help="rests while this file exists")
    parser.add_argument("--again", action="store_true", help="forgets what was reached before")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    everything = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
    targets = options.targets or everything
    if options.table:
        text = table(options, everything)
        write_table(text) if options.write else print(text, end="")
        return
    if options.keep:
        return keep(targets)
    if not options.no_build:
        build(targets)
    for target in targets if options.again else []:
        (REACHED / f"{target}.json").unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    waiting, found, lock = list(targets), [], threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting or Campaign.stopping:
                    return
                target = waiting.pop(0)
            known = len(Campaign(target, options).finds)
            campaign = Campaign(target, options).run()
            with lock:
                found.extend(campaign.finds[known:])
                print(campaign.row(), flush=True)

    workers = [threading.Thread(target=work) for _ in range(options.at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        # In short waits, so that signals are seen.
        while worker.is_alive():
            worker.join(0.5)
    print(f"\n{table(options, everything)}", end="")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
