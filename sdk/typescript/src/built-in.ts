// Names for the collectors that Assize has built in. They run in Assize itself and never here.

import type { Collector } from "./contracts.js"
import type { CustomMetric } from "./records.js"

class BuiltIn implements Collector {
  constructor(readonly id: string) {}

  collect(): readonly CustomMetric[] {
    throw new Error(`\`${this.id}\` is built into Assize and is not served by a plugin`)
  }
}

/** Tokens: `tokens_*`. */
export class TokenCollector extends BuiltIn {
  constructor() {
    super("token")
  }
}

/** Times: `latency_*`. */
export class LatencyCollector extends BuiltIn {
  constructor() {
    super("latency")
  }
}

/** Money: `cost_*`. */
export class CostCollector extends BuiltIn {
  constructor() {
    super("cost")
  }
}

/** Tools: `tool_calls_*`. */
export class ToolCallCollector extends BuiltIn {
  constructor() {
    super("tool_calls")
  }
}

export function isBuiltIn(collector: Collector): boolean {
  return collector instanceof BuiltIn
}
