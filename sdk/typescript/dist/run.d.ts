import type { Analyzer, Collector, ModeResolver, RunHooks, Scorer, SessionProvider } from "./contracts.js";
import type { BaseScenario, PermissionConfig, ProfileRow } from "./records.js";
/** What to run and by whom. */
export interface ProfileSuiteOptions {
    readonly provider: SessionProvider;
    /** Default: the scenarios' checks. */
    readonly scorer?: Scorer;
    readonly scenarios: readonly ScenarioOptions[];
    /** Names, resolved by `modeResolver` if there is one. Default: one mode, `default`. */
    readonly modes?: readonly string[];
    readonly modeResolver?: ModeResolver;
    readonly models?: readonly string[];
    /** Default: the four built-in ones. */
    readonly collectors?: readonly Collector[];
    /** A text is the name of a built-in one. */
    readonly analyzers?: readonly (Analyzer | string)[];
    readonly hooks?: RunHooks;
    readonly repetitions?: number;
    readonly allowedRetries?: number;
    readonly warmup?: boolean;
    readonly concurrency?: number;
    readonly seed?: number;
    readonly sessionExport?: boolean;
    /** How long a prompt may take whose scenario does not say. Default: `DEFAULT_TIMEOUT_MS`. */
    readonly timeoutMs?: number;
    /** How long other calls may take. */
    readonly timeouts?: CallTimeouts;
    readonly permissions?: PermissionConfig;
    /** For headings and history. */
    readonly name?: string;
    /** Where runs are kept. Default: `.assize/runs` here. */
    readonly resultsDir?: string;
    /** The program. Default: `ASSIZE_BIN` of the environment, else `assize`. */
    readonly binary?: string;
    /** More keys of a suite file: `analysis`, `execution`, … */
    readonly suite?: Readonly<Record<string, unknown>>;
}
/** Milliseconds that calls may take, by kind; 0 is no limit. Default: 60 s for what says so, 10 minutes for the others. */
export interface CallTimeouts {
    readonly init?: number;
    readonly createSession?: number;
    /** Default: 60 s. */
    readonly exportSession?: number;
    /** Default: 60 s. */
    readonly destroySession?: number;
    /** Default: 60 s. */
    readonly shutdown?: number;
    readonly scorer?: number;
    /** Default: 60 s. */
    readonly collector?: number;
    /** Default: 60 s. */
    readonly analyzer?: number;
    readonly modeResolver?: number;
    readonly hooks?: number;
}
/** A scenario needs an id and a prompt; the rest has defaults. */
export type ScenarioOptions = Pick<BaseScenario, "id" | "prompt"> & Partial<BaseScenario>;
/** What came of a run. */
export interface ProfileSuiteResult {
    readonly runId: string;
    /** The run directory, with rows, traces and the report. */
    readonly directory: string;
    /** All trials that were recorded. */
    readonly rows: readonly ProfileRow[];
    /** Trials that are still open, because the run was interrupted. */
    readonly open: number;
}
/** Runs a suite to its end. Providers that do not say otherwise serve one mode after another, as there is one process. */
export declare function runProfileSuite(options: ProfileSuiteOptions): Promise<ProfileSuiteResult>;
