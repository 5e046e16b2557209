"""Exports against the real things: Phoenix as a receiver of spans, Harbor's validator of ATIF, DuckDB over rows. Loopback only."""

import json
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from support import CACHE, REPOSITORY, assize, environment, free_port

PHOENIX = CACHE / "phoenix" / "bin"
HARBOR = CACHE / "harbor" / "bin" / "python"

# A session with everything that a trace holds, as the tests of the formats have it.
TIME = "2026-11-02T09:00:0{}Z"


def trace():
    tokens = {"input": 3, "output": 74, "reasoning": 10, "cacheRead": 12000, "cacheWrite": 900, "total": 12987, "active": 987}
    return {
        "sessionId": "machine-1",
        "turns": [],
        "summary": {"totalTurns": 1, "totalToolCalls": 2, "totalTokens": tokens, "totalDuration": 4000},
        "events": [
            {"type": "turn_boundary", "turnNumber": 0, "timestamp": TIME.format("0.000")},
            {"type": "reasoning", "content": "look first", "durationMs": 10, "tokenCount": 10, "timestamp": TIME.format("0.500"), "callRef": "m1"},
            {"type": "text_output", "content": "I look.", "tokenCount": None, "timestamp": TIME.format("0.600"), "callRef": "m1"},
            {"type": "tool_call", "name": "Task", "input": "count", "output": {"lines": 3}, "durationMs": 2000, "success": True,
             "timestamp": TIME.format("1.000"), "callId": "t1", "callRef": "m1"},
            {"type": "tool_call", "name": "Read", "input": {"path": "a"}, "output": None, "durationMs": 100, "success": False, "error": "no file",
             "timestamp": TIME.format("2.000"), "agentId": "t1", "parentEventId": "t1", "callId": "t2", "callRef": "m2"},
            {"type": "error", "message": "429", "recoverable": True, "timestamp": TIME.format("3.000")},
        ],
        "modelCalls": [
            {"id": "m1", "model": "claude-x", "api": "anthropic-messages", "side": False, "startedAt": TIME.format("0.000"), "ttftMs": 300,
             "durationMs": 900, "tokens": tokens, "costUsd": 0.009, "costSource": "computed", "stopReason": "tool_use", "status": 200},
            {"id": "m2", "model": "claude-x", "side": False, "agentId": "t1", "startedAt": TIME.format("1.100"), "ttftMs": None, "durationMs": 800,
             "tokens": {"input": 20, "output": 5, "total": 25}, "costUsd": 0.001, "costSource": "computed"},
        ],
    }


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="assize-export-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        assize(cls.directory, "init", "demo")
        cls.suite = cls.directory / "demo"
        assize(cls.suite, "run", "-n", "1", "-q", "--skip-warmup")
        (cls.suite / "trace.json").write_text(json.dumps(trace()))


@unittest.skipUnless((PHOENIX / "phoenix").exists(), "Phoenix is not installed: tests/machines/install.sh phoenix")
class Phoenix(ExportTest):
    """Arize Phoenix on the loopback, in a directory of its own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        port = free_port()
        cls.address = f"http://127.0.0.1:{port}"
        settings = environment(
            HOME=str(cls.directory), PHOENIX_WORKING_DIR=str(cls.directory / "phoenix"), PHOENIX_HOST="127.0.0.1",
            PHOENIX_PORT=str(port), PHOENIX_GRPC_PORT=str(free_port()), PHOENIX_TELEMETRY_ENABLED="false",
        )
        (cls.directory / "phoenix").mkdir()
        log = open(cls.directory / "phoenix.log", "w")
        cls.addClassCleanup(log.close)
        server = subprocess.Popen([PHOENIX / "phoenix", "serve"], env=settings, stdout=log, stderr=log)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        end = time.monotonic() + 300
        while time.monotonic() < end and server.poll() is None:
            try:
                urllib.request.urlopen(cls.address + "/healthz", timeout=5)
                return
            except OSError:
                time.sleep(1)
        raise AssertionError("Phoenix did not start: " + (cls.directory / "phoenix.log").read_text()[-2000:])

    def spans(self, project, count):
        """The spans of a project, once so many have arrived."""
        end = time.monotonic() + 60
        found = []
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.address}/v1/projects/{project}/spans?limit=1000") as answer:
                    found = json.load(answer)["data"]
            except urllib.error.HTTPError:
                found = []
            if len(found) >= count:
                return found
            time.sleep(1)
        self.fail(f"{len(found)} of {count} spans arrived in `{project}`")

    def send(self, *arguments):
        told = assize(self.suite, "export", "otlp", *arguments, "--endpoint", self.address).stderr
        return int(re.search(r"(\d+) spans of", told).group(1))

    def test_a_run_arrives_with_its_verdicts(self):
        sent = self.send("last", "--dialect", "openinference")
        spans = self.spans("quickstart", sent)
        self.assertEqual(len(spans), sent)
        roots = [span for span in spans if span["parent_id"] is None]
        self.assertEqual(len(roots), 16, "one trace per trial")
        ids = {span["context"]["span_id"] for span in spans}
        self.assertTrue(all(span["parent_id"] in ids for span in spans if span["parent_id"]))
        self.assertEqual({span["span_kind"] for span in roots}, {"AGENT"})
        for root in roots:
            results = [event for event in root["events"] if event["name"] == "gen_ai.evaluation.result"]
            labels = {event["attributes"]["gen_ai.evaluation.name"]: event["attributes"]["gen_ai.evaluation.score.label"] for event in results}
            self.assertEqual(labels["success"], root["attributes"]["assize.outcome"])
        # A second export is the same trace again, not another one.
        self.send("last", "--dialect", "openinference")
        time.sleep(5)
        self.assertEqual(len(self.spans("quickstart", sent)), sent)

    def test_a_session_has_its_tokens_and_tools_in_every_dialect(self):
        sent = self.send("trace.json", "--dialect", "openinference", "--content")
        arrived = self.spans("assize", sent)
        # The agent and its subagent, two model calls, two tools.
        self.assertEqual(len(arrived), 6)
        spans = {span["name"]: span for span in arrived}
        calls = {span["attributes"]["llm.token_count.prompt"]: span for span in arrived if span["span_kind"] == "LLM"}
        self.assertEqual(sorted(calls), [20, 12903])
        first = calls[12903]["attributes"]
        self.assertEqual((first["llm.token_count.completion"], first["llm.token_count.prompt_details.cache_read"]), (84, 12000))
        self.assertEqual(first["llm.cost.total"], 0.009)
        self.assertEqual(spans["execute_tool Read"]["status_code"], "ERROR")
        self.assertEqual(spans["execute_tool Task"]["span_kind"], "TOOL")
        for number, dialect in enumerate(("v1.41", "latest"), start=1):
            other = trace() | {"sessionId": f"machine-{dialect}"}
            (self.suite / "other.json").write_text(json.dumps(other))
            self.assertEqual(self.send("other.json", "--dialect", dialect), sent)
            arrived = self.spans("default", sent * number)
            own = [span for span in arrived if span["attributes"].get("gen_ai.conversation.id") == other["sessionId"]]
            # Phoenix knows the conventions and translates them.
            prompts = sorted(span["attributes"]["llm.token_count.prompt"] for span in own if span["span_kind"] == "LLM")
            self.assertEqual(prompts, [20, 12903])


@unittest.skipUnless(HARBOR.exists(), "Harbor is not installed: tests/machines/install.sh harbor")
class Harbor(ExportTest):
    """The models that Harbor itself validates trajectories with."""

    VALIDATE = """
import json, sys
from harbor.models.trajectories import Trajectory
for path in sys.argv[1:]:
    trajectory = Trajectory.model_validate(json.load(open(path)))
    print(len(trajectory.steps), len(trajectory.subagent_trajectories or []))
"""

    def test_every_trajectory_is_valid(self):
        assize(self.suite, "export", "atif", "last", "--out", "trajectories")
        assize(self.suite, "export", "atif", "trace.json", "--out", "trajectories/trace.atif.json")
        files = sorted((self.suite / "trajectories").iterdir())
        self.assertEqual(len(files), 17)
        done = subprocess.run([HARBOR, "-c", self.VALIDATE, *files], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(done.stdout.splitlines()[-1], "2 1", "the call and the error; one subagent")


@unittest.skipUnless((PHOENIX / "python").exists(), "DuckDB is not installed: tests/machines/install.sh phoenix")
class DuckDb(ExportTest):
    """The queries of docs/exporting.md."""

    def test_rows_are_read_as_the_document_shows(self):
        document = (REPOSITORY / "docs" / "exporting.md").read_text()
        queries = re.findall(r"```sql\n(.*?)```", document, re.S)
        self.assertEqual(len(queries), 2)
        program = "import duckdb, sys, json\nfor query in sys.argv[1:]:\n    print(json.dumps(duckdb.sql(query).fetchall()))"
        done = subprocess.run([PHOENIX / "python", "-c", program, *queries], cwd=self.suite, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        modes, checks = map(json.loads, done.stdout.splitlines())
        self.assertEqual([row[:2] for row in modes], [["plain", 8], ["with-docs", 8]])
        self.assertTrue(all(len(row) == 3 for row in checks))


if __name__ == "__main__":
    unittest.main()
