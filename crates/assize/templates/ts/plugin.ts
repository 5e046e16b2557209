// A plugin for Assize: a metric and a scorer of one's own. `npm test` builds it and tries it.

import { servePlugin, type Collector, type Scorer } from "assize"

const answerWords: Collector = {
  id: "answer_words",
  async collect(result, _scenario, _mode, _trace) {
    const words = result.text.split(/\s+/).filter((word) => word !== "").length
    return [{ name: "answer_words", value: words, unit: "words" }]
  },
}

const says: Scorer = {
  id: "says",
  async evaluate(scenario, context) {
    const expected = String(scenario.extensions["says"] ?? "hello")
    const passed = context.agentOutput.includes(expected)
    const check = { id: "says", description: `the answer says "${expected}"`, passed }
    return { success: passed, passed: Number(passed), total: 1, details: [check], outputValid: true }
  },
}

servePlugin({ name: "mine", version: "0.1.0", collectors: [answerWords], scorers: [says] })
