"""The kit as a program: what it offers, answers and refuses."""

import asyncio
import json
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(KIT))

from assize import Collector, Hooks, Plugin  # noqa: E402

PLUGIN = """
import time
from assize import AgentError, Collector, Hooks, Plugin, Provider

plugin = Plugin("mine", version="1.0.0")

@plugin.collector("quick")
async def quick(result, scenario, mode, trace):
    print("printed")
    return [{"name": "a", "value": 1, "unit": "count"}]

@plugin.collector("slow")
def slow(result, scenario, mode, trace):
    time.sleep(60)

@plugin.collector("odd")
def odd(result, scenario, mode, trace):
    return [{"name": "odd", "value": float("nan"), "unit": "count"}]

class Agent(Provider):
    id = "agent"
    scope = "session"
    async def prompt(self, handle, text, timeout_ms):
        raise AgentError("gave up", code="tired")
    def create_session(self, params):
        plugin.log("creating")
        plugin.progress("half", 1, 2)
        raise TypeError("oops")

class Fixtures(Hooks):
    concurrent = True
    def before_run(self, context):
        return None

plugin.add(Agent(), Fixtures())
plugin.serve()
"""


class Conversation:
    """Asks a plugin in a process of its own."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PYTHONPATH": str(KIT)},
        )
        self.heard: list[dict] = []

    def say(self, text: str) -> None:
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, id, method: str, params) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def answer_to(self, id) -> dict:
        while True:
            for message in self.heard:
                if message.get("id") == id:
                    return message
            self.heard.append(json.loads(self.process.stdout.readline()))

    def end(self) -> str:
        self.process.stdin.close()
        self.process.wait(30)
        words = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return words


def collect(collector: str) -> dict:
    return {"collector": collector, "result": {}, "scenario": {}, "mode": "plain", "trace": None}


class Serving(unittest.TestCase):
    def setUp(self) -> None:
        self.plugin = Conversation(PLUGIN)
        self.addCleanup(lambda: self.plugin.process.poll() is None and self.plugin.end())

    def test_initialize_offers_what_is_served(self) -> None:
        self.plugin.ask(1, "initialize", {"protocolVersion": 1, "options": {}})
        offer = self.plugin.answer_to(1)["result"]
        self.assertEqual(offer["protocolVersion"], 1)
        self.assertEqual(offer["info"], {"name": "mine", "version": "1.0.0"})
        self.assertEqual(offer["capabilities"]["collectors"], [{"id": "quick"}, {"id": "slow"}, {"id": "odd"}])
        self.assertEqual(offer["capabilities"]["providers"][0]["scope"], "session")
        self.assertEqual(offer["capabilities"]["hooks"], {"events": ["beforeRun"], "concurrent": True})

    def test_a_slow_function_holds_up_no_other_and_can_be_cancelled(self) -> None:
        self.plugin.ask(1, "collector/collect", collect("slow"))
        self.plugin.ask(2, "collector/collect", collect("quick"))
        self.assertEqual(self.plugin.answer_to(2)["result"][0]["value"], 1)
        self.plugin.say(json.dumps({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}))
        self.assertEqual(self.plugin.answer_to(1)["error"]["code"], -32800)

    def test_errors_say_whose_fault_it_is(self) -> None:
        prompt = {"provider": "agent", "handle": {}, "text": "", "timeoutMs": 1}
        self.plugin.ask(1, "provider/prompt", prompt)
        error = {"code": -32000, "message": "gave up", "data": {"fault": "agent", "code": "tired"}}
        self.assertEqual(self.plugin.answer_to(1)["error"], error)
        self.plugin.ask(2, "provider/createSession", {"provider": "agent", "params": {}})
        self.assertEqual(self.plugin.answer_to(2)["error"], {"code": -32603, "message": "TypeError: oops"})
        told = {message["method"]: message["params"] for message in self.plugin.heard if "method" in message}
        self.assertEqual(told["$/log"]["message"], "creating")
        self.assertEqual(told["$/progress"], {"message": "half", "done": 1, "total": 2, "token": 2})

    def test_a_result_that_is_no_json_is_an_error(self) -> None:
        self.plugin.ask(1, "collector/collect", collect("odd"))
        self.assertEqual(self.plugin.answer_to(1)["error"]["code"], -32603)

    def test_what_is_not_served_is_refused_and_survived(self) -> None:
        self.plugin.say("no message")
        self.plugin.say("[1]")
        self.plugin.ask(1, "nobody/knows", {})
        self.plugin.ask(2, "collector/collect", collect("other"))
        self.plugin.ask(3, "collector/collect", {})
        self.plugin.ask(4, "collector/collect", [1])
        codes = [self.plugin.answer_to(id)["error"]["code"] for id in (1, 2, 3, 4)]
        self.assertEqual(codes, [-32601, -32602, -32602, -32602])

    def test_prints_go_to_stderr_and_the_end_of_stdin_is_the_end(self) -> None:
        self.plugin.ask(1, "collector/collect", collect("quick"))
        self.plugin.answer_to(1)
        self.assertIn("printed", self.plugin.end())
        self.assertEqual(self.plugin.process.returncode, 0)


class Registering(unittest.TestCase):
    def test_only_hooks_that_are_defined_are_offered(self) -> None:
        class Mine(Hooks):
            def after_mode(self, mode):
                return None

        self.assertEqual(Plugin("x").add(Mine()).offer()["hooks"]["events"], ["afterMode"])

    def test_an_object_that_is_none_of_the_contracts_is_refused(self) -> None:
        with self.assertRaises(TypeError):
            Plugin("x").add(object())

    def test_classes_and_decorators_end_in_the_same_place(self) -> None:
        class Words(Collector):
            id = "words"

            async def collect(self, result, scenario, mode, trace):
                return []

        plugin = Plugin("x").add(Words())
        call = plugin.call("collector/collect", {**collect("words")})
        self.assertEqual(asyncio.run(call.function(*call.arguments)), [])


if __name__ == "__main__":
    unittest.main()
