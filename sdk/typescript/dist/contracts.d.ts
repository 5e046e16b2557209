import type { AfterScenarioContext, AnalysisResult, AtomicTask, BaseScenario, BeforeScenarioContext, Concurrency, CreateSessionParams, CustomMetric, ExecutionSetting, ModeConfig, OfferedNature, OfferedScope, PromptResult, ProviderConfig, RunContext, RunRecord, ScenarioTask, ScoreRecord, ScorerContext, ScorerResult, SessionHandle, SessionTrace } from "./records.js";
/** A value, or the promise of one. */
export type Awaitable<T> = T | Promise<T>;
/** What a suite says about a part of a plugin. */
export type Settings = Readonly<Record<string, unknown>>;
/** What every method is given after its own arguments. */
export interface Call {
    /** Aborted when the answer is not needed any more. */
    readonly signal: AbortSignal;
    /** A line for the plugin's log in the run directory. */
    log(message: string, level?: string): void;
    /** How far the call has come; kept in the log. */
    progress(message: string, done?: number, total?: number): void;
}
/** The time limit of a prompt that is given none, in milliseconds. */
export declare const DEFAULT_TIMEOUT_MS = 120000;
/** What is written to Assize: a time may be a `Date` or its text. */
export type Written<T> = T extends Date ? Date | string : T extends readonly (infer Item)[] ? readonly Written<Item>[] : T extends object ? {
    readonly [Key in keyof T]: Written<T[Key]>;
} : T;
/** Manages the sessions of an agent. One session at a time per process, unless `concurrency` allows more. */
export interface SessionProvider {
    readonly id: string;
    /** `session`: one process serves all modes. `mode` (default): one process each. `single`: modes one after another. */
    readonly scope?: OfferedScope;
    /** How many sessions one process can have at once. Default: what the plugin says, else 1. */
    readonly concurrency?: Concurrency;
    /** The model when the suite names none. */
    readonly defaultModel?: string;
    /** Whether sessions can cost real money. Default: they can. */
    readonly mayCost?: boolean;
    /** What the sessions are. Default: `live`. */
    readonly nature?: OfferedNature;
    /** How long past a prompt's timeout it may take to answer with what was used. */
    readonly timeoutGraceMs?: number;
    init(config: ProviderConfig, call?: Call): Awaitable<void>;
    createSession(params: CreateSessionParams, call?: Call): Awaitable<SessionHandle>;
    prompt(handle: SessionHandle, text: string, timeoutMs?: number, call?: Call): Awaitable<PromptResult>;
    exportSession(handle: SessionHandle, call?: Call): Awaitable<SessionTrace>;
    destroySession(handle: SessionHandle, call?: Call): Awaitable<void>;
    shutdown(call?: Call): Awaitable<void>;
}
/** Decides whether a trial reached its goal. */
export interface Scorer {
    readonly id: string;
    evaluate(scenario: BaseScenario, context: ScorerContext, settings?: Settings, call?: Call): Awaitable<ScorerResult>;
}
/** Extracts metrics from a finished session. */
export interface Collector {
    readonly id: string;
    collect(result: PromptResult, scenario: BaseScenario, mode: string, trace: SessionTrace | null, call?: Call): Awaitable<readonly CustomMetric[]>;
}
/** Looks at a session's trace for patterns. */
export interface Analyzer {
    readonly name: string;
    analyze(trace: SessionTrace, scenario: BaseScenario, mode: string, call?: Call): Awaitable<AnalysisResult>;
}
/** Turns mode names into settings. An unknown name must throw. */
export interface ModeResolver {
    resolve(mode: string, call?: Call): Awaitable<ModeConfig>;
}
/** Called around runs, modes and trials; all are optional. */
export type RunHooks = {
    readonly beforeScenario?: (ctx: BeforeScenarioContext, call?: Call) => Awaitable<BaseScenario | null | void>;
    readonly afterScenario?: (ctx: AfterScenarioContext, call?: Call) => Awaitable<void>;
    readonly beforeMode?: (mode: string, call?: Call) => Awaitable<void>;
    readonly afterMode?: (mode: string, call?: Call) => Awaitable<void>;
    readonly beforeRun?: (ctx: RunContext, call?: Call) => Awaitable<void>;
    readonly afterRun?: (ctx: RunContext, call?: Call) => Awaitable<void>;
    /** True when several may be under way at once. */
    readonly concurrent?: boolean;
};
/** Executes tasks of one type. */
export interface Runner {
    readonly id: string;
    readonly type: string;
    readonly version?: string;
    execute(task: AtomicTask, config: unknown, setting?: ExecutionSetting, call?: Call): Awaitable<Written<RunRecord>>;
}
/** Scores executions of tasks. The times of a run are `Date`s. */
export interface Evaluator {
    readonly id: string;
    readonly metrics?: readonly string[];
    evaluate(run: RunRecord, task: AtomicTask, config?: Settings, call?: Call): Awaitable<readonly Written<ScoreRecord>[]>;
    evaluateScenario?(run: RunRecord, task: ScenarioTask, config?: Settings, call?: Call): Awaitable<readonly Written<ScoreRecord>[]>;
}
/** What a plugin serves: one of a kind or several. */
export interface PluginDefinition {
    readonly name?: string;
    readonly version?: string;
    readonly provider?: SessionProvider;
    readonly providers?: readonly SessionProvider[];
    readonly scorer?: Scorer;
    readonly scorers?: readonly Scorer[];
    readonly collectors?: readonly Collector[];
    readonly analyzers?: readonly Analyzer[];
    readonly modeResolver?: ModeResolver;
    readonly hooks?: RunHooks;
    readonly runners?: readonly Runner[];
    readonly evaluators?: readonly Evaluator[];
    /** How many calls may be under way at once. Absent: any number. */
    readonly concurrency?: Concurrency;
    /** Told what the suite gives to the plugin, before anything else is called. */
    readonly onOptions?: (options: Readonly<Record<string, unknown>>) => void;
}
