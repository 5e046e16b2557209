#!/usr/bin/env python3
"""A small MCP server for tests, with nothing but the standard library.

    server.py [MODE]          speaks on stdin and stdout
    server.py --http [PORT]   speaks streamable HTTP; prints its URL first. With TOKEN set it wants it as a bearer token.

Its tools answer, fail, die, hang and flood; ONLY names the one to offer. MODE makes the whole server misbehave: dead, silent, junk, many, twins,
endless, none, unwilling; `modern` knows only the revision of the protocol that has no `initialize`.
"""

import http.server
import json
import os
import subprocess
import sys
import time

ARGUMENTS = sys.argv[1:]
MODE = ARGUMENTS[0] if ARGUMENTS and not ARGUMENTS[0].startswith("--") else ""

PAGE = 8

TOOLS = {
    "lookup": ("Looks a word up in the glossary.", {"word": {"type": "string"}}),
    "variable": ("Tells the value of an environment variable.", {"name": {"type": "string"}}),
    "structured": ("Answers with structured content alone.", {}),
    "picture": ("Answers with a text and an image.", {}),
    "fail": ("Reports an error.", {}),
    "refuse": ("Is refused by the protocol.", {}),
    "ask": ("Asks the client something before it answers.", {}),
    "sleep": ("Takes ten minutes.", {}),
    "die": ("Ends the server.", {}),
    "strange": ("Answers something that is no result of a tool.", {}),
    "long": ("Answers a text of so many bytes.", {"bytes": {"type": "integer"}}),
    "notify": ("Tells so many things before it answers.", {"times": {"type": "integer"}}),
    "child": ("Starts a program of its own and tells its process id.", {}),
}


if os.environ.get("ONLY"):
    TOOLS = {os.environ["ONLY"]: TOOLS[os.environ["ONLY"]]}


def tool(name, about="", properties=None):
    properties = properties or {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": about, "inputSchema": schema}


def listed(params):
    if MODE == "many":
        return {"tools": [tool(f"tool-{number}") for number in range(500)]}
    if MODE == "twins":
        return {"tools": [tool("a.b"), tool("a/b")]}
    if MODE == "endless":
        return {"tools": [], "nextCursor": "more"}
    if MODE == "none":
        return {"tools": []}
    # In pages, as servers with many tools do. Not every client asks for the second.
    names, cursor = list(TOOLS), int(params.get("cursor", 0))
    page = {"tools": [tool(name, *TOOLS[name]) for name in names[cursor:cursor + PAGE]]}
    return {**page, "nextCursor": str(cursor + PAGE)} if cursor + PAGE < len(names) else page


def text(content, **more):
    return {"content": [{"type": "text", "text": content}], **more}


def called(name, arguments, say):
    if name == "lookup":
        return text(f"{arguments['word']}: a word of the test, in {os.getcwd()}")
    if name == "variable":
        return text(os.environ.get(arguments["name"], "not set"))
    if name == "structured":
        return {"content": [], "structuredContent": {"answer": 42}}
    if name == "picture":
        image = {"type": "image", "data": "AAAA" * 100, "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": "see"}, image]}
    if name == "fail":
        return text("there is no such thing", isError=True)
    if name == "ask":
        say({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"})
        answer = json.loads(sys.stdin.readline())
        return text(f"was answered {'roots' if 'result' in answer else 'an error'}")
    if name == "sleep":
        time.sleep(600)
    if name == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "strange":
        return {"surprise": True}
    if name == "long":
        return text("x" * arguments["bytes"])
    if name == "notify":
        note = {"level": "info", "data": "y" * 1000}
        for _ in range(arguments["times"]):
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": note})
        return text("told")
    if name == "child":
        return text(str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid))
    return None


def answer(message, say):
    """The answer to a request; None to a notification."""
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return None
    result = None
    if method == "initialize" and MODE not in ("modern", "unwilling"):
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "test", "version": "1"}}
    elif method == "server/discover" and MODE == "modern":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = listed(params)
    elif method == "tools/call":
        result = called(params["name"], params.get("arguments") or {}, say)
    if result is None:
        error = {"code": -32602, "message": f"`{params.get('name', method)}` is not for you"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    if MODE == "modern":
        result = {"resultType": "complete", **result}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def serve_stdio():
    def say(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    if MODE == "dead":
        sys.exit("cannot find the database")
    print("ready", file=sys.stderr, flush=True)
    # A line that is no message: clients are to skip it.
    print("Welcome to the test server", flush=True)
    for line in iter(sys.stdin.readline, ""):
        if MODE == "junk":
            print("<html>", flush=True)
        elif MODE != "silent":
            said = answer(json.loads(line), say)
            if said is not None:
                say(said)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind=None, body=b"", **headers):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        token = os.environ.get("TOKEN")
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            return self.reply(401, "text/plain", b"who are you?")
        message = json.loads(body)
        notes = []
        said = answer(message, notes.append)
        if said is None:
            return self.reply(202)
        method = message["method"]
        if method != "initialize" and self.headers.get("Mcp-Session-Id") != "s1":
            return self.reply(400, "text/plain", b"no session")
        session = {"Mcp_Session_Id": "s1"} if method == "initialize" else {}
        if method == "tools/call":
            events = "".join(f"event: message\ndata: {json.dumps(part)}\n\n" for part in [*notes, said])
            return self.reply(200, "text/event-stream", events.encode(), **session)
        self.reply(200, "application/json", json.dumps(said).encode(), **session)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)


def serve_http(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    # Clients that hang up are part of the tests.
    server.handle_error = lambda *_: None
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    server.serve_forever()


if ARGUMENTS[:1] == ["--http"]:
    serve_http(int(ARGUMENTS[1]) if len(ARGUMENTS) > 1 else 0)
else:
    serve_stdio()
