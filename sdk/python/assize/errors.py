"""Errors that say whose fault it is. Any other exception is nobody's but the plugin's: the trial is void."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records import PromptResult


class ServiceError(Exception):
    """Something around the agent broke, and nothing was learnt about it: the trial is void."""

    fault = "service"

    def __init__(self, message: str, code: str | None = None, partial: PromptResult | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.partial = partial


class AgentError(ServiceError):
    """The agent failed at its task: the trial fails."""

    fault = "agent"


class RpcError(Exception):
    """An error with a code of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


UNKNOWN_METHOD = -32601
BAD_PARAMS = -32602
INTERNAL = -32603
FAILED = -32000
CANCELLED = -32800
