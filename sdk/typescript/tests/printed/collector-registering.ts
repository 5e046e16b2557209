// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import { stubProvider } from "./provider-stub.js"
import { reasoningCountCollector } from "./collector-basic.js"
import { toolStatsCollector } from "./collector-multi.js"

import { runProfileSuite, TokenCollector, LatencyCollector, CostCollector, ToolCallCollector } from "assize"

const result = await runProfileSuite({
  // ... other options
  provider: stubProvider, scenarios: [],
  collectors: [
    new TokenCollector(),
    new LatencyCollector(),
    new CostCollector(),
    new ToolCallCollector(),
    reasoningCountCollector,   // your custom collector
    toolStatsCollector,        // another custom collector
  ],
})

export { result }
