"""What a plugin serves, and how it is registered: by decorators or as objects."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any, Callable, Literal, TypeVar

from . import server
from .contracts import Analyzer, Collector, Evaluator, Hooks, ModeResolver, Provider, Runner, Scorer
from .errors import BAD_PARAMS, UNKNOWN_METHOD, RpcError

F = TypeVar("F", bound=Callable[..., Any])

HOOKS = {
    "beforeRun": "before_run",
    "beforeMode": "before_mode",
    "beforeScenario": "before_scenario",
    "afterScenario": "after_scenario",
    "afterMode": "after_mode",
    "afterRun": "after_run",
}


class Plugin:
    """A program that serves contracts. Register what it serves, then call :meth:`serve`."""

    def __init__(self, name: str, version: str = "0.0.0", concurrency: int | Literal["any"] | None = None) -> None:
        self.name = name
        self.version = version
        self.concurrency = concurrency
        #: What the suite gives to the plugin; filled before anything is called.
        self.options: dict[str, Any] = {}
        self.providers: dict[str, Provider] = {}
        self.scorers: dict[str, Callable[..., Any]] = {}
        self.collectors: dict[str, Callable[..., Any]] = {}
        self.analyzers: dict[str, Callable[..., Any]] = {}
        self.runners: dict[str, tuple[dict[str, str], Callable[..., Any]]] = {}
        self.evaluators: dict[str, tuple[list[str], Callable[..., Any], Callable[..., Any]]] = {}
        self.resolve: Callable[..., Any] | None = None
        self.hooks: dict[str, Callable[..., Any]] = {}
        self.concurrent_hooks = False
        #: Variables as they were before a provider began to serve a mode.
        self._before: dict[str, dict[str, str | None]] = {}

    def add(self, *served: object) -> Plugin:
        """Registers objects of the classes in :mod:`assize.contracts`."""
        for each in served:
            self._add(each)
        return self

    def _add(self, each: object) -> None:
        if isinstance(each, Provider):
            self.providers[each.id] = each
        elif isinstance(each, Scorer):
            self.scorers[each.id] = each.evaluate
        elif isinstance(each, Collector):
            self.collectors[each.id] = each.collect
        elif isinstance(each, Analyzer):
            self.analyzers[each.name] = each.analyze
        elif isinstance(each, Runner):
            self.runners[each.id] = ({"type": each.type, "version": each.version}, each.execute)
        elif isinstance(each, Evaluator):
            self.evaluators[each.id] = (list(each.metrics), each.evaluate, each.evaluate_scenario)
        elif isinstance(each, ModeResolver):
            self.resolve = each.resolve
        elif isinstance(each, Hooks):
            self.concurrent_hooks = each.concurrent
            for event, method in HOOKS.items():
                if getattr(type(each), method) is not getattr(Hooks, method):
                    self.hooks[event] = getattr(each, method)
        else:
            raise TypeError(f"{type(each).__name__} is none of the contracts")

    def scorer(self, id: str) -> Callable[[F], F]:
        """``def score(scenario, context)``, or with the suite's settings as a third parameter"""
        return _into(self.scorers, id)

    def collector(self, id: str) -> Callable[[F], F]:
        """``def collect(result, scenario, mode, trace)``"""
        return _into(self.collectors, id)

    def analyzer(self, name: str) -> Callable[[F], F]:
        """``def analyze(trace, scenario, mode)``"""
        return _into(self.analyzers, name)

    def runner(self, id: str, type: str, version: str = "0") -> Callable[[F], F]:
        """``def execute(task, config)``, or with the cell (mode, model, seed …) as a third parameter"""

        def register(function: F) -> F:
            self.runners[id] = ({"type": type, "version": version}, function)
            return function

        return register

    def evaluator(self, id: str, metrics: list[str]) -> Callable[[F], F]:
        """``def evaluate(run, task)``, or with the configuration as a third parameter; also called with whole chains,
        whose task has ``steps``"""

        def register(function: F) -> F:
            self.evaluators[id] = (metrics, function, function)
            return function

        return register

    def mode_resolver(self, function: F) -> F:
        """``def resolve(mode)``"""
        self.resolve = function
        return function

    def hook(self, event: str) -> Callable[[F], F]:
        """``def hook(context)``, or ``def hook(mode)`` for the mode hooks; ``event`` as in ``beforeScenario``"""
        if event not in HOOKS:
            raise ValueError(f"unknown hook {event!r}, expected one of {', '.join(HOOKS)}")
        return _into(self.hooks, event)

    def log(self, message: str, level: str = "info") -> None:
        """A line for the plugin's log in the run directory."""
        server.notify("$/log", {"level": level, "message": message})

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """How far the current call has come."""
        known = {"message": message, "done": done, "total": total, "token": server.current_request()}
        server.notify("$/progress", {key: value for key, value in known.items() if value is not None})

    def serve(self) -> None:
        """Answers requests until stdin is closed. What is printed goes to stderr, which is the plugin's log."""
        server.serve(self)

    def offer(self) -> dict[str, Any]:
        """Everything that is served, as ``initialize`` tells it."""
        offer: dict[str, Any] = {
            "providers": [_provider_offer(provider) for provider in self.providers.values()],
            "scorers": [{"id": id} for id in self.scorers],
            "collectors": [{"id": id} for id in self.collectors],
            "analyzers": [{"name": name} for name in self.analyzers],
            "runners": [{"id": id, **about} for id, (about, _) in self.runners.items()],
            "evaluators": [{"id": id, "metrics": metrics} for id, (metrics, _, _) in self.evaluators.items()],
        }
        if self.resolve:
            offer["modeResolver"] = {}
        if self.hooks:
            offer["hooks"] = {"events": list(self.hooks), "concurrent": self.concurrent_hooks}
        if self.concurrency is not None:
            offer["concurrency"] = self.concurrency
        return {kind: offered for kind, offered in offer.items() if offered or isinstance(offered, dict)}

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """What answers a request: a value or something to await. Raises for what is not served."""
        find = _METHODS.get(method)
        if find is None:
            raise RpcError(UNKNOWN_METHOD, f"there is no method `{method}`")
        return find(self, Params(params))

    def _init(self, params: Params) -> server.Call:
        """Sets the variables of the mode in this process, so that whatever the provider starts inherits them."""
        provider, config = _provider(self, params), params["config"]
        if provider.scope != "session":
            self._leave(provider)
            variables = config.get("environment") or {}
            self._before[provider.id] = {name: os.environ.get(name) for name in variables}
            os.environ.update(variables)
        return server.Call(provider.init, config)

    def _shutdown(self, params: Params) -> server.Call:
        provider = _provider(self, params)
        return server.Call(provider.shutdown, after=lambda: self._leave(provider))

    def _leave(self, provider: Provider) -> None:
        for name, value in self._before.pop(provider.id, {}).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def _hook(self, event: str) -> Callable[..., Any]:
        if event not in self.hooks:
            raise RpcError(UNKNOWN_METHOD, f"there is no hook `{event}` here")
        return self.hooks[event]

    def _resolver(self) -> Callable[..., Any]:
        if self.resolve is None:
            raise RpcError(UNKNOWN_METHOD, "modes are not resolved here")
        return self.resolve


class Params(dict):
    """Parameters whose absence is an error of the caller."""

    def __missing__(self, key: str) -> Any:
        raise RpcError(BAD_PARAMS, f"missing parameter `{key}`")

    def one_of(self, key: str, served: dict[str, Any]) -> Any:
        name = self[key]
        if name not in served:
            raise RpcError(BAD_PARAMS, f"there is no {key} `{name}` here")
        return served[name]


def _into(registry: dict[str, Callable[..., Any]], name: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        registry[name] = function
        return function

    return register


def _provider_offer(provider: Provider) -> dict[str, Any]:
    offer: dict[str, Any] = {
        "id": provider.id,
        "scope": provider.scope,
        "mayCost": provider.may_cost,
        "nature": provider.nature,
        "timeoutGraceMs": provider.timeout_grace_ms,
    }
    if provider.concurrency is not None:
        offer["concurrency"] = provider.concurrency
    if provider.default_model is not None:
        offer["defaultModel"] = provider.default_model
    return offer


def _provider(plugin: Plugin, params: Params) -> Provider:
    return params.one_of("provider", plugin.providers)


def _call_with(function: Callable[..., Any], *arguments: Any, extra: Any) -> server.Call:
    """What only some want to know is told to functions that take it."""
    return server.Call(function, *arguments, extra) if _takes(function, len(arguments) + 1) else server.Call(function, *arguments)


@functools.lru_cache(maxsize=None)
def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


_METHODS: dict[str, Callable[[Plugin, Params], Any]] = {
    "provider/init": lambda s, p: s._init(p),
    "provider/createSession": lambda s, p: server.Call(_provider(s, p).create_session, p["params"]),
    "provider/prompt": lambda s, p: server.Call(_provider(s, p).prompt, p["handle"], p["text"], p["timeoutMs"]),
    "provider/exportSession": lambda s, p: server.Call(_provider(s, p).export_session, p["handle"]),
    "provider/destroySession": lambda s, p: server.Call(_provider(s, p).destroy_session, p["handle"]),
    "provider/shutdown": lambda s, p: s._shutdown(p),
    "scorer/evaluate": lambda s, p: _call_with(
        p.one_of("scorer", s.scorers), p["scenario"], p["context"], extra=p.get("settings", {})
    ),
    "collector/collect": lambda s, p: server.Call(
        p.one_of("collector", s.collectors), p["result"], p["scenario"], p["mode"], p.get("trace")
    ),
    "analyzer/analyze": lambda s, p: server.Call(
        p.one_of("analyzer", s.analyzers), p["trace"], p["scenario"], p["mode"]
    ),
    "modeResolver/resolve": lambda s, p: server.Call(s._resolver(), p["mode"]),
    "hooks/beforeRun": lambda s, p: server.Call(s._hook("beforeRun"), p["context"]),
    "hooks/beforeMode": lambda s, p: server.Call(s._hook("beforeMode"), p["mode"]),
    "hooks/beforeScenario": lambda s, p: server.Call(s._hook("beforeScenario"), p["context"]),
    "hooks/afterScenario": lambda s, p: server.Call(s._hook("afterScenario"), p["context"]),
    "hooks/afterMode": lambda s, p: server.Call(s._hook("afterMode"), p["mode"]),
    "hooks/afterRun": lambda s, p: server.Call(s._hook("afterRun"), p["context"]),
    "runner/execute": lambda s, p: _call_with(
        p.one_of("runner", s.runners)[1], p["task"], p.get("config"), extra=p.get("setting")
    ),
    "evaluator/evaluate": lambda s, p: _call_with(
        p.one_of("evaluator", s.evaluators)[1], p["run"], p["task"], extra=p.get("config", {})
    ),
    "evaluator/evaluateScenario": lambda s, p: _call_with(
        p.one_of("evaluator", s.evaluators)[2], p["run"], p["task"], extra=p.get("config", {})
    ),
}
