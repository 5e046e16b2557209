"""The eight contracts as classes, for those who prefer them to decorators. Methods may be plain or ``async``."""

from __future__ import annotations

from typing import Any, Awaitable, Literal, Sequence, TypeVar, Union

from .records import (
    AfterScenarioContext,
    AnalysisResult,
    AtomicTask,
    BaseScenario,
    BeforeScenarioContext,
    CreateSessionParams,
    CustomMetric,
    ModeConfig,
    PromptResult,
    ProviderConfig,
    RunContext,
    RunRecord,
    ScenarioTask,
    ScoreRecord,
    ScorerContext,
    ScorerResult,
    SessionHandle,
    SessionTrace,
)

T = TypeVar("T")
#: A value, or something to await that gives one.
Maybe = Union[T, Awaitable[T]]


#: The time limit of a prompt that is given none, in milliseconds.
DEFAULT_TIMEOUT_MS = 120_000


class Provider:
    """Manages the sessions of an agent. One session at a time per process, unless ``concurrency`` allows more."""

    id: str
    #: ``session``: one process serves all modes. ``mode``: one process each. ``single``: modes one after another.
    scope: Literal["session", "mode", "single"] = "mode"
    #: How many sessions one process can have at once: a number or ``any``. None: what the plugin says, else 1.
    concurrency: int | Literal["any"] | None = None
    default_model: str | None = None
    may_cost: bool = True
    nature: Literal["live", "replayed", "simulated"] = "live"
    timeout_grace_ms: int = 0

    def init(self, config: ProviderConfig) -> Maybe[None]:
        """Once per process and mode, before the first session."""

    def create_session(self, params: CreateSessionParams) -> Maybe[SessionHandle]:
        """Once per attempt."""
        raise NotImplementedError

    def prompt(self, handle: SessionHandle, text: str, timeout_ms: int) -> Maybe[PromptResult]:
        """Once per user message."""
        raise NotImplementedError

    def export_session(self, handle: SessionHandle) -> Maybe[SessionTrace]:
        """After the last prompt, when traces are wanted."""
        raise NotImplementedError

    def destroy_session(self, handle: SessionHandle) -> Maybe[None]:
        """Always, in whatever state the session is; may come twice."""

    def shutdown(self) -> Maybe[None]:
        """Once, after the last session."""


class Scorer:
    """Decides whether a trial reached its goal."""

    id: str

    def evaluate(self, scenario: BaseScenario, context: ScorerContext) -> Maybe[ScorerResult]:
        raise NotImplementedError


class Collector:
    """Extracts metrics from a finished session."""

    id: str

    def collect(
        self, result: PromptResult, scenario: BaseScenario, mode: str, trace: SessionTrace | None
    ) -> Maybe[Sequence[CustomMetric]]:
        raise NotImplementedError


class Analyzer:
    """Looks at a session's trace for patterns."""

    name: str

    def analyze(self, trace: SessionTrace, scenario: BaseScenario, mode: str) -> Maybe[AnalysisResult]:
        raise NotImplementedError


class ModeResolver:
    """Turns mode names into settings. An unknown name must raise."""

    def resolve(self, mode: str) -> Maybe[ModeConfig]:
        raise NotImplementedError


class Hooks:
    """Called around runs, modes and trials: only the methods that a subclass defines."""

    #: True when several may be under way at once.
    concurrent: bool = False

    def before_run(self, context: RunContext) -> Maybe[None]: ...

    def before_mode(self, mode: str) -> Maybe[None]: ...

    def before_scenario(self, context: BeforeScenarioContext) -> Maybe[BaseScenario | None]: ...

    def after_scenario(self, context: AfterScenarioContext) -> Maybe[None]: ...

    def after_mode(self, mode: str) -> Maybe[None]: ...

    def after_run(self, context: RunContext) -> Maybe[None]: ...


class Runner:
    """Executes tasks of one type."""

    id: str
    type: str
    version: str = "0"

    def execute(self, task: AtomicTask, config: Any) -> Maybe[RunRecord]:
        raise NotImplementedError


class Evaluator:
    """Scores executions of tasks."""

    id: str
    metrics: Sequence[str] = ()

    def evaluate(self, run: RunRecord, task: AtomicTask) -> Maybe[Sequence[ScoreRecord]]:
        raise NotImplementedError

    def evaluate_scenario(self, run: RunRecord, task: ScenarioTask) -> Maybe[Sequence[ScoreRecord]]:
        return []
