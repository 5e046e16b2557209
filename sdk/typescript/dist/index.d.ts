export * from "./records.js";
export * from "./contracts.js";
export { AgentError, ServiceError } from "./errors.js";
export { servePlugin } from "./serve.js";
export { CostCollector, LatencyCollector, TokenCollector, ToolCallCollector } from "./built-in.js";
export { runProfileSuite } from "./run.js";
export type { CallTimeouts, ProfileSuiteOptions, ProfileSuiteResult, ScenarioOptions } from "./run.js";
