// Made from the contracts in Rust by `UPDATE_SCHEMAS=1 cargo test kit_types`. Not for editing.

/** The argument of `after_scenario`. */
export interface AfterScenarioContext {
  /** The scenario about to run. */
  readonly scenario: BaseScenario
  /** Its mode. */
  readonly mode: string
  /** Its model. */
  readonly model: string
  /** The repetition. */
  readonly iteration: number
  /** The row as it stands. */
  readonly result: ProfileRow
  /** The session's trace. Null when export is off or failed. */
  readonly trace: SessionTrace | null
}

/** `hooks/afterScenario`. */
export interface AfterScenarioParams {
  /** The trial and its row as it stands. */
  readonly context: AfterScenarioContext
}

/** One finding, in a form that a report can show. */
export type AnalysisFinding = { readonly type: "number"; readonly value: number; readonly unit: string } | { readonly type: "string"; readonly value: string } | { readonly type: "list"; readonly values: readonly string[] } | { readonly type: "table"; readonly headers: readonly string[]; readonly rows: readonly (readonly string[])[] } | { readonly type: "ratio"; readonly value: number; readonly label: string }

/** Findings of one analyzer in one session. */
export interface AnalysisResult {
  /** The analyzer's name. */
  readonly analyzer: string
  /** Findings by key; keys carry the analyzer's own prefix. */
  readonly findings: Readonly<Record<string, AnalysisFinding>>
  /** One sentence for quick scanning. */
  readonly summary: string
}

/** `analyzer/analyze`. */
export interface AnalyzerAnalyzeParams {
  /** The analyzer's id. */
  readonly analyzer: string
  /** The session. */
  readonly trace: SessionTrace
  /** The scenario that the agent was given. */
  readonly scenario: BaseScenario
  /** The mode. */
  readonly mode: string
}

/** An analyzer that the plugin serves. */
export interface AnalyzerOffer {
  /** The name under which suites use it. */
  readonly name: string
}

/** The word `any`. */
export type AnyNumber = "any"

/** A task for a single capability. A module's own fields belong into `extensions`; any other unknown field is an error. */
export interface AtomicTask {
  /** Unique in the suite. */
  readonly id: string
  /** A short title. */
  readonly name: string
  /** The capability, e.g. `intent`; a runner serves one. */
  readonly type: string
  /** The input of the capability. */
  readonly input: unknown
  /** The expected output. */
  readonly expected?: unknown
  /** More that it may use. */
  readonly context?: Readonly<Record<string, unknown>> | null
  /** Labels and limits. */
  readonly metadata: TaskMetadata
  /** Fields of the module's own. */
  readonly extensions?: Readonly<Record<string, unknown>> | null
  /** Conditions over scores under which the task counts as passed. */
  readonly pass?: readonly string[]
}

/** An attempt that was tried again. */
export interface Attempt {
  /** The outcome of the attempt. */
  readonly outcome: Outcome
  /** Its session. Absent when none was created. */
  readonly sessionId?: string | null
  /** Tokens it used. */
  readonly tokens: TokenBreakdown
  /** Money it cost. */
  readonly costUsd?: number | null
  /** The known part of the tokens, where their total is unknown because a model call is incomplete. */
  readonly tokensAtLeast?: TokenBreakdown | null
  /** The cost of that part. */
  readonly costAtLeastUsd?: number | null
  /** Duration. */
  readonly wallMs?: number | null
  /** The error. */
  readonly error?: string | null
  /** Error code for machines. */
  readonly errorCode?: string | null
}

/** One task for an agent, resolved: every default filled in, every variable replaced. The fields down to `extensions` are what every plugin may rely on; the rest is Assize's own. */
export interface BaseScenario {
  /** Unique in the suite. */
  readonly id: string
  /** A short title. */
  readonly name: string
  /** The purpose of the scenario. */
  readonly description: string
  /** The first user message. */
  readonly prompt: string
  /** The time limit for all turns together. */
  readonly timeoutMs: number
  /** Retries of a void attempt. */
  readonly allowedRetries: number
  /** For choosing scenarios. */
  readonly tags: readonly string[]
  /** Whatever a plugin needs to know; scorers get it as `metadata`. */
  readonly extensions: Readonly<Record<string, unknown>>
  /** Further user messages, sent one by one. */
  readonly turns?: readonly string[]
  /** The files the agent works on. */
  readonly workspace?: WorkspaceSpec | null
  /** JSON Schema of a valid answer; decides `outputValid`. */
  readonly outputSchema?: unknown
  /** The checks, in the form the `checks` scorer reads. */
  readonly checks?: readonly unknown[]
  /** The rubric, in the form the `judge` scorer reads. */
  readonly rubric?: unknown
  /** The wall around the agent, where it is another than the mode's. */
  readonly sandbox?: Sandbox | null
  /** True when the skill on trial should be used. Absent: not stated. */
  readonly shouldTrigger?: boolean | null
}

/** The argument of `before_scenario`. */
export interface BeforeScenarioContext {
  /** The scenario about to run. */
  readonly scenario: BaseScenario
  /** Its mode. */
  readonly mode: string
  /** Its model. */
  readonly model: string
  /** The repetition. */
  readonly iteration: number
}

/** `hooks/beforeScenario`. */
export interface BeforeScenarioParams {
  /** The trial about to begin. */
  readonly context: BeforeScenarioContext
}

/** The direction in which a metric gets better. */
export type Better = "lower" | "higher"

/** The end of an exchange with a model that gave no whole answer. */
export type CallEnding = "cut" | "client_gone" | "no_answer"

/** `$/cancel`, in either direction: the answer to this request is not needed any more. */
export interface CancelParams {
  /** The request. */
  readonly id: number
}

/** The contracts that a plugin serves. Several of each contract may be offered; suites refer to them by id. */
export interface Capabilities {
  /** Ways to reach agents. */
  readonly providers?: readonly ProviderOffer[]
  /** Judges of trials. */
  readonly scorers?: readonly ScorerOffer[]
  /** Sources of metrics. */
  readonly collectors?: readonly CollectorOffer[]
  /** Explainers of sessions. */
  readonly analyzers?: readonly AnalyzerOffer[]
  /** Present when the plugin resolves modes; suites use the plugin's id. */
  readonly modeResolver?: ModeResolverOffer | null
  /** Present when the plugin has hooks; suites use the plugin's id. */
  readonly hooks?: HooksOffer | null
  /** Executors of tasks. */
  readonly runners?: readonly RunnerOffer[]
  /** Judges of tasks. */
  readonly evaluators?: readonly EvaluatorOffer[]
  /** The number of requests that may be under way at once. Absent: any number. */
  readonly concurrency?: Concurrency | null
}

/** `collector/collect`. */
export interface CollectorCollectParams {
  /** The collector's id. */
  readonly collector: string
  /** All turns merged; after a failure what is known. */
  readonly result: PromptResult
  /** The scenario that the agent was given. */
  readonly scenario: BaseScenario
  /** The mode. */
  readonly mode: string
  /** The session. Null when export is off or failed. */
  readonly trace: SessionTrace | null
}

/** A collector that the plugin serves. */
export interface CollectorOffer {
  /** The name under which suites use it. */
  readonly id: string
}

/** The reason why a turn ended. */
export type CompletionReason = "stop" | "timeout" | "error" | "tool_limit"

/** The most sessions one instance of a provider can have at once. In JSON a number, or `any`. */
export type Concurrency = number | AnyNumber

/** Settings of `container`. */
export interface Container {
  /** The image. Either this or `build`. */
  readonly image?: string | null
  /** A directory with a Dockerfile to build the image from. Relative to the suite. */
  readonly build?: string | null
  /** The program that runs containers. Default: the first that works. */
  readonly engine?: ContainerEngine
  /** The most processors it may use; fractions are possible. */
  readonly cpus?: number | null
  /** The most memory it may use, in megabytes. */
  readonly memory_mb?: number | null
  /** `open` (default), `model` or `none`. */
  readonly network?: ContainerNetwork
  /** Directories of the host inside the container: `HOST:CONTAINER`, or `HOST:CONTAINER:ro`. Relative to the suite. */
  readonly mounts?: readonly string[]
  /** The user inside, by name or `UID:GID`. Default: the image's own. */
  readonly user?: string | null
  /** The directory inside in which programs start where the scenario has no workspace. Default: the image's own. */
  readonly workdir?: string | null
  /** Variables of everything inside, over the image's own. The mode's variables go before them. */
  readonly environment?: Readonly<Record<string, string>>
  /** A directory inside whose skills the agent is given, where its kind of agent looks for them. */
  readonly skills_dir?: string | null
  /** Lines for the shell inside that are run as root before the agent starts. */
  readonly setup?: readonly string[]
  /** A command that must succeed inside before the agent starts. */
  readonly healthcheck?: Healthcheck | null
  /** Add the agent to the image where it is missing, as `assize image build` does. Default: false. */
  readonly install_agent?: boolean
  /** Time limit for building the image, in milliseconds. Default: 1800000. */
  readonly build_timeout_ms?: number | null
}

/** The program that runs containers. */
export type ContainerEngine = "auto" | "docker" | "podman" | "nerdctl"

/** The network of a container. */
export type ContainerNetwork = "open" | "model" | "none"

/** Money spent, by what it was spent on. */
export interface CostBreakdown {
  /** All of it. */
  readonly totalUsd: number | null
  /** For input tokens. */
  readonly inputUsd: number | null
  /** For visible output tokens. */
  readonly outputUsd: number | null
  /** For reasoning tokens. */
  readonly reasoningUsd: number | null
}

/** The same cost read in different ways. */
export interface CostReadings {
  /** The agent's own figure. */
  readonly reportedUsd: number | null
  /** Tokens times prices, cache prices applied. */
  readonly computedUsd: number | null
  /** Tokens times prices, every input token priced as uncached. */
  readonly cacheNeutralUsd: number | null
}

/** The source of a cost. */
export type CostSource = "computed" | "reported" | "unknown"

/** Settings of a session. The first three fields are for everyone; the others carry what a session-scoped provider needs to know. */
export interface CreateSessionParams {
  /** System instructions for the agent. */
  readonly systemInstructions: string
  /** The scenario, for labelling. */
  readonly scenarioId: string
  /** The repetition, for labelling; −1 for the warm-up. */
  readonly iteration: number
  /** The number of the attempt, from 0. */
  readonly attempt: number
  /** The mode to serve. */
  readonly mode: string
  /** The model to use. */
  readonly model: string
  /** Variables for every process started for the session. */
  readonly environment: Readonly<Record<string, string>>
  /** The directory the agent works in. */
  readonly workdir: string
  /** Permissions of the agent: what it may do without asking. */
  readonly permissions: PermissionConfig
  /** The mode's settings for this provider. */
  readonly providerOverrides: Readonly<Record<string, unknown>>
  /** The same for the same cell and attempt in every run with the same seed. */
  readonly seed: number
}

/** One metric of one trial. Its name becomes a key of the row's `extensions`. */
export interface CustomMetric {
  /** Unique among all collectors of a suite; the last one wins. */
  readonly name: string
  /** Numbers are aggregated, texts are kept. */
  readonly value: MetricValue
  /** For display: `count`, `ms`, `USD`, `tokens`, `ratio`, or any other word. */
  readonly unit: string
  /** The direction that counts as better. Absent: differences are shown and not judged, unless the suite declares a direction. */
  readonly better?: Better | null
  /** The name in tables and sentences. Absent: `name`. */
  readonly label?: string | null
}

/** A name with its settings, as it is written. */
export interface DetailedSandbox {
  /** Rules of the kernel around the agent's processes. */
  readonly guard?: Guard | null
  /** A container of an image. */
  readonly container?: Container | null
}

/** `evaluator/evaluate`. */
export interface EvaluatorEvaluateParams {
  /** The evaluator's id. */
  readonly evaluator: string
  /** The execution. */
  readonly run: RunRecord
  /** The executed task. */
  readonly task: AtomicTask
  /** The evaluator's configuration in the suite. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** `evaluator/evaluateScenario`. */
export interface EvaluatorEvaluateScenarioParams {
  /** The evaluator's id. */
  readonly evaluator: string
  /** The execution of the whole chain. */
  readonly run: RunRecord
  /** The chain. */
  readonly task: ScenarioTask
  /** The evaluator's configuration in the suite. */
  readonly config?: Readonly<Record<string, unknown>>
}

/** An evaluator that the plugin serves. */
export interface EvaluatorOffer {
  /** The name under which suites use it. */
  readonly id: string
  /** The metrics it can give. */
  readonly metrics: readonly string[]
}

/** Evidence for a score, for people to follow. */
export interface Evidence {
  /** In words. */
  readonly explanation?: string | null
  /** The passages that decided it. */
  readonly snippets?: readonly string[] | null
  /** The values that were compared. */
  readonly alignment?: Readonly<Record<string, unknown>> | null
}

/** The condition under which a task is executed. */
export interface ExecutionSetting {
  /** The mode. */
  readonly mode: string
  /** The model that the suite asks for. Empty when it names none. */
  readonly model: string
  /** The repetition; −1 for the warm-up. */
  readonly iteration: number
  /** The number of the attempt, from 0. */
  readonly attempt: number
  /** The step of a chain that is executed. */
  readonly step?: string | null
  /** The same for the same cell and attempt in every run with the same seed. */
  readonly seed: number
  /** Time limit of the execution. */
  readonly timeoutMs: number
  /** The mode's system instructions. */
  readonly systemInstructions: string
}

/** `error.data` of a provider's failure. */
export interface FailureData {
  /** Whose fault it is. Absent: not the agent's, so the trial is void. */
  readonly fault?: Fault | null
  /** A word for machines; becomes the row's `errorCode`. */
  readonly code?: string | null
  /** Usage before the error. */
  readonly partial?: PromptResult | null
  /** The reason why the trial is void, where the provider knows it. */
  readonly voidCause?: VoidCause | null
}

/** Whose fault a provider's error is. */
export type Fault = "agent" | "service"

/** A commit in a repository on this machine. */
export interface GitSource {
  /** Path of the repository, relative to the suite. */
  readonly repo: string
  /** Branch, tag or commit. */
  readonly ref: string
}

/** Settings of `guard`. */
export interface Guard {
  /** `open` (default), or `model`: TCP connections only to the capture proxy and to servers that the suite names. */
  readonly network?: GuardNetwork
  /** Files and directories that the agent must not read, besides the suite's own. Relative to the suite. */
  readonly hide?: readonly string[]
  /** Files and directories below hidden ones that the agent may read all the same. Relative to the suite. */
  readonly show?: readonly string[]
}

/** The TCP connections that `guard` allows. */
export type GuardNetwork = "open" | "model"

/** A command that says whether a container is ready, tried again and again. */
export interface Healthcheck {
  /** A line for the shell inside. Exit code 0 means ready. */
  readonly command: string
  /** The time between two tries. Default: 5000. */
  readonly interval_ms: number
  /** The time for one try. Default: 30000. */
  readonly timeout_ms: number
  /** Failures in this time after the start do not count. Default: 0. */
  readonly start_period_ms: number
  /** The time between two tries in that period. Default: 5000. */
  readonly start_interval_ms: number
  /** The failures in a row after which the container counts as broken. Default: 3. */
  readonly retries: number
}

/** An error of a plugin, or of another part of the trial that is not needed for its result: that part is left out. */
export interface HookError {
  /** The part that failed: a hook (`beforeScenario`), `collector:<id>`, `analyzer:<name>`, `exportSession`, `destroySession`. */
  readonly hook: string
  /** Its message. */
  readonly message: string
}

/** The six hooks. */
export type HookEvent = "beforeScenario" | "afterScenario" | "beforeMode" | "afterMode" | "beforeRun" | "afterRun"

/** The hooks that the plugin has. */
export interface HooksOffer {
  /** Only these are called. */
  readonly events: readonly HookEvent[]
  /** True when several may be under way at once. */
  readonly concurrent: boolean
}

/** A program's name and version. */
export interface Info {
  /** Its name. */
  readonly name: string
  /** Its version. */
  readonly version: string
}

/** The first request: the host, its version, and the suite's `options`. */
export interface InitializeParams {
  /** The highest version the host speaks. */
  readonly protocolVersion: number
  /** The host. */
  readonly info: Info
  /** Options that the suite gives to the plugin. */
  readonly options: Readonly<Record<string, unknown>>
  /** Further abilities of the host; none yet. */
  readonly capabilities: Readonly<Record<string, unknown>>
}

/** The answer to `initialize`: the version to speak and everything the plugin serves. */
export interface InitializeResult {
  /** The host's version, or the highest the plugin speaks. */
  readonly protocolVersion: number
  /** The plugin. */
  readonly info: Info
  /** The contracts it serves. */
  readonly capabilities: Capabilities
}

/** One piece of data on its way into a step. */
export interface InputMapping {
  /** `step:previous`, `step:<id>.output.path` or `input:<path>`. */
  readonly from: string
  /** `input` or `input.path`. */
  readonly to: string
}

/** `$/log`, from the plugin: a line for its log. */
export interface LogParams {
  /** Its severity: `debug`, `info`, `warn`, `error`. */
  readonly level: string
  /** The message. */
  readonly message: string
}

/** A metric's value. */
export type MetricValue = number | string

/** The settings of a mode. */
export interface ModeConfig {
  /** Variables for every process started for a session of the mode. */
  readonly environment: Readonly<Record<string, string>>
  /** System instructions for the agent. */
  readonly systemInstructions: string
  /** Settings for the provider. */
  readonly providerOverrides: Readonly<Record<string, unknown>>
}

/** `modeResolver/resolve`, `hooks/beforeMode` and `hooks/afterMode`. */
export interface ModeParams {
  /** The mode's name. */
  readonly mode: string
}

/** The plugin resolves modes. */
export type ModeResolverOffer = Readonly<Record<string, unknown>>

/** One request to a model, as seen on the wire or reported by the agent. */
export interface ModelCall {
  /** Unique within the trace; events refer to it as `callRef`. */
  readonly id: string
  /** The model that answered. */
  readonly model: string
  /** The API spoken, e.g. `anthropic-messages`. */
  readonly api?: string | null
  /** A call beside the task itself: a title, a summary. */
  readonly side: boolean
  /** The subagent that made the call. Absent for the main agent. */
  readonly agentId?: string | null
  /** Time of the request. */
  readonly startedAt: Timestamp | null
  /** Time to the first token. */
  readonly ttftMs: number | null
  /** Time to the end of the answer. */
  readonly durationMs: number | null
  /** Tokens of this call. */
  readonly tokens: TokenBreakdown
  /** The known part of the tokens, where the call is incomplete. */
  readonly tokensAtLeast?: TokenBreakdown | null
  /** The part of the cache writes that is kept for an hour and priced higher. */
  readonly cacheWrite1h?: number | null
  /** The class of service it was billed as. */
  readonly serviceTier?: string | null
  /** Cost of this call. */
  readonly costUsd: number | null
  /** Source of the cost. */
  readonly costSource?: CostSource | null
  /** The API's own word for the reason the model stopped. */
  readonly stopReason?: string | null
  /** HTTP status of the final answer. */
  readonly status?: number | null
  /** Number of retries. */
  readonly retries?: number | null
  /** The end of an exchange without a whole answer. */
  readonly ending?: CallEnding | null
  /** The capture proxy changed the request to ask for usage. */
  readonly askedForUsage?: boolean
}

/** The nature of a provider's sessions. */
export type OfferedNature = "live" | "replayed" | "simulated"

/** The part of a run that one instance of a provider can serve. */
export type OfferedScope = "session" | "mode" | "single"

/** The result of a trial. */
export type Outcome = "pass" | "fail" | "void"

/** Permissions of the agent: what it may do without asking. */
export interface PermissionConfig {
  /** Every tool call goes without confirmation. */
  readonly autoApprove: boolean
  /** These tools go without confirmation. */
  readonly allowedTools: readonly string[]
}

/** One finished trial. A line of `rows.jsonl`, and the commit of everything else stored about it. The fields down to `errorCode` are shared with other profilers; the optional ones below are Assize's. */
export interface ProfileRow {
  /** The run the trial belongs to. */
  readonly runId: string
  /** The scenario or task. */
  readonly scenarioId: string
  /** The condition under which it ran. */
  readonly mode: string
  /** The model it ran with. */
  readonly model: string
  /** The repetition, from 0. A warm-up is −1 and never in `rows.jsonl`. */
  readonly iteration: number
  /** Start time of the trial. */
  readonly startedAt: Timestamp
  /** End time of the trial. */
  readonly completedAt: Timestamp
  /** Tokens used by the last attempt. */
  readonly tokens: TokenBreakdown
  /** Time taken by the last attempt. */
  readonly timing: TimingBreakdown
  /** Tools called by the last attempt. */
  readonly toolCalls: ToolCallSummary
  /** Money spent by the last attempt: the reading that `costSource` names. */
  readonly cost: CostBreakdown
  /** True if the goal was reached. */
  readonly success: boolean
  /** Checks that hold. */
  readonly checkpointsPassed: number
  /** Checks made. */
  readonly checkpointsTotal: number
  /** Each check. */
  readonly checkpointDetails: readonly ScorerCheckResult[]
  /** True if the answer has the form the scenario asks for; independent of `success`. */
  readonly outputValid: boolean
  /** The provider's id. */
  readonly provider: string
  /** The provider's id of the session. Absent when none was created. */
  readonly sessionId?: string | null
  /** Turns the agent took: model answers of the main agent. Absent when they were not seen. */
  readonly agentTurns?: number | null
  /** The reason why the session ended. Absent when it never began. */
  readonly completionReason?: CompletionReason | null
  /** Metrics of the collectors, by name. */
  readonly extensions: Readonly<Record<string, unknown>>
  /** The error. */
  readonly error?: string | null
  /** Error code for machines. */
  readonly errorCode?: string | null
  /** Version of the record's form. Absent in foreign ones. */
  readonly schemaVersion?: number | null
  /** The outcome: pass, fail or void. */
  readonly outcome?: Outcome | null
  /** The cause of the void. Absent for other outcomes, and in rows of version 1. */
  readonly voidCause?: VoidCause | null
  /** The known part of the tokens, where their total is unknown because a model call is incomplete. */
  readonly tokensAtLeast?: TokenBreakdown | null
  /** The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete. */
  readonly costAtLeastUsd?: number | null
  /** User messages that were sent. */
  readonly userTurns?: number | null
  /** Attempts before the last one. */
  readonly attempts?: readonly Attempt[]
  /** Parts of the trial that broke without deciding it: hooks, collectors, analyzers, the export. */
  readonly hookErrors?: readonly HookError[]
  /** Place in the plan, from 0. */
  readonly position?: number | null
  /** The group of cells that are compared with each other. */
  readonly block?: number | null
  /** Source of `cost`. */
  readonly costSource?: CostSource | null
  /** All readings of the cost. */
  readonly costReadings?: CostReadings | null
  /** Time ran out: time, tokens and cost are lower bounds. */
  readonly censored?: boolean
  /** The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims. */
  readonly notCaptured?: boolean
  /** The agent signed in with a subscription: the cost is what its tokens would cost, not what was billed. */
  readonly subscription?: boolean
  /** Answers came from a recording. */
  readonly replayed?: boolean
  /** Made up by the `simulated` provider. */
  readonly simulated?: boolean
}

/** The exit and the resource use of the program behind a session, including everything it started. A value that the system does not report is absent. */
export interface ProgramUse {
  /** Its exit code. Absent when a signal ended it. */
  readonly exitCode: number | null
  /** The signal that ended it. */
  readonly signal: number | null
  /** CPU time. */
  readonly cpuMs: number | null
  /** The most memory in use. */
  readonly peakMemoryBytes: number | null
  /** Processes that the system killed because the memory of their container was used up. Absent without a container. */
  readonly oomKills?: number | null
}

/** `$/progress`, from the plugin: how far a request has come. Kept in the plugin's log. */
export interface ProgressParams {
  /** The request's id. */
  readonly token: unknown
  /** In words. */
  readonly message?: string | null
  /** The amount that is done. */
  readonly done?: number | null
  /** Of how much. */
  readonly total?: number | null
}

/** Measurements that a provider took during a prompt. */
export interface PromptMetrics {
  /** Tokens used. Unknown where one model call did not report them. */
  readonly tokens: TokenBreakdown
  /** The known part of the tokens, where their total is unknown because a model call is incomplete. */
  readonly tokensAtLeast?: TokenBreakdown | null
  /** The agent's own count, where `tokens` were counted elsewhere: the counts that differ, or all of them where the total is unknown. */
  readonly reportedTokens?: TokenBreakdown | null
  /** Time taken. */
  readonly timing: TimingBreakdown
  /** One record per tool invocation. Absent when the provider cannot see tools. */
  readonly toolCalls: readonly ToolCallRecord[]
  /** Money spent, as the agent reports it. */
  readonly cost: CostBreakdown
  /** The cost of the known part of the tokens, where the cost is unknown because a model call is incomplete. */
  readonly costAtLeastUsd?: number | null
  /** The cost reported by the agent, where `cost` was computed from the same tokens and differs by more than rounding. */
  readonly reportedCostUsd?: number | null
  /** The agent reached its model by a way that the capture proxy does not see: all numbers are its own claims. */
  readonly notCaptured?: boolean
  /** The agent signed in with a subscription: its tokens are not billed one by one. */
  readonly subscription?: boolean
  /** The program behind the session. Absent when the provider started none. */
  readonly program?: ProgramUse | null
}

/** The agent's answer to one user message and what it took. */
export interface PromptResult {
  /** The agent's text response. */
  readonly text: string
  /** Measurements of this turn. */
  readonly metrics: PromptMetrics
  /** The reason why the turn ended. */
  readonly completionReason: CompletionReason
}

/** Everything needed to repeat an execution. */
export interface Provenance {
  /** The runner used; `scenario` for a chain. */
  readonly runnerId: string
  /** Its version. */
  readonly runnerVersion: string
  /** Its configuration. */
  readonly config: Readonly<Record<string, unknown>>
  /** Stable hash of the resolved configuration. */
  readonly configHash?: string | null
  /** Stable hash of everything that could change the result. */
  readonly runFingerprint?: string | null
  /** Stable hash of what the capability was given: type, input and context of the task, and for a chain its data flow. */
  readonly inputHash?: string | null
}

/** Settings of a provider instance. */
export interface ProviderConfig {
  /** A free loopback port, one per instance, for a server if it needs one. */
  readonly port: number
  /** The model to use. The first one for a session-scoped provider. */
  readonly model: string
  /** The mode to serve. The first one for a session-scoped provider. */
  readonly mode: string
  /** Permissions of the agent: what it may do without asking. */
  readonly permissions: PermissionConfig
  /** Variables for every process started for a session. */
  readonly environment: Readonly<Record<string, string>>
  /** The suite's directory. */
  readonly workdir: string
  /** The mode's settings for this provider. */
  readonly providerOverrides?: Readonly<Record<string, unknown>>
}

/** `provider/createSession`. */
export interface ProviderCreateSessionParams {
  /** The provider's id. */
  readonly provider: string
  /** The parameters that the session is created with. */
  readonly params: CreateSessionParams
}

/** `provider/init`. */
export interface ProviderInitParams {
  /** The provider's id. */
  readonly provider: string
  /** The configuration that the instance is started with. */
  readonly config: ProviderConfig
}

/** A provider that the plugin serves. */
export interface ProviderOffer {
  /** The name under which suites use it. */
  readonly id: string
  /** The extent that one instance can serve. */
  readonly scope: OfferedScope
  /** The number of sessions that one instance can have at once. Absent: what the plugin says, else one. */
  readonly concurrency?: Concurrency | null
  /** The model when the suite names none. */
  readonly defaultModel?: string | null
  /** True when sessions can cost real money. Absent: they can. */
  readonly mayCost?: boolean | null
  /** The nature of its sessions. */
  readonly nature: OfferedNature
  /** The time past a prompt's timeout that it may take to wind down and answer with what was used. */
  readonly timeoutGraceMs?: number | null
}

/** `provider/prompt`. */
export interface ProviderPromptParams {
  /** The provider's id. */
  readonly provider: string
  /** The session. */
  readonly handle: SessionHandle
  /** The user's message. */
  readonly text: string
  /** The rest of the trial's time. */
  readonly timeoutMs: number
}

/** `provider/exportSession` and `provider/destroySession`. */
export interface ProviderSessionParams {
  /** The provider's id. */
  readonly provider: string
  /** The session. */
  readonly handle: SessionHandle
}

/** `provider/shutdown`. */
export interface ProviderShutdownParams {
  /** The provider's id. */
  readonly provider: string
}

/** The error of a failed request. */
export interface RpcError {
  /** One of the codes of the protocol. */
  readonly code: number
  /** The error, for people. */
  readonly message: string
  /** The error, for machines. */
  readonly data?: unknown
}

/** The argument of the run hooks. */
export interface RunContext {
  /** The run's id. */
  readonly runId: string
  /** All modes. */
  readonly modes: readonly string[]
  /** All scenarios. */
  readonly scenarios: readonly BaseScenario[]
  /** Repetitions of each scenario under each arm. */
  readonly repetitions: number
}

/** The error of an execution. */
export interface RunError {
  /** The error. */
  readonly message: string
  /** The step or phase in which it happened. */
  readonly step?: string | null
  /** Stack trace of the runner, if it gave one. */
  readonly stack?: string | null
}

/** Time, tokens and cost of an execution. */
export interface RunMetrics {
  /** Wall time in milliseconds. */
  readonly latency: number
  /** Tokens used. */
  readonly tokens?: number | null
  /** Money spent, in US dollars. */
  readonly cost?: number | null
  /** Source of the cost, if the runner gave it. */
  readonly costSource?: CostSource | null
}

/** `hooks/beforeRun` and `hooks/afterRun`. */
export interface RunParams {
  /** The run. */
  readonly context: RunContext
}

/** One execution of a task by a runner. A line of `runs.jsonl`. */
export interface RunRecord {
  /** Version of the record's form. Absent in foreign ones. */
  readonly schemaVersion?: number | null
  /** Unique; score records refer to it. */
  readonly id: string
  /** The task executed. */
  readonly taskId: string
  /** One capability, or a chain. */
  readonly taskType: TaskKind
  /** Status. Stored records are completed or failed. */
  readonly status: RunStatus
  /** Output of the capability. */
  readonly output?: unknown
  /** The error and its place. */
  readonly error?: RunError | null
  /** Time, tokens and cost. */
  readonly metrics: RunMetrics
  /** Events: at least started, and completed or failed. */
  readonly trace: readonly TaskEvent[]
  /** The steps of a chain. */
  readonly steps?: readonly StepSummary[] | null
  /** Start time. */
  readonly startedAt: Date
  /** End time. */
  readonly completedAt?: Date | null
  /** Everything needed to repeat the execution. */
  readonly provenance: Provenance
}

/** The status of an execution. */
export type RunStatus = "pending" | "running" | "completed" | "failed"

/** `runner/execute`. */
export interface RunnerExecuteParams {
  /** The runner's id. */
  readonly runner: string
  /** The task to execute. */
  readonly task: AtomicTask
  /** The runner's configuration in the suite. */
  readonly config: unknown
  /** The cell of the experiment. Absent when there is no experiment. */
  readonly setting?: ExecutionSetting | null
}

/** A runner that the plugin serves. */
export interface RunnerOffer {
  /** The name under which suites use it. */
  readonly id: string
  /** The task type it serves. */
  readonly type: string
  /** Its version; part of every record's provenance. */
  readonly version: string
}

/** The wall around the agent of a trial: `guard`, `none`, or a name with settings. */
export type Sandbox = "guard" | "none" | DetailedSandbox

/** A chain of atomic tasks whose data flow is declared. */
export interface ScenarioTask {
  /** Unique in the suite. */
  readonly id: string
  /** A short title. */
  readonly name: string
  /** The purpose of the chain. */
  readonly description: string
  /** Done in this order. */
  readonly steps: readonly AtomicTask[]
  /** For each step, what is put into its input and from where. */
  readonly input_map: Readonly<Record<string, readonly InputMapping[]>>
  /** `tags`, `priority`, `timeout` and `scenarioInput`, and labels of the author's own. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** The value that `input:` paths refer to. */
  readonly input?: unknown
  /** Fields of the module's own. */
  readonly extensions?: Readonly<Record<string, unknown>> | null
  /** Conditions over scores under which the task counts as passed. */
  readonly pass?: readonly string[]
}

/** One score with its evidence. A line of `scores.jsonl`. */
export interface ScoreRecord {
  /** Version of the record's form. Absent in foreign ones. */
  readonly schemaVersion?: number | null
  /** Unique. */
  readonly id: string
  /** The run record it scores. */
  readonly runId: string
  /** The metric, e.g. `accuracy`. */
  readonly metric: string
  /** The score. */
  readonly value: ScoreValue
  /** The part of the execution that is scored. */
  readonly target: ScoreTarget
  /** Evidence for the score. */
  readonly evidence?: Evidence | null
  /** The evaluator. */
  readonly evaluatorId: string
  /** Time of scoring. */
  readonly createdAt: Date
}

/** The part of an execution that a score is about. */
export type ScoreTarget = string

/** A score's value. */
export type ScoreValue = boolean | number | string

/** One check. */
export interface ScorerCheckResult {
  /** Unique in the scenario. */
  readonly id: string
  /** The check in words. */
  readonly description: string
  /** True if it holds. */
  readonly passed: boolean
  /** The value found. */
  readonly actual?: unknown
  /** The value expected. */
  readonly expected?: unknown
  /** The reason why it could not be checked. */
  readonly error?: string | null
}

/** The view of a trial that a scorer gets. */
export interface ScorerContext {
  /** The agent's final text. */
  readonly agentOutput: string
  /** The session's trace. Absent when export is off or failed. */
  readonly trace: SessionTrace | null
  /** The mode. */
  readonly mode: string
  /** The model. */
  readonly model: string
  /** The repetition. */
  readonly iteration: number
  /** The scenario's `extensions`. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** All turns merged into one result. */
  readonly result?: PromptResult | null
  /** The directory the agent worked in. */
  readonly workspace?: string | null
  /** Changes the agent made there. */
  readonly changes?: readonly WorkspaceChange[]
}

/** `scorer/evaluate`. */
export interface ScorerEvaluateParams {
  /** The scorer's id. */
  readonly scorer: string
  /** The scenario that the agent was given. */
  readonly scenario: BaseScenario
  /** The result of the session. */
  readonly context: ScorerContext
  /** The keys of the suite's `scorer` besides `uses`. */
  readonly settings?: Readonly<Record<string, unknown>>
}

/** A scorer that the plugin serves. */
export interface ScorerOffer {
  /** The name under which suites use it. */
  readonly id: string
}

/** The judgement of a scorer. */
export interface ScorerResult {
  /** True if the goal was reached. */
  readonly success: boolean
  /** Checks that hold. */
  readonly passed: number
  /** Checks made. */
  readonly total: number
  /** Each check. */
  readonly details: readonly ScorerCheckResult[]
  /** True if the answer has the form the scenario asks for; independent of `success`. */
  readonly outputValid: boolean
  /** The reason why the trial could not be judged. */
  readonly error?: string | null
  /** Metrics of the judging, apart from those of the agent. They become part of the row's `extensions`. */
  readonly metrics?: readonly CustomMetric[]
}

/** A session, as the provider knows it. */
export interface SessionHandle {
  /** Unique among the provider's sessions. */
  readonly sessionId: string
  /** The provider's id. */
  readonly provider: string
  /** Time of creation. */
  readonly createdAt: Timestamp
}

/** The full record of one session, as `exportSession` returns it. Events are shared between `events` and `turns`, which hold the same ones grouped. */
export interface SessionTrace {
  /** Version of the record's form. Absent in foreign ones, and where a provider hands it over. */
  readonly schemaVersion?: number | null
  /** The provider's id of the session. */
  readonly sessionId: string
  /** Everything that happened, in order. */
  readonly events: readonly TraceEvent[]
  /** The same events grouped by turn, without the boundaries. */
  readonly turns: readonly Turn[]
  /** Totals over the session. */
  readonly summary: TraceSummary
  /** One entry per request to a model. Token usage lives here, once. */
  readonly modelCalls?: readonly ModelCall[]
  /** The agent's final text. Absent where it is the last text among the events. */
  readonly answer?: string | null
  /** User messages, with the time the agent worked on each. */
  readonly userTurns?: readonly UserTurn[]
  /** Skills that were looked for on the wire. Empty where nothing was captured or no skill is on trial. */
  readonly skills?: readonly SkillSighting[]
  /** The session was made up by the `simulated` provider. */
  readonly simulated?: boolean
}

/** The first request of a conversation that contained the text of a skill. */
export interface SkillLoad {
  /** The model call of that request. */
  readonly callRef: string
  /** The subagent whose conversation it is. Absent for the main agent. */
  readonly agentId?: string | null
  /** Time of the request. */
  readonly timestamp?: Timestamp | null
  /** Model answers of the main agent before it. */
  readonly turnsBefore: number
  /** Tokens of all model calls before it. Absent where one of them is unknown. */
  readonly tokensBefore?: number | null
  /** The skill's share of the request's input tokens, by its share of the request's bytes: an estimate. */
  readonly textTokens?: number | null
}

/** A skill as requests to models show it. */
export interface SkillSighting {
  /** The skill's name. */
  readonly name: string
  /** Its description was in a request. */
  readonly offered: boolean
  /** The conversations whose requests contained its text, by the first such request of each. */
  readonly loads?: readonly SkillLoad[]
}

/** The status of a step. */
export type StepStatus = "completed" | "failed" | "skipped"

/** One step of a chain. */
export interface StepSummary {
  /** The step's id. */
  readonly stepId: string
  /** The step's name. */
  readonly stepName: string
  /** Its end. */
  readonly status: StepStatus
  /** Wall time in milliseconds. */
  readonly latency: number
  /** Tokens used. */
  readonly tokens?: number | null
  /** Money spent, in US dollars. */
  readonly cost?: number | null
  /** Its output. */
  readonly output?: unknown
  /** The error. */
  readonly error?: string | null
}

/** An event in a task's trace. Log-like, other than a session's `TraceEvent`. */
export interface TaskEvent {
  /** Time of the event. */
  readonly timestamp: Date
  /** Severity. */
  readonly level: TaskEventLevel
  /** The step it happened in. */
  readonly step?: string | null
  /** Name of the event, e.g. `started`. */
  readonly event: string
  /** More about it. */
  readonly data?: unknown
}

/** Severity of an event. */
export type TaskEventLevel = "info" | "debug" | "warn" | "error"

/** The two kinds of task. */
export type TaskKind = "atomic" | "scenario"

/** Labels and limits of an atomic task. Any other field is an error. */
export interface TaskMetadata {
  /** For choosing tasks. */
  readonly tags?: readonly string[] | null
  /** Higher runs in an earlier block. */
  readonly priority?: number | null
  /** Time limit in milliseconds. */
  readonly timeout?: number | null
}

/** An RFC 3339 time in UTC with milliseconds when Assize writes it; as found when someone else did. */
export type Timestamp = string

/** Durations of a turn and of its parts. */
export interface TimingBreakdown {
  /** Wall time from sending the prompt to the end of the answer. */
  readonly wallMs: number | null
  /** Named intervals inside it. */
  readonly segments: readonly TimingSegment[]
}

/** A named interval, counted from the start of the prompt. */
export interface TimingSegment {
  /** The name of this part; becomes the metric `latency_<label>_ms`. */
  readonly label: string
  /** Start of the interval. */
  readonly startMs: number
  /** End of the interval. */
  readonly endMs: number
}

/** Disjoint counts of tokens. A count that the source does not report is absent. A source that does not split reasoning leaves `reasoning` absent, and `output` holds both. */
export interface TokenBreakdown {
  /** Input that was neither read from nor written to a cache. */
  readonly input: number | null
  /** Visible output. */
  readonly output: number | null
  /** Output spent on reasoning. */
  readonly reasoning: number | null
  /** Input read from a prompt cache. */
  readonly cacheRead: number | null
  /** Input written to a prompt cache. */
  readonly cacheWrite: number | null
  /** The sum of the five. */
  readonly total: number | null
  /** The total without cache reads. */
  readonly active: number | null
}

/** One tool invocation. */
export interface ToolCallRecord {
  /** The tool's name as the agent calls it. */
  readonly name: string
  /** The kind of tool, for grouping. */
  readonly category: string
  /** `false` for a non-zero exit of a command, a result that is marked as an error, and a call that was rejected or names an unknown tool. Absent when the agent reports none of it. */
  readonly success: boolean | null
  /** Duration. Absent when it was not timed. */
  readonly durationMs: number | null
  /** The error. */
  readonly error?: string | null
  /** The model call whose answer asked for it. Calls of one answer run in parallel and repeat nothing. */
  readonly callRef?: string | null
}

/** The tools called during a trial. */
export interface ToolCallSummary {
  /** All calls. Absent when the provider cannot see tools, as are the other numbers. */
  readonly total?: number | null
  /** Calls by category. */
  readonly byCategory: Readonly<Record<string, number>>
  /** Failed calls: a non-zero exit of a command, a result marked as an error, a rejected or unknown tool. Absent when the outcome of one of the calls is unknown. */
  readonly failed?: number | null
  /** Calls that repeat a failed call of the same tool, asked for by a later answer. Absent when `failed` is. */
  readonly retried?: number | null
  /** Failed divided by total; 0 without calls. Absent when `failed` is. */
  readonly errorRate?: number | null
  /** Each call. */
  readonly records: readonly ToolCallRecord[]
}

/** One thing that happened in a session. */
export type TraceEvent = { readonly type: "reasoning"; readonly content: string; readonly durationMs?: number | null; readonly tokenCount?: number | null; readonly timestamp?: Timestamp | null; readonly agentId?: string | null; readonly parentEventId?: string | null; readonly callId?: string | null; readonly callRef?: string | null; readonly durationIsBound?: boolean } | { readonly type: "tool_call"; readonly name: string; readonly input: unknown; readonly output: unknown; readonly durationMs?: number | null; readonly success?: boolean | null; readonly error?: string | null; readonly timestamp?: Timestamp | null; readonly agentId?: string | null; readonly parentEventId?: string | null; readonly callId?: string | null; readonly callRef?: string | null; readonly durationIsBound?: boolean } | { readonly type: "text_output"; readonly content: string; readonly tokenCount?: number | null; readonly timestamp?: Timestamp | null; readonly agentId?: string | null; readonly parentEventId?: string | null; readonly callId?: string | null; readonly callRef?: string | null; readonly durationIsBound?: boolean } | { readonly type: "turn_boundary"; readonly turnNumber: number; readonly timestamp: Timestamp } | { readonly type: "error"; readonly message: string; readonly recoverable: boolean; readonly timestamp?: Timestamp | null; readonly agentId?: string | null; readonly parentEventId?: string | null; readonly callId?: string | null; readonly callRef?: string | null; readonly durationIsBound?: boolean }

/** Totals over a session. */
export interface TraceSummary {
  /** Number of turns: model answers of the main agent. Absent where the trace marks none. */
  readonly totalTurns: number | null
  /** Number of tool calls. */
  readonly totalToolCalls: number
  /** Tokens of all model calls. */
  readonly totalTokens: TokenBreakdown
  /** Wall time from the first to the last event; parallel tools overlap in it. */
  readonly totalDuration: number | null
}

/** A numbered group of consecutive events: what the agent did between two boundaries. */
export interface Turn {
  /** Counted as the provider counts. */
  readonly number: number
  /** Its events. */
  readonly events: readonly TraceEvent[]
  /** Start time. */
  readonly startTimestamp: Timestamp
  /** End time. */
  readonly endTimestamp: Timestamp
  /** Duration. */
  readonly durationMs: number
}

/** One user message of a session. */
export interface UserTurn {
  /** Time of sending. A program that is started for the message starts then. */
  readonly startedAt: Timestamp
  /** Time until the agent ended its turn or was stopped. */
  readonly durationMs: number | null
}

/** The cause of a void trial. Void trials whose cause may depend on the mode widen the verdict to its worst and best case; the others are left out and repeated by `--resume --only void`. See [`may_depend_on_mode`](Self::may_depend_on_mode). */
export type VoidCause = "workspace_setup" | "agent_start" | "no_model_answer" | "llm_error" | "llm_no_answer" | "provider" | "runner" | "workspace_lost" | "scorer" | "unknown"

/** One file the agent touched. */
export interface WorkspaceChange {
  /** Relative to the workspace, with `/`. */
  readonly path: string
  /** `added`, `modified` or `deleted`. */
  readonly kind: string
}

/** The method that gives every attempt a directory of its own. The agent finds the same files by every method. */
export type WorkspaceMethod = "auto" | "overlay" | "reflink" | "recycle" | "copy"

/** The source of an agent's files: a directory, a git commit or nothing at all, then set-up commands. */
export interface WorkspaceSpec {
  /** A directory that is copied afresh for every attempt, relative to the suite. */
  readonly from?: string | null
  /** A commit that is checked out afresh for every attempt. */
  readonly git?: GitSource | null
  /** The method that gives an attempt its own view of the source. Default: `auto`. */
  readonly method?: WorkspaceMethod | null
  /** Commands run once per run; every attempt begins with what they left. */
  readonly setupOnce?: readonly string[]
  /** Commands run in the workspace before the agent starts. */
  readonly setup?: readonly string[]
  /** The time limit of each of them. Default: ten minutes. */
  readonly setupTimeoutMs?: number | null
  /** Environment of the set-up commands. */
  readonly environment?: Readonly<Record<string, string>>
}
