// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type * as kit from "assize"
import type {
  AfterScenarioContext, AnalysisFinding, BaseScenario, BeforeScenarioContext, CreateSessionParams, CustomMetric, PromptResult, ProviderConfig,
  RunContext, ScorerCheckResult, SessionHandle, SessionTrace,
} from "assize"

interface SessionProvider {
  readonly id: string
  init(config: ProviderConfig): Promise<void>
  createSession(params: CreateSessionParams): Promise<SessionHandle>
  prompt(handle: SessionHandle, text: string, timeoutMs?: number): Promise<PromptResult>
  exportSession(handle: SessionHandle): Promise<SessionTrace>
  destroySession(handle: SessionHandle): Promise<void>
  shutdown(): Promise<void>
}

interface Scorer {
  readonly id: string
  evaluate(scenario: BaseScenario, context: ScorerContext): Promise<ScorerResult>
}

interface ScorerContext {
  readonly agentOutput: string
  readonly trace: SessionTrace | null
  readonly mode: string
  readonly model: string
  readonly iteration: number
  readonly metadata: Record<string, unknown>
}

interface ScorerResult {
  readonly success: boolean
  readonly passed: number
  readonly total: number
  readonly details: readonly ScorerCheckResult[]
  readonly outputValid: boolean
  readonly error?: string
}

interface Collector {
  readonly id: string
  collect(
    result: PromptResult,
    scenario: BaseScenario,
    mode: string,
    trace: SessionTrace | null
  ): Promise<readonly CustomMetric[]>
}

interface Analyzer {
  readonly name: string
  analyze(
    trace: SessionTrace,
    scenario: BaseScenario,
    mode: string
  ): Promise<AnalysisResult>
}

interface AnalysisResult {
  readonly analyzer: string
  readonly findings: Record<string, AnalysisFinding>
  readonly summary: string
}

interface ModeResolver {
  resolve(mode: string): Promise<ModeConfig>
}

interface ModeConfig {
  readonly environment: Record<string, string>
  readonly systemInstructions: string
  readonly providerOverrides: Record<string, unknown>
}

type RunHooks = {
  readonly beforeScenario?: (ctx: BeforeScenarioContext) => Promise<void>
  readonly afterScenario?: (ctx: AfterScenarioContext) => Promise<void>
  readonly beforeMode?: (mode: string) => Promise<void>
  readonly afterMode?: (mode: string) => Promise<void>
  readonly beforeRun?: (ctx: RunContext) => Promise<void>
  readonly afterRun?: (ctx: RunContext) => Promise<void>
}

// Who implements what is printed implements the kit's contracts, and is given what is printed.
declare const provider: SessionProvider
declare const scorer: Scorer
declare const collector: Collector
declare const analyzer: Analyzer
declare const modeResolver: ModeResolver
declare const hooks: RunHooks
declare const modeConfig: ModeConfig
declare const scorerResult: ScorerResult
declare const analysisResult: AnalysisResult
declare const scorerContext: kit.ScorerContext
export const implemented: [
  kit.SessionProvider, kit.Scorer, kit.Collector, kit.Analyzer, kit.ModeResolver, kit.RunHooks, kit.ModeConfig, kit.ScorerResult,
  kit.AnalysisResult,
] = [provider, scorer, collector, analyzer, modeResolver, hooks, modeConfig, scorerResult, analysisResult]
export const given: ScorerContext = scorerContext
