// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type {
  SessionProvider,
  ProviderConfig,
  CreateSessionParams,
  SessionHandle,
  PromptResult,
  SessionTrace,
} from "assize"

const stubProvider: SessionProvider = {
  id: "stub-provider",

  async init(_config: ProviderConfig): Promise<void> {
    // No-op for stub
  },

  async createSession(params: CreateSessionParams): Promise<SessionHandle> {
    return {
      sessionId: `stub-${params.scenarioId}-${params.iteration}`,
      provider: "stub-provider",
      createdAt: new Date().toISOString(),
    }
  },

  async prompt(_handle: SessionHandle, _text: string, _timeoutMs?: number): Promise<PromptResult> {
    return {
      text: "Stub response.",
      metrics: {
        tokens: { input: 50, output: 25, reasoning: 10, cacheRead: 0, cacheWrite: 0, total: 85, active: 85 },
        timing: { wallMs: 500, segments: [] },
        toolCalls: [],
        cost: { totalUsd: 0.001, inputUsd: 0.0005, outputUsd: 0.0003, reasoningUsd: 0.0002 },
      },
      completionReason: "stop",
    }
  },

  async exportSession(handle: SessionHandle): Promise<SessionTrace> {
    return {
      sessionId: handle.sessionId,
      events: [],
      turns: [],
      summary: {
        totalTurns: 1,
        totalToolCalls: 0,
        totalTokens: { input: 50, output: 25, reasoning: 10, cacheRead: 0, cacheWrite: 0, total: 85, active: 85 },
        totalDuration: 500,
      },
    }
  },

  async destroySession(_handle: SessionHandle): Promise<void> {
    // No-op for stub
  },

  async shutdown(): Promise<void> {
    // No-op for stub
  },
}

export { stubProvider }
