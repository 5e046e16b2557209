// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type { Collector, CustomMetric, PromptResult, BaseScenario, SessionTrace } from "assize"

const reasoningCountCollector: Collector = {
  id: "reasoning_count",
  async collect(
    _result: PromptResult,
    _scenario: BaseScenario,
    _mode: string,
    trace: SessionTrace | null,
  ): Promise<readonly CustomMetric[]> {
    if (!trace) return []
    const count = trace.events.filter((e) => e.type === "reasoning").length
    return [{ name: "reasoning_events", value: count, unit: "count" }]
  },
}

export { reasoningCountCollector }
