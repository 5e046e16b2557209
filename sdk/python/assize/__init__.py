"""Plugins for Assize in Python.

    from assize import Plugin

    plugin = Plugin("words")

    @plugin.collector("answer_words")
    def answer_words(result, scenario, mode, trace):
        return [{"name": "answer_words", "value": len(result["text"].split()), "unit": "words"}]

    plugin.serve()

Functions and methods may be plain or ``async``. Everything is a ``dict`` with the names of the protocol; the types in
``assize.records`` tell which ones there are.
"""

from .contracts import DEFAULT_TIMEOUT_MS, Analyzer, Collector, Evaluator, Hooks, ModeResolver, Provider, Runner, Scorer
from .errors import AgentError, ServiceError
from .plugin import Plugin

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "AgentError",
    "Analyzer",
    "Collector",
    "Evaluator",
    "Hooks",
    "ModeResolver",
    "Plugin",
    "Provider",
    "Runner",
    "Scorer",
    "ServiceError",
]

__version__ = "0.1.0"
