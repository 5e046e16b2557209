// The loop, message by message.

import assert from "node:assert/strict"
import { test } from "node:test"
import { AgentError, TokenCollector } from "../dist/index.js"
import { Session } from "../dist/serve.js"

/** Speaks with a plugin and gathers what it says. */
function speakWith(plugin) {
  const messages = []
  const session = new Session(plugin, (text) => {
    for (const line of text.split("\n").filter((line) => line !== "")) messages.push(JSON.parse(line))
  })
  const say = (text) => session.hear(Buffer.from(text))
  const ask = async (id, method, params) => {
    say(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n")
    return answerTo(id)
  }
  const answerTo = async (id) => {
    for (;;) {
      const found = messages.find((message) => message.id === id)
      if (found) return found
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { messages, say, ask, answerTo }
}

const slow = { id: "slow", collect: (_r, _s, _m, _t, call) => new Promise((resolve) => call.signal.addEventListener("abort", () => resolve([]))) }
const quick = { id: "quick", collect: () => [{ name: "a", value: 1, unit: "count" }] }
const collect = (collector) => ({ collector, result: {}, scenario: {}, mode: "plain", trace: null })

test("initialize offers what is served, without what is built in", async () => {
  let told
  const plugin = {
    name: "mine", version: "1.0.0", collectors: [quick, new TokenCollector()], provider: { id: "agent" },
    hooks: { beforeRun() {} }, modeResolver: { resolve() {} }, onOptions: (options) => (told = options),
  }
  const answer = await speakWith(plugin).ask(1, "initialize", { protocolVersion: 1, options: { a: 1 } })
  assert.deepEqual(told, { a: 1 })
  assert.equal(answer.result.protocolVersion, 1)
  assert.deepEqual(answer.result.capabilities.collectors, [{ id: "quick" }])
  assert.deepEqual(answer.result.capabilities.providers, [{ id: "agent", scope: "mode", nature: "live" }])
  assert.deepEqual(answer.result.capabilities.hooks, { events: ["beforeRun"], concurrent: false })
})

test("a slow call holds up no other, and a cancelled one gets one answer", async () => {
  const { messages, say, ask, answerTo } = speakWith({ collectors: [slow, quick] })
  const waiting = ask(1, "collector/collect", collect("slow"))
  assert.deepEqual((await ask(2, "collector/collect", collect("quick"))).result[0].value, 1)
  say('{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}\n')
  assert.equal((await waiting).error.code, -32800)
  await ask(3, "collector/collect", collect("quick"))
  assert.equal(messages.filter((message) => message.id === 1).length, 1)
  assert.ok(await answerTo(3))
})

test("messages may come in pieces and several at once", async () => {
  const { say, answerTo } = speakWith({ collectors: [quick] })
  const line = (id) => JSON.stringify({ id, method: "collector/collect", params: collect("quick") }) + "\n"
  const text = line(1) + "no message\n\n" + line("ü") + line(3)
  for (const byte of Buffer.from(text)) say(Buffer.from([byte]))
  for (const id of [1, "ü", 3]) assert.equal((await answerTo(id)).result.length, 1)
})

test("errors say whose fault it is", async () => {
  const provider = {
    id: "agent",
    prompt: async () => { throw new AgentError("gave up", { code: "tired" }) },
    createSession: () => { throw new TypeError("oops") },
  }
  const { ask } = speakWith({ provider })
  const prompted = await ask(1, "provider/prompt", { provider: "agent", handle: {}, text: "", timeoutMs: 1 })
  assert.deepEqual(prompted.error, { code: -32000, message: "gave up", data: { fault: "agent", code: "tired" } })
  const created = await ask(2, "provider/createSession", { provider: "agent", params: {} })
  assert.deepEqual(created.error, { code: -32603, message: "oops" })
})

test("what is not served is refused", async () => {
  const { ask } = speakWith({ collectors: [quick] })
  assert.equal((await ask(1, "nobody/knows", {})).error.code, -32601)
  assert.equal((await ask(2, "collector/collect", collect("other"))).error.code, -32602)
  assert.equal((await ask(3, "collector/collect", {})).error.code, -32602)
  assert.equal((await ask(4, "collector/collect", [1])).error.code, -32602)
  assert.equal((await ask(5, "hooks/beforeRun", { context: {} })).error.code, -32601)
})
