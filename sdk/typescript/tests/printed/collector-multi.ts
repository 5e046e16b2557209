// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type { Collector, CustomMetric, PromptResult, BaseScenario, SessionTrace } from "assize"

const toolStatsCollector: Collector = {
  id: "tool_stats",
  async collect(
    result: PromptResult,
    _scenario: BaseScenario,
    _mode: string,
    _trace: SessionTrace | null,
  ): Promise<readonly CustomMetric[]> {
    const toolCalls = result.metrics.toolCalls
    const total = toolCalls.length
    const failed = toolCalls.filter((t) => !t.success).length
    const durations = toolCalls
      .map((t) => t.durationMs)
      .filter((d): d is number => d !== null)
    const avgDuration = durations.length > 0
      ? durations.reduce((sum, d) => sum + d, 0) / durations.length
      : 0

    return [
      { name: "tool_call_total", value: total, unit: "count" },
      { name: "tool_call_failures", value: failed, unit: "count" },
      { name: "tool_call_avg_duration", value: Math.round(avgDuration), unit: "ms" },
    ]
  },
}

export { toolStatsCollector }
