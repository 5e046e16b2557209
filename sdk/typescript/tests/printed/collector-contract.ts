// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type * as kit from "assize"
import type { BaseScenario, CustomMetric, PromptResult, SessionTrace } from "assize"

interface Collector {
  readonly id: string
  collect(
    result: PromptResult,
    scenario: BaseScenario,
    mode: string,
    trace: SessionTrace | null,
  ): Promise<readonly CustomMetric[]>
}

declare const collector: Collector
export const implemented: kit.Collector = collector
