// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type {
  CostBreakdown, CreateSessionParams, PromptResult, ProviderConfig, SessionHandle, SessionTrace, TimingBreakdown, TimingSegment, TokenBreakdown, ToolCallRecord, TraceEvent, Turn, SessionProvider,
} from "assize"

// What the printed methods call and the specification leaves to the author.
interface Usage {
  inputTokens: number; outputTokens: number; reasoningTokens: number; cacheReadTokens: number; cacheWriteTokens: number; totalTokens: number
}
interface Tool { name: string; category: string; success: boolean; durationMs?: number; error?: string }
interface Response {
  output: string; usage: Usage; tools: Tool[]; cost: { total: number; input: number; output: number; reasoning: number }
  stopReason: PromptResult["completionReason"]
}
interface AgentClient {
  startSession(options: { instructions: string; scenario: string }): Promise<string>
  send(sessionId: string, text: string, options: { timeoutMs: number | undefined }): Promise<Response>
  getSessionEvents(sessionId: string): Promise<unknown[]>
  endSession(sessionId: string): Promise<void>
  stopServer(): Promise<void>
}
declare function mapToTraceEvent(event: unknown): TraceEvent

abstract class Author {
  readonly id = "my-provider"
  port: number | undefined
  model = ""
  workdir = ""
  env: Readonly<Record<string, string>> = {}
  abstract readonly agentClient: AgentClient
  abstract startAgentServer(port: number, environment: Readonly<Record<string, string>>): Promise<void>
  abstract groupEventsIntoTurns(events: readonly TraceEvent[]): readonly Turn[]
  abstract computeTotalTokens(events: readonly TraceEvent[]): TokenBreakdown
}

export abstract class MyProvider extends Author implements SessionProvider {

async init(config: ProviderConfig): Promise<void> {
  // ProviderConfig fields:
  //   port: number
  //   model: string
  //   mode: string
  //   permissions: PermissionConfig  // { autoApprove: boolean, allowedTools: readonly string[] }
  //   environment: Readonly<Record<string, string>>
  //   workdir: string

  this.port = config.port
  this.model = config.model
  this.workdir = config.workdir
  this.env = config.environment

  // Example: start an agent server process
  await this.startAgentServer(config.port, config.environment)
}

async createSession(params: CreateSessionParams): Promise<SessionHandle> {
  // CreateSessionParams fields:
  //   systemInstructions: string
  //   scenarioId: string
  //   iteration: number

  const sessionId = await this.agentClient.startSession({
    instructions: params.systemInstructions,
    scenario: params.scenarioId,
  })

  return {
    sessionId,
    provider: this.id,
    createdAt: new Date().toISOString(),
  }
}

async prompt(handle: SessionHandle, text: string, timeoutMs?: number): Promise<PromptResult> {
  const start = Date.now()
  const response = await this.agentClient.send(handle.sessionId, text, { timeoutMs })
  const wallMs = Date.now() - start

  const tokens: TokenBreakdown = {
    input: response.usage.inputTokens,
    output: response.usage.outputTokens,
    reasoning: response.usage.reasoningTokens,
    cacheRead: response.usage.cacheReadTokens,
    cacheWrite: response.usage.cacheWriteTokens,
    total: response.usage.totalTokens,
    active: response.usage.totalTokens - response.usage.cacheReadTokens,
  }

  const timing: TimingBreakdown = {
    wallMs,
    segments: [
      { label: "agent_processing", startMs: 0, endMs: wallMs },
    ],
  }

  const toolCalls: readonly ToolCallRecord[] = response.tools.map((t) => ({
    name: t.name,
    category: t.category,
    success: t.success,
    durationMs: t.durationMs ?? null,
    ...(t.error ? { error: t.error } : {}),
  }))

  const cost: CostBreakdown = {
    totalUsd: response.cost.total,
    inputUsd: response.cost.input,
    outputUsd: response.cost.output,
    reasoningUsd: response.cost.reasoning,
  }

  return {
    text: response.output,
    metrics: { tokens, timing, toolCalls, cost },
    // completionReason is one of: "stop" | "timeout" | "error" | "tool_limit"
    completionReason: response.stopReason,
  }
}

async exportSession(handle: SessionHandle): Promise<SessionTrace> {
  const rawEvents = await this.agentClient.getSessionEvents(handle.sessionId)

  // TraceEvent is a discriminated union on `type`. Each variant has its own
  // fields -- there is no shared `timestamp`/`data` shape. See types/trace.ts.
  // Variants: "reasoning", "tool_call", "text_output", "turn_boundary", "error"
  const events: readonly TraceEvent[] = rawEvents.map((e) => mapToTraceEvent(e))

  const turns: readonly Turn[] = this.groupEventsIntoTurns(events)

  return {
    sessionId: handle.sessionId,
    events,
    turns,
    summary: {
      totalTurns: turns.length,
      totalToolCalls: events.filter((e) => e.type === "tool_call").length,
      totalTokens: this.computeTotalTokens(events), // TokenBreakdown, not a computed number
      totalDuration: turns.reduce((sum, t) => sum + t.durationMs, 0),
    },
  }
}

async destroySession(handle: SessionHandle): Promise<void> {
  await this.agentClient.endSession(handle.sessionId)
}

async shutdown(): Promise<void> {
  await this.agentClient.stopServer()
  this.port = undefined
}

}
