// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type * as kit from "assize"
import type { TraceEvent } from "assize"

interface Turn {
  readonly number: number
  readonly events: readonly TraceEvent[]
  readonly startTimestamp: string
  readonly endTimestamp: string
  readonly durationMs: number
}

declare const turn: Turn
export const given: kit.Turn = turn
