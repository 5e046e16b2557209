// Compiled and never run: what people write has to fit the interfaces.

import {
  AgentError, CostCollector, LatencyCollector, TokenCollector, ToolCallCollector, runProfileSuite, servePlugin,
  type Analyzer, type Collector, type Evaluator, type ModeResolver, type RunHooks, type Runner, type Scorer,
  type SessionProvider,
} from "../src/index.js"

class Agent implements SessionProvider {
  readonly id = "agent"
  private port = 0

  async init(config: { port: number }): Promise<void> {
    this.port = config.port
  }

  async createSession() {
    return { sessionId: `${this.port}`, provider: this.id, createdAt: new Date().toISOString() }
  }

  async prompt(): Promise<never> {
    throw new AgentError("tired", { code: "tired" })
  }

  async exportSession(handle: { sessionId: string }) {
    const totalTokens = { input: 1, output: 1, reasoning: null, cacheRead: 0, cacheWrite: 0, total: 2, active: 2 }
    const events = [{ type: "text_output", content: "hello", tokenCount: 1 }] as const
    const summary = { totalTurns: 0, totalToolCalls: 0, totalTokens, totalDuration: 0 }
    return { sessionId: handle.sessionId, events, turns: [], summary }
  }

  destroySession(): void {}

  async shutdown() {}
}

const collector: Collector = {
  id: "count",
  collect: (result, _scenario, _mode, trace) => [
    { name: "tools", value: result.metrics.toolCalls.filter((call) => !call.success).length, unit: "count" },
    { name: "events", value: trace?.events.filter((event) => event.type === "reasoning").length ?? "none", unit: "count" },
  ],
}
const scorer: Scorer = {
  id: "yes",
  evaluate: async (scenario, { agentOutput }) => {
    const success = agentOutput.includes(String(scenario.extensions["expected"]))
    return { success, passed: Number(success), total: 1, details: [], outputValid: true }
  },
}
const analyzer: Analyzer = {
  name: "look",
  analyze: (trace) => ({
    analyzer: "look", findings: { look_events: { type: "number", value: trace.events.length, unit: "count" } }, summary: "",
  }),
}
const modeResolver: ModeResolver = {
  resolve: async () => ({ environment: {}, systemInstructions: "", providerOverrides: {} }),
}
const hooks: RunHooks = {
  beforeScenario: async ({ scenario }) => ({ ...scenario, prompt: "other" }),
  afterRun: async ({ runId }) => console.log(runId),
}
const runner: Runner = {
  id: "rules", type: "intent",
  execute: (task, _config, setting, call) => {
    call?.progress(setting?.model ?? "half", 1, 2)
    const timestamp = new Date().toISOString()
    return {
      id: "r", taskId: task.id, taskType: "atomic", status: "completed", metrics: { latency: 1 },
      trace: [{ timestamp, level: "info", event: "started" }], startedAt: timestamp,
      provenance: { runnerId: "rules", runnerVersion: "1", config: {} },
    }
  },
}
const evaluator: Evaluator = { id: "exact", evaluate: (_run, _task, config) => (config?.strict ? [] : []) }

servePlugin({
  providers: [new Agent()], scorers: [scorer], collectors: [collector], analyzers: [analyzer], modeResolver, hooks,
  runners: [runner], evaluators: [evaluator],
})
void runProfileSuite({
  provider: new Agent(), scorer, modes: ["a"], scenarios: [{ id: "one", prompt: "x" }],
  collectors: [new TokenCollector(), new LatencyCollector(), new CostCollector(), new ToolCallCollector(), collector],
})
