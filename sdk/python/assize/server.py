"""The loop: requests from stdin, answers to stdout, as many at once as come."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, BinaryIO, Callable

from .errors import BAD_PARAMS, CANCELLED, FAILED, INTERNAL, RpcError, ServiceError

if TYPE_CHECKING:
    from .plugin import Plugin

PROTOCOL_VERSION = 1

#: Plain functions may wait for something; this many may do so at once.
_THREADS = 64

_request: contextvars.ContextVar[Any] = contextvars.ContextVar("assize_request", default=None)
_out: BinaryIO | None = None
_out_lock = threading.Lock()


class Call:
    """A function and its arguments, not called yet, and what to do when it is over."""

    def __init__(
        self, function: Callable[..., Any], *arguments: Any, after: Callable[[], None] = lambda: None
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.after = after

    async def result(self, pool: ThreadPoolExecutor) -> Any:
        try:
            if inspect.iscoroutinefunction(self.function):
                return await self.function(*self.arguments)
            context = contextvars.copy_context()
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(pool, context.run, self.function, *self.arguments)
            return await result if inspect.isawaitable(result) else result
        finally:
            self.after()


def serve(plugin: Plugin) -> None:
    global _out
    # Messages keep stdout for themselves; whatever else is printed, also by programs started here, goes to stderr.
    sys.stdout.flush()
    _out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    asyncio.run(_Server(plugin).run())
    # Threads that still wait for something must not keep the process.
    sys.stderr.flush()
    os._exit(0)


def notify(method: str, params: dict[str, Any]) -> None:
    _send({"jsonrpc": "2.0", "method": method, "params": params})


def current_request() -> Any:
    return _request.get()


def _line(message: dict[str, Any]) -> bytes:
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_text)
    return text.encode() + b"\n"


def _as_text(value: Any) -> Any:
    """What JSON has no form for. A time without a zone is taken for a local one."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _send(message: dict[str, Any]) -> None:
    _write(_line(message))


def _write(line: bytes) -> None:
    if _out is not None:
        with _out_lock:
            view = memoryview(line)
            while view:
                view = view[_out.write(view) :]


class _Server:
    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.underway: dict[Any, asyncio.Task[None]] = {}
        self.hooks: set[Any] = set()
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="assize")

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes] = asyncio.Queue()

        def read() -> None:
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

        threading.Thread(target=read, daemon=True).start()
        while line := await lines.get():
            self.hear(line)
        for task in self.underway.values():
            task.cancel()

    def hear(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            method, params = message["method"], message.get("params") or {}
        except (ValueError, KeyError, TypeError, AttributeError):
            print(f"assize: not a message: {line[:200]!r}", file=sys.stderr)
            return
        if "id" in message:
            task = asyncio.ensure_future(self.answer(message["id"], method, params))
            self.underway[message["id"]] = task
            if method.startswith("hooks/"):
                self.hooks.add(message["id"])
        elif method == "$/cancel" and isinstance(params, dict):
            self.cancel(params.get("id"))

    def cancel(self, id: Any) -> None:
        # Others wait for a hook to be over, so it is answered then. A thread cannot be stopped.
        if id in self.hooks:
            return
        # Answered here: a task that has not begun yet is not even told that it was cancelled.
        if task := self.underway.pop(id, None):
            task.cancel()
            _send(_failure(id, RpcError(CANCELLED, "cancelled")))

    async def answer(self, id: Any, method: str, params: Any) -> None:
        _request.set(id)
        try:
            line = _line({"jsonrpc": "2.0", "id": id, "result": await self.result(method, params)})
        except Exception as error:
            line = _line(_failure(id, error))
        self.hooks.discard(id)
        if self.underway.pop(id, None):
            _write(line)

    async def result(self, method: str, params: Any) -> Any:
        if not isinstance(params, dict):
            raise RpcError(BAD_PARAMS, "expected named parameters")
        if method == "initialize":
            self.plugin.options = params.get("options") or {}
            info = {"name": self.plugin.name, "version": self.plugin.version}
            return {"protocolVersion": PROTOCOL_VERSION, "info": info, "capabilities": self.plugin.offer()}
        call = self.plugin.call(method, params)
        return await call.result(self.pool)


def _failure(id: Any, error: Exception) -> dict[str, Any]:
    described: dict[str, Any] = {"code": INTERNAL, "message": f"{type(error).__name__}: {error}"}
    if isinstance(error, RpcError):
        described = {"code": error.code, "message": str(error)}
    elif isinstance(error, ServiceError):
        known = {"fault": error.fault, "code": error.code, "partial": error.partial}
        data = {key: value for key, value in known.items() if value is not None}
        described = {"code": FAILED, "message": str(error), "data": data}
    else:
        traceback.print_exception(error)
    return {"jsonrpc": "2.0", "id": id, "error": described}
