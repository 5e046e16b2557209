// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type * as kit from "assize"
import type { Known } from "./known.js"
import type { BaseScenario, CostBreakdown, ProfileRow, TimingBreakdown, TokenBreakdown, ToolCallRecord, TraceEvent, Turn } from "assize"

interface SessionProvider {
  /** Unique identifier for this provider (e.g., "opencode", "claude-sdk") */
  readonly id: string

  /** Initialize the provider (start server, establish connection) */
  init(config: ProviderConfig): Promise<void>

  /** Create a new isolated session for one profiling iteration */
  createSession(params: CreateSessionParams): Promise<SessionHandle>

  /** Send a prompt and wait for the agent to complete its turn */
  prompt(
    handle: SessionHandle,
    text: string,
    timeoutMs?: number,
  ): Promise<PromptResult>

  /** Export the full session trace for analysis */
  exportSession(handle: SessionHandle): Promise<SessionTrace>

  /** Tear down a specific session */
  destroySession(handle: SessionHandle): Promise<void>

  /** Shut down the provider (stop server, clean up resources) */
  shutdown(): Promise<void>
}

interface ProviderConfig {
  /** Port for the agent server (if applicable) */
  readonly port: number
  /** Model identifier */
  readonly model: string
  /** Current execution mode */
  readonly mode: string
  /** Permission configuration for the agent */
  readonly permissions: PermissionConfig
  /** Environment variables to inject */
  readonly environment: Readonly<Record<string, string>>
  /** Working directory for the agent */
  readonly workdir: string
}

interface PermissionConfig {
  /** Allow all tool calls without confirmation */
  readonly autoApprove: boolean
  /** Specific tools to auto-approve */
  readonly allowedTools: readonly string[]
}

interface CreateSessionParams {
  /** System instructions for the agent */
  readonly systemInstructions: string
  /** Scenario identifier (for labeling) */
  readonly scenarioId: string
  /** Iteration number (for labeling) */
  readonly iteration: number
}

interface SessionHandle {
  /** Unique session identifier from the provider */
  readonly sessionId: string
  /** Provider identifier */
  readonly provider: string
  /** ISO timestamp of session creation */
  readonly createdAt: string
}

interface PromptResult {
  /** Agent's text response */
  readonly text: string

  /** Metrics extracted from this turn */
  readonly metrics: {
    readonly tokens: TokenBreakdown
    readonly timing: TimingBreakdown
    readonly toolCalls: readonly ToolCallRecord[]
    readonly cost: CostBreakdown
  }

  /** Why the turn ended */
  readonly completionReason: "stop" | "timeout" | "error" | "tool_limit"
}

interface SessionTrace {
  readonly sessionId: string
  readonly events: readonly TraceEvent[]
  readonly turns: readonly Turn[]
  readonly summary: {
    readonly totalTurns: number
    readonly totalToolCalls: number
    readonly totalTokens: TokenBreakdown
    readonly totalDuration: number
  }
}

interface Scorer {
  /** Unique identifier for this scorer */
  readonly id: string

  /** Evaluate task completion */
  evaluate(
    scenario: BaseScenario,
    context: ScorerContext,
  ): Promise<ScorerResult>
}

interface ScorerContext {
  /** The agent's final text output */
  readonly agentOutput: string
  /** Full session trace (if available) */
  readonly trace: SessionTrace | null
  /** Current mode being evaluated */
  readonly mode: string
  /** Current model being evaluated */
  readonly model: string
  /** Iteration number */
  readonly iteration: number
  /** Consumer-provided extra context */
  readonly metadata: Readonly<Record<string, unknown>>
}

interface ScorerResult {
  /** Overall pass/fail */
  readonly success: boolean
  /** Number of checks that passed */
  readonly passed: number
  /** Total number of checks */
  readonly total: number
  /** Per-check details */
  readonly details: readonly ScorerCheckResult[]
  /** Whether the agent output is valid (format, completeness) */
  readonly outputValid: boolean
  /** Error message if evaluation itself failed */
  readonly error?: string
}

interface ScorerCheckResult {
  readonly id: string
  readonly description: string
  readonly passed: boolean
  readonly actual?: unknown
  readonly expected?: unknown
  readonly error?: string
}

interface Collector {
  /** Unique identifier for this collector */
  readonly id: string

  /** Extract custom metrics from a prompt result */
  collect(
    result: PromptResult,
    scenario: BaseScenario,
    mode: string,
  ): Promise<readonly CustomMetric[]>
}

interface CustomMetric {
  /** Metric name (namespaced, e.g., "ghx.capabilities_used") */
  readonly name: string
  /** Metric value (number for aggregation, string for labels) */
  readonly value: number | string
  /** Unit label (e.g., "count", "ms", "USD") */
  readonly unit: string
}

interface Analyzer {
  /** Unique identifier (e.g., "reasoning", "tool-patterns") */
  readonly name: string

  /** Analyze a single session trace */
  analyze(
    trace: SessionTrace,
    scenario: BaseScenario,
    mode: string,
  ): AnalysisResult
}

interface AnalysisResult {
  /** Analyzer name */
  readonly analyzer: string
  /** Key-value findings */
  readonly findings: Readonly<Record<string, AnalysisFinding>>
  /** Free-text summary */
  readonly summary: string
}

type AnalysisFinding =
  | { readonly type: "number"; readonly value: number; readonly unit: string }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "list"; readonly values: readonly string[] }
  | { readonly type: "table"; readonly headers: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly type: "ratio"; readonly value: number; readonly label: string }

interface ModeResolver {
  /** Resolve a mode name into provider environment configuration */
  resolve(mode: string): Promise<ModeConfig>
}

interface ModeConfig {
  /** Environment variables to set for this mode */
  readonly environment: Readonly<Record<string, string>>
  /** System instructions specific to this mode */
  readonly systemInstructions: string
  /** Additional provider config overrides */
  readonly providerOverrides: Readonly<Record<string, unknown>>
}

type RunHooks = {
  /** Called before each scenario iteration starts */
  readonly beforeScenario?: (ctx: BeforeScenarioContext) => Promise<void>

  /** Called after each scenario iteration completes */
  readonly afterScenario?: (ctx: AfterScenarioContext) => Promise<void>

  /** Called before switching to a new mode */
  readonly beforeMode?: (mode: string) => Promise<void>

  /** Called after all iterations for a mode complete */
  readonly afterMode?: (mode: string) => Promise<void>

  /** Called once before the entire run starts */
  readonly beforeRun?: (ctx: RunContext) => Promise<void>

  /** Called once after the entire run completes */
  readonly afterRun?: (ctx: RunContext) => Promise<void>
}

interface BeforeScenarioContext {
  readonly scenario: BaseScenario
  readonly mode: string
  readonly model: string
  readonly iteration: number
}

interface AfterScenarioContext extends BeforeScenarioContext {
  readonly result: ProfileRow
  readonly trace: SessionTrace | null
}

interface RunContext {
  readonly runId: string
  readonly modes: readonly string[]
  readonly scenarios: readonly BaseScenario[]
  readonly repetitions: number
}

// Who implements what is printed implements the kit's contracts.
declare const provider: SessionProvider
declare const scorer: Scorer
declare const collector: Collector
declare const analyzer: Analyzer
declare const modeResolver: ModeResolver
declare const promptResult: PromptResult
declare const trace: SessionTrace
declare const metric: CustomMetric
declare const finding: AnalysisFinding
declare const handle: SessionHandle
export const implemented: [
  kit.SessionProvider, kit.Scorer, kit.Collector, kit.Analyzer, kit.ModeResolver, kit.PromptResult, kit.SessionTrace, kit.CustomMetric,
  kit.AnalysisFinding, kit.SessionHandle,
] = [provider, scorer, collector, analyzer, modeResolver, promptResult, trace, metric, finding, handle]

// It is given what is printed. Hooks are functions, whose arguments are held to the letter: they are in `plugin-contracts.ts`.
declare const config: Known<kit.ProviderConfig>
declare const params: Known<kit.CreateSessionParams>
declare const context: Known<kit.ScorerContext>
declare const before: Known<kit.BeforeScenarioContext>
declare const after: Known<kit.AfterScenarioContext>
declare const run: Known<kit.RunContext>
export const given: [ProviderConfig, CreateSessionParams, ScorerContext, BeforeScenarioContext, AfterScenarioContext, RunContext, SessionHandle] =
  [config, params, context, before, after, run, handle]
