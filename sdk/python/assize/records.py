"""Made from the contracts in Rust by `UPDATE_SCHEMAS=1 cargo test kit_types`. Not for editing."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, Union


class AfterScenarioContext(TypedDict):
    """The argument of `after_scenario`."""

    #: The scenario about to run.
    scenario: BaseScenario
    #: Its mode.
    mode: str
    #: Its model.
    model: str
    #: The repetition.
    iteration: int
    #: The row as it stands.
    result: ProfileRow
    #: The session's trace. Null when export is off or failed.
    trace: Union[SessionTrace, None]


class AfterScenarioParams(TypedDict):
    """`hooks/afterScenario`."""

    #: The trial and its row as it stands.
    context: AfterScenarioContext


class AnalysisFindingNumber(TypedDict):
    """A quantity."""

    type: Literal["number"]
    #: The amount.
    value: float
    #: Of what.
    unit: str


class AnalysisFindingString(TypedDict):
    """A word or sentence."""

    type: Literal["string"]
    #: The text.
    value: str


class AnalysisFindingList(TypedDict):
    """Several texts."""

    type: Literal["list"]
    #: In order.
    values: list[str]


class AnalysisFindingTable(TypedDict):
    """Rows and columns."""

    type: Literal["table"]
    #: Column titles.
    headers: list[str]
    #: Rows of cells.
    rows: list[list[str]]


class AnalysisFindingRatio(TypedDict):
    """A share of something."""

    type: Literal["ratio"]
    #: Usually between 0 and 1.
    value: float
    #: Numerator and denominator in words.
    label: str


AnalysisFinding = Union["AnalysisFindingNumber", "AnalysisFindingString", "AnalysisFindingList", "AnalysisFindingTable", "AnalysisFindingRatio"]


class AnalysisResult(TypedDict):
    """Findings of one analyzer in one session."""

    #: The analyzer's name.
    analyzer: str
    #: Findings by key; keys carry the analyzer's own prefix.
    findings: dict[str, AnalysisFinding]
    #: One sentence for quick scanning.
    summary: str


class AnalyzerAnalyzeParams(TypedDict):
    """`analyzer/analyze`."""

    #: The analyzer's id.
    analyzer: str
    #: The session.
    trace: SessionTrace
    #: The scenario that the agent was given.
    scenario: BaseScenario
    #: The mode.
    mode: str


class AnalyzerOffer(TypedDict):
    """An analyzer that the plugin serves."""

    #: The name under which suites use it.
    name: str


AnyNumber = Union[Literal["any"]]


AtomicTask = TypedDict("AtomicTask", {"id": "str", "name": "str", "type": "str", "input": "Any", "expected": "NotRequired[Any]", "context": "NotRequired[Union[dict[str, Any], None]]", "metadata": "TaskMetadata", "extensions": "NotRequired[Union[dict[str, Any], None]]", "pass": "NotRequired[list[str]]"})


class Attempt(TypedDict):
    """An attempt that was tried again."""

    #: The outcome of the attempt.
    outcome: Outcome
    #: Its session. Absent when none was created.
    sessionId: NotRequired[Union[str, None]]
    #: Tokens it used.
    tokens: TokenBreakdown
    #: Money it cost.
    costUsd: NotRequired[Union[float, None]]
    #: The known part of the tokens, where their total is unknown because a model call is incomplete.
    tokensAtLeast: NotRequired[Union[TokenBreakdown, None]]
    #: The cost of that part.
    costAtLeastUsd: NotRequired[Union[float, None]]
    #: Duration.
    wallMs: NotRequired[Union[float, None]]
    #: The error.
    error: NotRequired[Union[str, None]]
    #: Error code for machines.
    errorCode: NotRequired[Union[str, None]]


class BaseScenario(TypedDict):
    """One task for an agent, resolved: every default filled in, every variable replaced. The fields down to `extensions` are what every plugin may rely on; the rest is Assize's own."""

    #: Unique in the suite.
    id: str
    #: A short title.
    name: str
    #: The purpose of the scenario.
    description: str
    #: The first user message.
    prompt: str
    #: The time limit for all turns together.
    timeoutMs: int
    #: Retries of a void attempt.
    allowedRetries: int
    #: For choosing scenarios.
    tags: list[str]
    #: Whatever a plugin needs to know; scorers get it as `metadata`.
    extensions: dict[str, Any]
    #: Further user messages, sent one by one.
    turns: NotRequired[list[str]]
    #: The files the agent works on.
    workspace: NotRequired[Union[WorkspaceSpec, None]]
    #: JSON Schema of a valid answer; decides `outputValid`.
    outputSchema: NotRequired[Any]
    #: The checks, in the form the `checks` scorer reads.
    checks: NotRequired[list[Any]]
    #: The rubric, in the form the `judge` scorer reads.
    rubric: NotRequired[Any]
    #: The wall around the agent, where it is another than the mode's.
    sandbox: NotRequired[Union[Sandbox, None]]
    #: True when the skill on trial should be used. Absent: not stated.
    shouldTrigger: NotRequired[Union[bool, None]]


class BeforeScenarioContext(TypedDict):
    """The argument of `before_scenario`."""

    #: The scenario about to run.
    scenario: BaseScenario
    #: Its mode.
    mode: str
    #: Its model.
    model: str
    #: The repetition.
    iteration: int


class BeforeScenarioParams(TypedDict):
    """`hooks/beforeScenario`."""

    #: The trial about to begin.
    context: BeforeScenarioContext


Better = Union[Literal["lower"], Literal["higher"]]


CallEnding = Union[Literal["cut"], Literal["client_gone"], Literal["no_answer"]]


class CancelParams(TypedDict):
    """`$/cancel`, in either direction: the answer to this request is not needed any more."""

    #: The request.
    id: int


class Capabilities(TypedDict):
    """The contracts that a plugin serves. Several of each contract may be offered; suites refer to them by id."""

    #: Ways to reach agents.
    providers: NotRequired[list[ProviderOffer]]
    #: Judges of trials.
    scorers: NotRequired[list[ScorerOffer]]
    #: Sources of metrics.
    collectors: NotRequired[list[CollectorOffer]]
    #: Explainers of sessions.
    analyzers: NotRequired[list[AnalyzerOffer]]
    #: Present when the plugin resolves modes; suites use the plugin's id.
    modeResolver: NotRequired[Union[ModeResolverOffer, None]]
    #: Present when the plugin has hooks; suites use the plugin's id.
    hooks: NotRequired[Union[HooksOffer, None]]
    #: Executors of tasks.
    runners: NotRequired[list[RunnerOffer]]
    #: Judges of tasks.
    evaluators: NotRequired[list[EvaluatorOffer]]
    #: The number of requests that may be under way at once. Absent: any number.
    concurrency: NotRequired[Union[Concurrency, None]]


class CollectorCollectParams(TypedDict):
    """`collector/collect`."""

    #: The collector's id.
    collector: str
    #: All turns merged; after a failure what is known.
    result: PromptResult
    #: The scenario that the agent was given.
    scenario: BaseScenario
    #: The mode.
    mode: str
    #: The session. Null when export is off or failed.
    trace: Union[SessionTrace, None]


class CollectorOffer(TypedDict):
    """A collector that the plugin serves."""

    #: The name under which suites use it.
    id: str


CompletionReason = Union[Literal["stop"], Literal["timeout"], Literal["error"], Literal["tool_limit"]]


Concurrency = Union[int, AnyNumber]


class Container(TypedDict):
    """Settings of `container`."""

    #: The image. Either this or `build`.
    image: NotRequired[Union[str, None]]
    #: A directory with a Dockerfile to build the image from. Relative to the suite.
    build: NotRequired[Union[str, None]]
    #: The program that runs containers. Default: the first that works.
    engine: NotRequired[ContainerEngine]
    #: The most processors it may use; fractions are possible.
    cpus: NotRequired[Union[float, None]]
    #: The most memory it may use, in megabytes.
    memory_mb: NotRequired[Union[int, None]]
    #: `open` (default), `model` or `none`.
    network: NotRequired[ContainerNetwork]
    #: Directories of the host inside the container: `HOST:CONTAINER`, or `HOST:CONTAINER:ro`. Relative to the suite.
    mounts: NotRequired[list[str]]
    #: The user inside, by name or `UID:GID`. Default: the image's own.
    user: NotRequired[Union[str, None]]
    #: The directory inside in which programs start where the scenario has no workspace. Default: the image's own.
    workdir: NotRequired[Union[str, None]]
    #: Variables of everything inside, over the image's own. The mode's variables go before them.
    environment: NotRequired[dict[str, str]]
    #: A directory inside whose skills the agent is given, where its kind of agent looks for them.
    skills_dir: NotRequired[Union[str, None]]
    #: Lines for the shell inside that are run as root before the agent starts.
    setup: NotRequired[list[str]]
    #: A command that must succeed inside before the agent starts.
    healthcheck: NotRequired[Union[Healthcheck, None]]
    #: Add the agent to the image where it is missing, as `assize image build` does. Default: false.
    install_agent: NotRequired[bool]
    #: Time limit for building the image, in milliseconds. Default: 1800000.
    build_timeout_ms: NotRequired[Union[int, None]]


ContainerEngine = Union[Literal["auto"], Literal["docker"], Literal["podman"], Literal["nerdctl"]]


ContainerNetwork = Union[Literal["open"], Literal["model"], Literal["none"]]


class CostBreakdown(TypedDict):
    """Money spent, by what it was spent on."""

    #: All of it.
    totalUsd: Union[float, None]
    #: For input tokens.
    inputUsd: Union[float, None]
    #: For visible output tokens.
    outputUsd: Union[float, None]
    #: For reasoning tokens.
    reasoningUsd: Union[float, None]


class CostReadings(TypedDict):
    """The same cost read in different ways."""

    #: The agent's own figure.
    reportedUsd: Union[float, None]
    #: Tokens times prices, cache prices applied.
    computedUsd: Union[float, None]
    #: Tokens times prices, every input token priced as uncached.
    cacheNeutralUsd: Union[float, None]


CostSource = Union[Literal["computed"], Literal["reported"], Literal["unknown"]]


class CreateSessionParams(TypedDict):
    """Settings of a session. The first three fields are for everyone; the others carry what a session-scoped provider needs to know."""

    #: System instructions for the agent.
    systemInstructions: str
    #: The scenario, for labelling.
    scenarioId: str
    #: The repetition, for labelling; −1 for the warm-up.
    iteration: int
    #: The number of the attempt, from 0.
    attempt: int
    #: The mode to serve.
    mode: str
    #: The model to use.
    model: str
    #: Variables for every process started for the session.
    environment: dict[str, str]
    #: The directory the agent works in.
    workdir: str
    #: Permissions of the agent: what it may do without asking.
    permissions: PermissionConfig
    #: The mode's settings for this provider.
    providerOverrides: dict[str, Any]
    #: The same for the same cell and attempt in every run with the same seed.
    seed: int


class CustomMetric(TypedDict):
    """One metric of one trial. Its name becomes a key of the row's `extensions`."""

    #: Unique among all collectors of a suite; the last one wins.
    name: str
    #: Numbers are aggregated, texts are kept.
    value: MetricValue
    #: For display: `count`, `ms`, `USD`, `tokens`, `ratio`, or any other word.
    unit: str
    #: The direction that counts as better. Absent: differences are shown and not judged, unless the suite declares a direction.
    better: NotRequired[Union[Better, None]]
    #: The name in tables and sentences. Absent: `name`.
    label: NotRequired[Union[str, None]]


class DetailedSandbox(TypedDict):
    """A name with its settings, as it is written."""

    #: Rules of the kernel around the agent's processes.
    guard: NotRequired[Union[Guard, None]]
    #: A container of an image.
    container: NotRequired[Union[Container, None]]


class EvaluatorEvaluateParams(TypedDict):
    """`evaluator/evaluate`."""

    #: The evaluator's id.
    evaluator: str
    #: The execution.
    run: RunRecord
    #: The executed task.
    task: AtomicTask
    #: The evaluator's configuration in the suite.
    config: NotRequired[dict[str, Any]]


class EvaluatorEvaluateScenarioParams(TypedDict):
    """`evaluator/evaluateScenario`."""

    #: The evaluator's id.
    evaluator: str
    #: The execution of the whole chain.
    run: RunRecord
    #: The chain.
    task: ScenarioTask
    #: The evaluator's configuration in the suite.
    config: NotRequired[dict[str, Any]]


class EvaluatorOffer(TypedDict):
    """An evaluator that the plugin serves."""

    #: The name under which suites use it.
    id: str
    #: The metrics it can give.
    metrics: list[str]


class Evidence(TypedDict):
    """Evidence for a score, for people to follow."""

    #: In words.
    explanation: NotRequired[Union[str, None]]
    #: The passages that decided it.
    snippets: NotRequired[Union[list[str], None]]
    #: The values that were compared.
    alignment: NotRequired[Union[dict[str, Any], None]]


class ExecutionSetting(TypedDict):
    """The condition under which a task is executed."""

    #: The mode.
    mode: str
    #: The model that the suite asks for. Empty when it names none.
    model: str
    #: The repetition; −1 for the warm-up.
    iteration: int
    #: The number of the attempt, from 0.
    attempt: int
    #: The step of a chain that is executed.
    step: NotRequired[Union[str, None]]
    #: The same for the same cell and attempt in every run with the same seed.
    seed: int
    #: Time limit of the execution.
    timeoutMs: int
    #: The mode's system instructions.
    systemInstructions: str


class FailureData(TypedDict):
    """`error.data` of a provider's failure."""

    #: Whose fault it is. Absent: not the agent's, so the trial is void.
    fault: NotRequired[Union[Fault, None]]
    #: A word for machines; becomes the row's `errorCode`.
    code: NotRequired[Union[str, None]]
    #: Usage before the error.
    partial: NotRequired[Union[PromptResult, None]]
    #: The reason why the trial is void, where the provider knows it.
    voidCause: NotRequired[Union[VoidCause, None]]


Fault = Union[Literal["agent"], Literal["service"]]


class GitSource(TypedDict):
    """A commit in a repository on this machine."""

    #: Path of the repository, relative to the suite.
    repo: str
    #: Branch, tag or commit.
    ref: str


class Guard(TypedDict):
    """Settings of `guard`."""

    #: `open` (default), or `model`: TCP connections only to the capture proxy and to servers that the suite names.
    network: NotRequired[GuardNetwork]
    #: Files and directories that the agent must not read, besides the suite's own. Relative to the suite.
    hide: NotRequired[list[str]]
    #: Files and directories below hidden ones that the agent may read all the same. Relative to the suite.
    show: NotRequired[list[str]]


GuardNetwork = Union[Literal["open"], Literal["model"]]


class Healthcheck(TypedDict):
    """A command that says whether a container is ready, tried again and again."""

    #: A line for the shell inside. Exit code 0 means ready.
    command: str
    #: The time between two tries. Default: 5000.
    interval_ms: int
    #: The time for one try. Default: 30000.
    timeout_ms: int
    #: Failures in this time after the start do not count. Default: 0.
    start_period_ms: int
    #: The time between two tries in that period. Default: 5000.
    start_interval_ms: int
    #: The failures in a row after which the container counts as broken. Default: 3.
    retries: int


class HookError(TypedDict):
    """An error of a plugin, or of another part of the trial that is not needed for its result: that part is left out."""

    #: The part that failed: a hook (`beforeScenario`), `collector:<id>`, `analyzer:<name>`, `exportSession`, `destroySession`.
    hook: str
    #: Its message.
    message: str


HookEvent = Union[Literal["beforeScenario"], Literal["afterScenario"], Literal["beforeMode"], Literal["afterMode"], Literal["beforeRun"], Literal["afterRun"]]


class HooksOffer(TypedDict):
    """The hooks that the plugin has."""

    #: Only these are called.
    events: list[HookEvent]
    #: True when several may be under way at once.
    concurrent: bool


class Info(TypedDict):
    """A program's name and version."""

    #: Its name.
    name: str
    #: Its version.
    version: str


class InitializeParams(TypedDict):
    """The first request: the host, its version, and the suite's `options`."""

    #: The highest version the host speaks.
    protocolVersion: int
    #: The host.
    info: Info
    #: Options that the suite gives to the plugin.
    options: dict[str, Any]
    #: Further abilities of the host; none yet.
    capabilities: dict[str, Any]


class InitializeResult(TypedDict):
    """The answer to `initialize`: the version to speak and everything the plugin serves."""

    #: The host's version, or the highest the plugin speaks.
    protocolVersion: int
    #: The plugin.
    info: Info
    #: The contracts it serves.
    capabilities: Capabilities


InputMapping = TypedDict("InputMapping", {"from": "str", "to": "str"})


class LogParams(TypedDict):
    """`$/log`, from the plugin: a line for its log."""

    #: Its severity: `debug`, `info`, `warn`, `error`.
    level: str
    #: The message.
    message: str


MetricValue = Union[float, str]


class ModeConfig(TypedDict):
    """The settings of a mode."""

    #: Variables for every process started for a session of the mode.
    environment: dict[str, str]
    #: System instructions for the agent.
    systemInstructions: str
    #: Settings for the provider.
    providerOverrides: dict[str, Any]


class ModeParams(TypedDict):
    """`modeResolver/resolve`, `hooks/beforeMode` and `hooks/afterMode`."""

    #: The mode's name.
    mode: str


ModeResolverOffer = dict[str, Any]


class ModelCall(TypedDict):
    """One request to a model, as seen on the wire or reported by the agent."""

    #: Unique within the trace; events refer to it as `callRef`.
    id: str
    #: The model that answered.
    model: str
    #: The API spoken, e.g. `anthropic-messages`.
    api: NotRequired[Union[str, None]]
    #: A call beside the task itself: a title, a summary.
    side: bool
    #: The subagent that made the call. Absent for the main agent.
    agentId: NotRequired[Union[str, None]]
    #: Time of the request.
    startedAt: Union[Timestamp, None]
    #: Time to the first token.
    ttftMs: Union[float, None]
    #: Time to the end of the answer.
    durationMs: Union[float, None]
    #: Tokens of this call.
    tokens: TokenBreakdown
    #: The known part of the tokens, where the call is incomplete.
    tokensAtLeast: NotRequired[Union[TokenBreakdown, None]]
    #: The part of the cache writes that is kept for an hour and priced higher.
    cacheWrite1h: NotRequired[Union[int, None]]
    #: The class of service it was billed as.
    serviceTier: NotRequired[Union[str, None]]
    #: Cost of this call.
    costUsd: Union[float, None]
    #: Source of the cost.
    costSource: NotRequired[Union[CostSource, None]]
    #: The API's own word for the reason the model stopped.
    stopReason: NotRequired[Union[str, None]]
    #: HTTP status of the final answer.
    status: NotRequired[Union[int, None]]
    #: Number of retries.
    retries: NotRequired[Union[int, None]]
    #: The end of an exchange without a whole answer.
    ending: NotRequired[Union[CallEnding, None]]
    #: The capture proxy changed the request to ask for usage.
    askedForUsage: NotRequired[bool]


OfferedNature = Union[Literal["live"], Literal["replayed"], Literal["simulated"]]


OfferedScope = Union[Literal["session"], Literal["mode"], Literal["single"]]


Outcome = Union[Literal["pass"], Literal["fail"], Literal["void"]]


class PermissionConfig(TypedDict):
    """Permissions of the agent: what it may do without asking."""

    #: Every tool call goes without confirmation.
    autoApprove: bool
    #: These tools go without confirmation.
    allowedTools: list[str]


class ProfileRow(TypedDict):
    """One finished trial. A line of `rows.jsonl`, and the commit of everything else stored about it. The fields down to `errorCode` are shared with other profilers; the optional ones below are Assize's."""

    #: The run the trial belongs to.
    runId: str
    #: The scenario or task.
    scenarioId: str
    #: The condition under which it ran.
    mode: str
    #: The model it ran with.
    model: str
    #: The repetition, from 0. A warm-up is −1 and never in `rows.jsonl`.
    iteration: int
    #: Start time of the trial.
    startedAt: Timestamp
    #: End time of the trial.
    completedAt: Timestamp
    #: Tokens used by the last attempt.
    tokens: TokenBreakdown
    #: Time taken by the last attempt.
    timing: TimingBreakdown
    #: Tools called by the last attempt.
    toolCalls: ToolCallSummary
    #: Money spent by the last attempt: the reading that `costSource` names.
    cost: CostBreakdown
    #: True if the goal was reached.
    success: bool
    #: Checks that hold.
    checkpointsPassed: int
    #: Checks made.
    checkpointsTotal: int
    #: Each check.
    checkpointDetails: list[ScorerCheckResult]
    #: True if the answer has the form the scenario asks for; independent of `success`.
    outputValid: bool
    #: The provider's id.
    provider: str
    #: The provider's id of the session. Absent when none was created.
    sessionId: NotRequired[Union[str, None]]
    #: Turns the agent took: model answers of the main agent. Absent when they were not seen.
    agentTurns: NotRequired[Union[int, None]]
    #: The reason why the session ended. Absent when it never began.
    completionReason: NotRequired[Union[CompletionReason, None]]
    #: Metrics of the collectors, by name.
    extensions: dict[str, Any]
    #: The error.
    error: NotRequired[Union[str, None]]
    #: Error code for machines.
    errorCode: NotRequired[Union[str, None]]
    #: Version of the record's form. Absent in foreign ones.
    schemaVersion: NotRequired[Union[int, None]]
    #: The outcome: pass, fail or void.
    outcome: NotRequired[Union[Outcome, None]]
    #: The cause of the void. Absent for other outcomes, and in rows of version 1.
    voidCause: NotRequired[Union[VoidCause, None]]
    #: The known part of the tokens, where their total is unknown because a model call is incomplete.
    tokensAtLeast: NotRequired[Union[TokenBreakdown, None]]
    #: The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete.
    costAtLeastUsd: NotRequired[Union[float, None]]
    #: User messages that were sent.
    userTurns: NotRequired[Union[int, None]]
    #: Attempts before the last one.
    attempts: NotRequired[list[Attempt]]
    #: Parts of the trial that broke without deciding it: hooks, collectors, analyzers, the export.
    hookErrors: NotRequired[list[HookError]]
    #: Place in the plan, from 0.
    position: NotRequired[Union[int, None]]
    #: The group of cells that are compared with each other.
    block: NotRequired[Union[int, None]]
    #: Source of `cost`.
    costSource: NotRequired[Union[CostSource, None]]
    #: All readings of the cost.
    costReadings: NotRequired[Union[CostReadings, None]]
    #: Time ran out: time, tokens and cost are lower bounds.
    censored: NotRequired[bool]
    #: The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims.
    notCaptured: NotRequired[bool]
    #: The agent signed in with a subscription: the cost is what its tokens would cost, not what was billed.
    subscription: NotRequired[bool]
    #: Answers came from a recording.
    replayed: NotRequired[bool]
    #: Made up by the `simulated` provider.
    simulated: NotRequired[bool]


class ProgramUse(TypedDict):
    """The exit and the resource use of the program behind a session, including everything it started. A value that the system does not report is absent."""

    #: Its exit code. Absent when a signal ended it.
    exitCode: Union[int, None]
    #: The signal that ended it.
    signal: Union[int, None]
    #: CPU time.
    cpuMs: Union[float, None]
    #: The most memory in use.
    peakMemoryBytes: Union[int, None]
    #: Processes that the system killed because the memory of their container was used up. Absent without a container.
    oomKills: NotRequired[Union[int, None]]


class ProgressParams(TypedDict):
    """`$/progress`, from the plugin: how far a request has come. Kept in the plugin's log."""

    #: The request's id.
    token: Any
    #: In words.
    message: NotRequired[Union[str, None]]
    #: The amount that is done.
    done: NotRequired[Union[float, None]]
    #: Of how much.
    total: NotRequired[Union[float, None]]


class PromptMetrics(TypedDict):
    """Measurements that a provider took during a prompt."""

    #: Tokens used. Unknown where one model call did not report them.
    tokens: TokenBreakdown
    #: The known part of the tokens, where their total is unknown because a model call is incomplete.
    tokensAtLeast: NotRequired[Union[TokenBreakdown, None]]
    #: The agent's own count, where `tokens` were counted elsewhere: the counts that differ, or all of them where the total is unknown.
    reportedTokens: NotRequired[Union[TokenBreakdown, None]]
    #: Time taken.
    timing: TimingBreakdown
    #: One record per tool invocation. Absent when the provider cannot see tools.
    toolCalls: Union[list[ToolCallRecord], None]
    #: Money spent, as the agent reports it.
    cost: CostBreakdown
    #: The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete.
    costAtLeastUsd: NotRequired[Union[float, None]]
    #: The cost reported by the agent, where `cost` was computed from the same tokens and differs by more than rounding.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims.
    notCaptured: NotRequired[bool]
    #: The agent signed in with a subscription: its tokens are not billed one by one.
    subscription: NotRequired[bool]
    #: The program behind the session. Absent when the provider started none.
    program: NotRequired[Union[ProgramUse, None]]


class PromptResult(TypedDict):
    """The agent's answer to one user message and what it took."""

    #: The agent's text response.
    text: str
    #: Measurements of this turn.
    metrics: PromptMetrics
    #: The reason why the turn ended.
    completionReason: CompletionReason


class Provenance(TypedDict):
    """Everything needed to repeat an execution."""

    #: The runner used; `scenario` for a chain.
    runnerId: str
    #: Its version.
    runnerVersion: str
    #: Its configuration.
    config: dict[str, Any]
    #: Stable hash of the resolved configuration.
    configHash: NotRequired[Union[str, None]]
    #: Stable hash of everything that could change the result.
    runFingerprint: NotRequired[Union[str, None]]
    #: Stable hash of what the capability was given: type, input and context of the task, and for a chain its data flow.
    inputHash: NotRequired[Union[str, None]]


class ProviderConfig(TypedDict):
    """Settings of a provider instance."""

    #: A free loopback port, one per instance, for a server if it needs one.
    port: int
    #: The model to use. The first one for a session-scoped provider.
    model: str
    #: The mode to serve. The first one for a session-scoped provider.
    mode: str
    #: Permissions of the agent: what it may do without asking.
    permissions: PermissionConfig
    #: Variables for every process started for a session.
    environment: dict[str, str]
    #: The suite's directory.
    workdir: str
    #: The mode's settings for this provider.
    providerOverrides: NotRequired[dict[str, Any]]


class ProviderCreateSessionParams(TypedDict):
    """`provider/createSession`."""

    #: The provider's id.
    provider: str
    #: The parameters that the session is created with.
    params: CreateSessionParams


class ProviderInitParams(TypedDict):
    """`provider/init`."""

    #: The provider's id.
    provider: str
    #: The configuration that the instance is started with.
    config: ProviderConfig


class ProviderOffer(TypedDict):
    """A provider that the plugin serves."""

    #: The name under which suites use it.
    id: str
    #: The extent that one instance can serve.
    scope: OfferedScope
    #: The number of sessions that one instance can have at once. Absent: what the plugin says, else one.
    concurrency: NotRequired[Union[Concurrency, None]]
    #: The model when the suite names none.
    defaultModel: NotRequired[Union[str, None]]
    #: True when sessions can cost real money. Absent: they can.
    mayCost: NotRequired[Union[bool, None]]
    #: The nature of its sessions.
    nature: OfferedNature
    #: The time past a prompt's timeout that it may take to wind down and answer with what was used.
    timeoutGraceMs: NotRequired[Union[int, None]]


class ProviderPromptParams(TypedDict):
    """`provider/prompt`."""

    #: The provider's id.
    provider: str
    #: The session.
    handle: SessionHandle
    #: The user's message.
    text: str
    #: The rest of the trial's time.
    timeoutMs: int


class ProviderSessionParams(TypedDict):
    """`provider/exportSession` and `provider/destroySession`."""

    #: The provider's id.
    provider: str
    #: The session.
    handle: SessionHandle


class ProviderShutdownParams(TypedDict):
    """`provider/shutdown`."""

    #: The provider's id.
    provider: str


class RpcError(TypedDict):
    """The error of a failed request."""

    #: One of the codes of the protocol.
    code: int
    #: The error, for people.
    message: str
    #: The error, for machines.
    data: NotRequired[Any]


class RunContext(TypedDict):
    """The argument of the run hooks."""

    #: The run's id.
    runId: str
    #: All modes.
    modes: list[str]
    #: All scenarios.
    scenarios: list[BaseScenario]
    #: Repetitions of each scenario under each arm.
    repetitions: int


class RunError(TypedDict):
    """The error of an execution."""

    #: The error.
    message: str
    #: The step or phase in which it happened.
    step: NotRequired[Union[str, None]]
    #: Stack trace of the runner, if it gave one.
    stack: NotRequired[Union[str, None]]


class RunMetrics(TypedDict):
    """Time, tokens and cost of an execution."""

    #: Wall time in milliseconds.
    latency: float
    #: Tokens used.
    tokens: NotRequired[Union[int, None]]
    #: Money spent, in US dollars.
    cost: NotRequired[Union[float, None]]
    #: Source of the cost, if the runner gave it.
    costSource: NotRequired[Union[CostSource, None]]


class RunParams(TypedDict):
    """`hooks/beforeRun` and `hooks/afterRun`."""

    #: The run.
    context: RunContext


class RunRecord(TypedDict):
    """One execution of a task by a runner. A line of `runs.jsonl`."""

    #: Version of the record's form. Absent in foreign ones.
    schemaVersion: NotRequired[Union[int, None]]
    #: Unique; score records refer to it.
    id: str
    #: The task executed.
    taskId: str
    #: One capability, or a chain.
    taskType: TaskKind
    #: Status. Stored records are completed or failed.
    status: RunStatus
    #: Output of the capability.
    output: NotRequired[Any]
    #: The error and its place.
    error: NotRequired[Union[RunError, None]]
    #: Time, tokens and cost.
    metrics: RunMetrics
    #: Events: at least started, and completed or failed.
    trace: list[TaskEvent]
    #: The steps of a chain.
    steps: NotRequired[Union[list[StepSummary], None]]
    #: Start time.
    startedAt: Timestamp
    #: End time.
    completedAt: NotRequired[Union[Timestamp, None]]
    #: Everything needed to repeat the execution.
    provenance: Provenance


RunStatus = Union[Literal["pending"], Literal["running"], Literal["completed"], Literal["failed"]]


class RunnerExecuteParams(TypedDict):
    """`runner/execute`."""

    #: The runner's id.
    runner: str
    #: The task to execute.
    task: AtomicTask
    #: The runner's configuration in the suite.
    config: Any
    #: The cell of the experiment. Absent when there is no experiment.
    setting: NotRequired[Union[ExecutionSetting, None]]


class RunnerOffer(TypedDict):
    """A runner that the plugin serves."""

    #: The name under which suites use it.
    id: str
    #: The task type it serves.
    type: str
    #: Its version; part of every record's provenance.
    version: str


Sandbox = Union[Literal["guard", "none"], DetailedSandbox]


ScenarioTask = TypedDict("ScenarioTask", {"id": "str", "name": "str", "description": "str", "steps": "list[AtomicTask]", "input_map": "dict[str, list[InputMapping]]", "metadata": "dict[str, Any]", "input": "NotRequired[Any]", "extensions": "NotRequired[Union[dict[str, Any], None]]", "pass": "NotRequired[list[str]]"})


class ScoreRecord(TypedDict):
    """One score with its evidence. A line of `scores.jsonl`."""

    #: Version of the record's form. Absent in foreign ones.
    schemaVersion: NotRequired[Union[int, None]]
    #: Unique.
    id: str
    #: The run record it scores.
    runId: str
    #: The metric, e.g. `accuracy`.
    metric: str
    #: The score.
    value: ScoreValue
    #: The part of the execution that is scored.
    target: ScoreTarget
    #: Evidence for the score.
    evidence: NotRequired[Union[Evidence, None]]
    #: The evaluator.
    evaluatorId: str
    #: Time of scoring.
    createdAt: Timestamp


ScoreTarget = str


ScoreValue = Union[bool, float, str]


class ScorerCheckResult(TypedDict):
    """One check."""

    #: Unique in the scenario.
    id: str
    #: The check in words.
    description: str
    #: True if it holds.
    passed: bool
    #: The value found.
    actual: NotRequired[Any]
    #: The value expected.
    expected: NotRequired[Any]
    #: The reason why it could not be checked.
    error: NotRequired[Union[str, None]]


class ScorerContext(TypedDict):
    """The view of a trial that a scorer gets."""

    #: The agent's final text.
    agentOutput: str
    #: The session's trace. Absent when export is off or failed.
    trace: Union[SessionTrace, None]
    #: The mode.
    mode: str
    #: The model.
    model: str
    #: The repetition.
    iteration: int
    #: The scenario's `extensions`.
    metadata: dict[str, Any]
    #: All turns merged into one result.
    result: NotRequired[Union[PromptResult, None]]
    #: The directory the agent worked in.
    workspace: NotRequired[Union[str, None]]
    #: Changes the agent made there.
    changes: NotRequired[list[WorkspaceChange]]


class ScorerEvaluateParams(TypedDict):
    """`scorer/evaluate`."""

    #: The scorer's id.
    scorer: str
    #: The scenario that the agent was given.
    scenario: BaseScenario
    #: The result of the session.
    context: ScorerContext
    #: The keys of the suite's `scorer` besides `uses`.
    settings: NotRequired[dict[str, Any]]


class ScorerOffer(TypedDict):
    """A scorer that the plugin serves."""

    #: The name under which suites use it.
    id: str


class ScorerResult(TypedDict):
    """The judgement of a scorer."""

    #: True if the goal was reached.
    success: bool
    #: Checks that hold.
    passed: int
    #: Checks made.
    total: int
    #: Each check.
    details: list[ScorerCheckResult]
    #: True if the answer has the form the scenario asks for; independent of `success`.
    outputValid: bool
    #: The reason why the trial could not be judged.
    error: NotRequired[Union[str, None]]
    #: Metrics of the judging, apart from those of the agent. They become part of the row's `extensions`.
    metrics: NotRequired[list[CustomMetric]]


class SessionHandle(TypedDict):
    """A session, as the provider knows it."""

    #: Unique among the provider's sessions.
    sessionId: str
    #: The provider's id.
    provider: str
    #: Time of creation.
    createdAt: Timestamp


class SessionTrace(TypedDict):
    """The full record of one session, as `exportSession` returns it. Events are shared between `events` and `turns`, which hold the same ones grouped."""

    #: Version of the record's form. Absent in foreign ones, and where a provider hands it over.
    schemaVersion: NotRequired[Union[int, None]]
    #: The provider's id of the session.
    sessionId: str
    #: Everything that happened, in order.
    events: list[TraceEvent]
    #: The same events grouped by turn, without the boundaries.
    turns: list[Turn]
    #: Totals over the session.
    summary: TraceSummary
    #: One entry per request to a model. Token usage lives here, once.
    modelCalls: NotRequired[list[ModelCall]]
    #: The agent's final text. Absent where it is the last text among the events.
    answer: NotRequired[Union[str, None]]
    #: User messages, with the time the agent worked on each.
    userTurns: NotRequired[list[UserTurn]]
    #: Skills that were looked for on the wire. Empty where nothing was captured or no skill is on trial.
    skills: NotRequired[list[SkillSighting]]
    #: The session was made up by the `simulated` provider.
    simulated: NotRequired[bool]


class SkillLoad(TypedDict):
    """The first request of a conversation that contained the text of a skill."""

    #: The model call of that request.
    callRef: str
    #: The subagent whose conversation it is. Absent for the main agent.
    agentId: NotRequired[Union[str, None]]
    #: Time of the request.
    timestamp: NotRequired[Union[Timestamp, None]]
    #: Model answers of the main agent before it.
    turnsBefore: int
    #: Tokens of all model calls before it. Absent where one of them is unknown.
    tokensBefore: NotRequired[Union[int, None]]
    #: The skill's share of the request's input tokens, by its share of the request's bytes: an estimate.
    textTokens: NotRequired[Union[int, None]]


class SkillSighting(TypedDict):
    """A skill as requests to models show it."""

    #: The skill's name.
    name: str
    #: Its description was in a request.
    offered: bool
    #: The conversations whose requests contained its text, by the first such request of each.
    loads: NotRequired[list[SkillLoad]]


StepStatus = Union[Literal["completed"], Literal["failed"], Literal["skipped"]]


class StepSummary(TypedDict):
    """One step of a chain."""

    #: The step's id.
    stepId: str
    #: The step's name.
    stepName: str
    #: Its end.
    status: StepStatus
    #: Wall time in milliseconds.
    latency: float
    #: Tokens used.
    tokens: NotRequired[Union[int, None]]
    #: Money spent, in US dollars.
    cost: NotRequired[Union[float, None]]
    #: Its output.
    output: NotRequired[Any]
    #: The error.
    error: NotRequired[Union[str, None]]


class TaskEvent(TypedDict):
    """An event in a task's trace. Log-like, other than a session's `TraceEvent`."""

    #: Time of the event.
    timestamp: Timestamp
    #: Severity.
    level: TaskEventLevel
    #: The step it happened in.
    step: NotRequired[Union[str, None]]
    #: Name of the event, e.g. `started`.
    event: str
    #: More about it.
    data: NotRequired[Any]


TaskEventLevel = Union[Literal["info"], Literal["debug"], Literal["warn"], Literal["error"]]


TaskKind = Union[Literal["atomic"], Literal["scenario"]]


class TaskMetadata(TypedDict):
    """Labels and limits of an atomic task. Any other field is an error."""

    #: For choosing tasks.
    tags: NotRequired[Union[list[str], None]]
    #: Higher runs in an earlier block.
    priority: NotRequired[Union[int, None]]
    #: Time limit in milliseconds.
    timeout: NotRequired[Union[int, None]]


Timestamp = str


class TimingBreakdown(TypedDict):
    """Durations of a turn and of its parts."""

    #: Wall time from sending the prompt to the end of the answer.
    wallMs: Union[float, None]
    #: Named intervals inside it.
    segments: list[TimingSegment]


class TimingSegment(TypedDict):
    """A named interval, counted from the start of the prompt."""

    #: The name of this part; becomes the metric `latency_<label>_ms`.
    label: str
    #: Start of the interval.
    startMs: float
    #: End of the interval.
    endMs: float


class TokenBreakdown(TypedDict):
    """Disjoint counts of tokens. A count that the source does not report is absent. A source that does not split reasoning leaves `reasoning` absent, and `output` holds both."""

    #: Input that was neither read from nor written to a cache.
    input: Union[int, None]
    #: Visible output.
    output: Union[int, None]
    #: Output spent on reasoning.
    reasoning: Union[int, None]
    #: Input read from a prompt cache.
    cacheRead: Union[int, None]
    #: Input written to a prompt cache.
    cacheWrite: Union[int, None]
    #: The sum of the five.
    total: Union[int, None]
    #: The total without cache reads.
    active: Union[int, None]


class ToolCallRecord(TypedDict):
    """One tool invocation."""

    #: The tool's name as the agent calls it.
    name: str
    #: The kind of tool, for grouping.
    category: str
    #: `false` for a non-zero exit of a command, a result that is marked as an error, and a call that was rejected or names an unknown tool. Absent when the agent reports none of it.
    success: Union[bool, None]
    #: Duration. Absent when it was not timed.
    durationMs: Union[float, None]
    #: The error.
    error: NotRequired[Union[str, None]]
    #: The model call whose answer asked for it. Calls of one answer run in parallel and repeat nothing.
    callRef: NotRequired[Union[str, None]]


class ToolCallSummary(TypedDict):
    """The tools called during a trial."""

    #: All calls. Absent when the provider cannot see tools, as are the other numbers.
    total: NotRequired[Union[int, None]]
    #: Calls by category.
    byCategory: dict[str, int]
    #: Failed calls: a non-zero exit of a command, a result marked as an error, a rejected or unknown tool. Absent when the outcome of one of the calls is unknown.
    failed: NotRequired[Union[int, None]]
    #: Calls that repeat a failed call of the same tool, asked for by a later answer. Absent when `failed` is.
    retried: NotRequired[Union[int, None]]
    #: Failed divided by total; 0 without calls. Absent when `failed` is.
    errorRate: NotRequired[Union[float, None]]
    #: Each call.
    records: list[ToolCallRecord]


class TraceEventReasoning(TypedDict):
    """Internal reasoning of the agent."""

    type: Literal["reasoning"]
    #: The thoughts.
    content: str
    #: Duration.
    durationMs: NotRequired[Union[float, None]]
    #: Tokens used.
    tokenCount: NotRequired[Union[int, None]]
    #: Start time.
    timestamp: NotRequired[Union[Timestamp, None]]
    #: The subagent that did it.
    agentId: NotRequired[Union[str, None]]
    #: The event that caused it.
    parentEventId: NotRequired[Union[str, None]]
    #: The tool call's own id.
    callId: NotRequired[Union[str, None]]
    #: The model call it came from.
    callRef: NotRequired[Union[str, None]]
    #: The duration is an upper bound: only what happened before and after was seen.
    durationIsBound: NotRequired[bool]


class TraceEventToolCall(TypedDict):
    """A tool invocation with its result."""

    type: Literal["tool_call"]
    #: The tool's name.
    name: str
    #: Arguments.
    input: Any
    #: Result.
    output: Any
    #: Duration.
    durationMs: NotRequired[Union[float, None]]
    #: `false` for a non-zero exit, a result marked as an error, a rejected or unknown tool. Absent when the agent reports none of it.
    success: NotRequired[Union[bool, None]]
    #: The error.
    error: NotRequired[Union[str, None]]
    #: Start time.
    timestamp: NotRequired[Union[Timestamp, None]]
    #: The subagent that did it.
    agentId: NotRequired[Union[str, None]]
    #: The event that caused it.
    parentEventId: NotRequired[Union[str, None]]
    #: The tool call's own id.
    callId: NotRequired[Union[str, None]]
    #: The model call it came from.
    callRef: NotRequired[Union[str, None]]
    #: The duration is an upper bound: only what happened before and after was seen.
    durationIsBound: NotRequired[bool]


class TraceEventTextOutput(TypedDict):
    """Text shown to the user."""

    type: Literal["text_output"]
    #: The text.
    content: str
    #: Tokens used.
    tokenCount: NotRequired[Union[int, None]]
    #: Start time.
    timestamp: NotRequired[Union[Timestamp, None]]
    #: The subagent that did it.
    agentId: NotRequired[Union[str, None]]
    #: The event that caused it.
    parentEventId: NotRequired[Union[str, None]]
    #: The tool call's own id.
    callId: NotRequired[Union[str, None]]
    #: The model call it came from.
    callRef: NotRequired[Union[str, None]]
    #: The duration is an upper bound: only what happened before and after was seen.
    durationIsBound: NotRequired[bool]


class TraceEventTurnBoundary(TypedDict):
    """The start of a turn."""

    type: Literal["turn_boundary"]
    #: Counted as the provider counts.
    turnNumber: int
    #: Start time.
    timestamp: Timestamp


class TraceEventError(TypedDict):
    """An error that the agent or its program reported."""

    type: Literal["error"]
    #: The error.
    message: str
    #: True if the session continued.
    recoverable: bool
    #: Start time.
    timestamp: NotRequired[Union[Timestamp, None]]
    #: The subagent that did it.
    agentId: NotRequired[Union[str, None]]
    #: The event that caused it.
    parentEventId: NotRequired[Union[str, None]]
    #: The tool call's own id.
    callId: NotRequired[Union[str, None]]
    #: The model call it came from.
    callRef: NotRequired[Union[str, None]]
    #: The duration is an upper bound: only what happened before and after was seen.
    durationIsBound: NotRequired[bool]


TraceEvent = Union["TraceEventReasoning", "TraceEventToolCall", "TraceEventTextOutput", "TraceEventTurnBoundary", "TraceEventError"]


class TraceSummary(TypedDict):
    """Totals over a session."""

    #: Number of turns: model answers of the main agent. Absent where the trace marks none.
    totalTurns: Union[int, None]
    #: Number of tool calls.
    totalToolCalls: int
    #: Tokens of all model calls.
    totalTokens: TokenBreakdown
    #: Wall time from the first to the last event; parallel tools overlap in it.
    totalDuration: Union[float, None]


class Turn(TypedDict):
    """A numbered group of consecutive events: what the agent did between two boundaries."""

    #: Counted as the provider counts.
    number: int
    #: Its events.
    events: list[TraceEvent]
    #: Start time.
    startTimestamp: Timestamp
    #: End time.
    endTimestamp: Timestamp
    #: Duration.
    durationMs: Union[float, None]


class UserTurn(TypedDict):
    """One user message of a session."""

    #: Time of sending. A program that is started for the message starts then.
    startedAt: Timestamp
    #: Time until the agent ended its turn or was stopped.
    durationMs: Union[float, None]


VoidCause = Union[Literal["workspace_setup"], Literal["agent_start"], Literal["no_model_answer"], Literal["llm_error"], Literal["llm_no_answer"], Literal["provider"], Literal["runner"], Literal["workspace_lost"], Literal["scorer"], Literal["unknown"]]


class WorkspaceChange(TypedDict):
    """One file the agent touched."""

    #: Relative to the workspace, with `/`.
    path: str
    #: `added`, `modified` or `deleted`.
    kind: str


WorkspaceMethod = Union[Literal["auto"], Literal["overlay"], Literal["reflink"], Literal["recycle"], Literal["copy"]]


WorkspaceSpec = TypedDict("WorkspaceSpec", {"from": "NotRequired[Union[str, None]]", "git": "NotRequired[Union[GitSource, None]]", "method": "NotRequired[Union[WorkspaceMethod, None]]", "setupOnce": "NotRequired[list[str]]", "setup": "NotRequired[list[str]]", "setupTimeoutMs": "NotRequired[Union[int, None]]", "environment": "NotRequired[dict[str, str]]"})
