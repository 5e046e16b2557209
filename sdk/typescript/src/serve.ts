// The loop: requests from stdin (or a socket), answers to stdout, as many at once as come.

import { isBuiltIn } from "./built-in.js"
import type { Awaitable, Call, PluginDefinition, SessionProvider } from "./contracts.js"
import { RpcError, ServiceError, codes } from "./errors.js"
import type { Capabilities, HookEvent, InitializeParams, InitializeResult, ProviderOffer } from "./records.js"

const PROTOCOL_VERSION = 1
const HOOKS: readonly HookEvent[] = ["beforeRun", "beforeMode", "beforeScenario", "afterScenario", "afterMode", "afterRun"]

/** Serves a plugin until stdin is closed. What is printed goes to stderr, which is the plugin's log. */
export function servePlugin(plugin: PluginDefinition): void {
  const write = process.stdout.write.bind(process.stdout) as (text: string) => boolean
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  const session = new Session(plugin, (text) => void write(text))
  process.stdin.on("data", (chunk: Buffer) => session.hear(chunk))
  process.stdin.on("end", () => process.exit(0))
}

type Params = Readonly<Record<string, any>>

/** One conversation with Assize. */
export class Session {
  private readonly methods: Methods
  private readonly underway = new Map<unknown, Underway>()
  private pieces: Buffer[] = []
  private outgoing: string[] = []

  constructor(private readonly plugin: PluginDefinition, private readonly write: (text: string) => void) {
    this.methods = new Methods(plugin)
  }

  /** Takes bytes as they come; a message ends with a line end. */
  hear(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      this.pieces.push(chunk.subarray(start, end))
      const line = this.pieces.length === 1 ? this.pieces[0]! : Buffer.concat(this.pieces)
      this.pieces = []
      start = end + 1
      if (line.length > 0) this.understand(line.toString("utf8"))
    }
    if (start < chunk.length) this.pieces.push(start === 0 ? chunk : chunk.subarray(start))
  }

  private understand(line: string): void {
    let message: any
    try {
      message = JSON.parse(line)
    } catch {
      console.error(`assize: not a message: ${line.slice(0, 200)}`)
      return
    }
    if (typeof message?.method !== "string") return
    if (message.id !== undefined) void this.answer(message.id, message.method, message.params)
    else if (message.method === "$/cancel") this.cancel(message.params?.id)
  }

  private async answer(id: unknown, method: string, params: unknown): Promise<void> {
    const call = new Underway(id, method, (message) => this.send(message))
    this.underway.set(id, call)
    let answer: object
    try {
      const result = this.result(method, params, call)
      answer = { jsonrpc: "2.0", id, result: (result instanceof Promise ? await result : result) ?? null }
    } catch (error) {
      answer = { jsonrpc: "2.0", id, error: described(error) }
    }
    if (this.underway.delete(id)) this.send(answer)
  }

  private result(method: string, params: unknown, call: Call): unknown {
    if (typeof params !== "object" || params === null || Array.isArray(params)) {
      throw new RpcError(codes.badParams, "expected named parameters")
    }
    if (method === "initialize") {
      this.plugin.onOptions?.((params as InitializeParams).options ?? {})
      return this.initialized()
    }
    return this.methods.call(method, params as Params, call)
  }

  private initialized(): InitializeResult {
    const info = { name: this.plugin.name ?? "plugin", version: this.plugin.version ?? "0.0.0" }
    return { protocolVersion: PROTOCOL_VERSION, info, capabilities: this.methods.offer() }
  }

  /** The answer is not needed any more, but it is owed. A hook is answered when it is over, since others wait for that. */
  private cancel(id: unknown): void {
    const call = this.underway.get(id)
    if (call === undefined) return
    call.abort()
    if (call.method.startsWith("hooks/")) return
    this.underway.delete(id)
    this.send({ jsonrpc: "2.0", id, error: { code: codes.cancelled, message: "cancelled" } })
  }

  /** Answers that become ready together go out together. */
  private send(message: object): void {
    if (this.outgoing.length === 0) setImmediate(() => this.flush())
    try {
      this.outgoing.push(JSON.stringify(message) + "\n")
    } catch (error) {
      const id = (message as { id?: unknown }).id
      this.outgoing.push(JSON.stringify({ jsonrpc: "2.0", id, error: described(error) }) + "\n")
    }
  }

  private flush(): void {
    const text = this.outgoing.join("")
    this.outgoing = []
    if (text !== "") this.write(text)
  }
}

/** A call under way. The controller is made when somebody asks for it, which few do. */
class Underway implements Call {
  private controller: AbortController | undefined
  private isAborted = false

  constructor(
    private readonly id: unknown, readonly method: string, private readonly send: (message: object) => void,
  ) {}

  get signal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.isAborted) this.controller.abort()
    return this.controller.signal
  }

  abort(): void {
    this.isAborted = true
    this.controller?.abort()
  }

  log(message: string, level = "info"): void {
    this.send({ jsonrpc: "2.0", method: "$/log", params: { level, message } })
  }

  progress(message: string, done?: number, total?: number): void {
    this.send({ jsonrpc: "2.0", method: "$/progress", params: { token: this.id, message, done, total } })
  }
}

type Method = (params: Params, call: Call) => Awaitable<unknown>

/** Sets the variables of a mode in this process while a provider serves it, so that whatever it starts inherits them. */
class Environment {
  private readonly before = new Map<string, ReadonlyMap<string, string | undefined>>()

  enter(provider: string, variables: Readonly<Record<string, string>>): void {
    this.leave(provider)
    this.before.set(provider, new Map(Object.keys(variables).map((name) => [name, process.env[name]])))
    Object.assign(process.env, variables)
  }

  leave(provider: string): void {
    for (const [name, value] of this.before.get(provider) ?? []) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    this.before.delete(provider)
  }
}

/** A run record with its times as `Date`s. What is no time stays as it is. */
function withDates(run: Params): any {
  const date = (text: unknown) => {
    const time = new Date(String(text))
    return typeof text !== "string" || Number.isNaN(time.getTime()) ? text : time
  }
  return {
    ...run,
    startedAt: date(run.startedAt),
    ...("completedAt" in run ? { completedAt: date(run.completedAt) } : {}),
    trace: run.trace?.map((event: Params) => ({ ...event, timestamp: date(event.timestamp) })),
  }
}

/** Which method of the protocol is which method of the plugin. */
class Methods {
  private readonly methods = new Map<string, Method>()
  private readonly providers: ReadonlyMap<string, SessionProvider>
  private readonly environment = new Environment()

  constructor(private readonly plugin: PluginDefinition) {
    this.providers = byName([...(plugin.providers ?? []), ...(plugin.provider ? [plugin.provider] : [])], (each) => each.id)
    this.addProviders()
    this.addMeasures()
    this.addLab()
    const { modeResolver, hooks = {} } = plugin
    if (modeResolver) this.methods.set("modeResolver/resolve", (p, call) => modeResolver.resolve(need(p, "mode"), call))
    for (const event of HOOKS) {
      const hook = hooks[event] as ((context: unknown, call: Call) => unknown) | undefined
      const key = event.endsWith("Mode") ? "mode" : "context"
      if (hook) this.methods.set(`hooks/${event}`, (p, call) => hook.call(hooks, need(p, key), call))
    }
  }

  call(name: string, params: Params, call: Call): Awaitable<unknown> {
    const method = this.methods.get(name)
    if (method === undefined) throw new RpcError(codes.unknownMethod, `there is no method \`${name}\``)
    return method(params, call)
  }

  offer(): Capabilities {
    const { analyzers = [], modeResolver, hooks, runners = [], evaluators = [], concurrency } = this.plugin
    const events = HOOKS.filter((event) => hooks?.[event] !== undefined)
    return {
      providers: [...this.providers.values()].map(offered),
      scorers: this.scorers().map(({ id }) => ({ id })),
      collectors: this.collectors().map(({ id }) => ({ id })),
      analyzers: analyzers.map(({ name }) => ({ name })),
      runners: runners.map(({ id, type, version = "0" }) => ({ id, type, version })),
      evaluators: evaluators.map(({ id, metrics = [] }) => ({ id, metrics })),
      ...(modeResolver ? { modeResolver: {} } : {}),
      ...(events.length > 0 ? { hooks: { events, concurrent: hooks?.concurrent ?? false } } : {}),
      ...(concurrency === undefined ? {} : { concurrency }),
    }
  }

  private scorers() {
    return [...(this.plugin.scorers ?? []), ...(this.plugin.scorer ? [this.plugin.scorer] : [])]
  }

  private collectors() {
    return (this.plugin.collectors ?? []).filter((collector) => !isBuiltIn(collector))
  }

  private addProviders(): void {
    const of = (p: Params) => named(this.providers, "provider", p)
    const add = (name: string, method: Method) => void this.methods.set(`provider/${name}`, method)
    add("init", (p, call) => {
      const [provider, config] = [of(p), need(p, "config")]
      if (provider.scope !== "session") this.environment.enter(provider.id, config.environment ?? {})
      return provider.init(config, call)
    })
    add("createSession", (p, call) => of(p).createSession(need(p, "params"), call))
    add("prompt", (p, call) => of(p).prompt(need(p, "handle"), need(p, "text"), p.timeoutMs, call))
    add("exportSession", (p, call) => of(p).exportSession(need(p, "handle"), call))
    add("destroySession", (p, call) => of(p).destroySession(need(p, "handle"), call))
    add("shutdown", async (p, call) => {
      const provider = of(p)
      try {
        await provider.shutdown(call)
      } finally {
        this.environment.leave(provider.id)
      }
    })
  }

  private addMeasures(): void {
    const scorers = byName(this.scorers(), (each) => each.id)
    const collectors = byName(this.collectors(), (each) => each.id)
    const analyzers = byName(this.plugin.analyzers ?? [], (each) => each.name)
    this.methods.set("scorer/evaluate", (p, call) =>
      named(scorers, "scorer", p).evaluate(need(p, "scenario"), need(p, "context"), p.settings ?? {}, call))
    this.methods.set("collector/collect", (p, call) =>
      named(collectors, "collector", p).collect(need(p, "result"), need(p, "scenario"), need(p, "mode"), p.trace ?? null, call))
    this.methods.set("analyzer/analyze", (p, call) =>
      named(analyzers, "analyzer", p).analyze(need(p, "trace"), need(p, "scenario"), need(p, "mode"), call))
  }

  private addLab(): void {
    const runners = byName(this.plugin.runners ?? [], (each) => each.id)
    const evaluators = byName(this.plugin.evaluators ?? [], (each) => each.id)
    this.methods.set("runner/execute", (p, call) =>
      named(runners, "runner", p).execute(need(p, "task"), p.config ?? null, p.setting, call))
    this.methods.set("evaluator/evaluate", (p, call) =>
      named(evaluators, "evaluator", p).evaluate(withDates(need(p, "run")), need(p, "task"), p.config ?? {}, call))
    this.methods.set("evaluator/evaluateScenario", (p, call) =>
      named(evaluators, "evaluator", p).evaluateScenario?.(withDates(need(p, "run")), need(p, "task"), p.config ?? {}, call) ?? [])
  }
}

function offered(provider: SessionProvider): ProviderOffer {
  const { id, scope = "mode", nature = "live", concurrency, defaultModel, mayCost, timeoutGraceMs } = provider
  return {
    id, scope, nature,
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(defaultModel === undefined ? {} : { defaultModel }),
    ...(mayCost === undefined ? {} : { mayCost }),
    ...(timeoutGraceMs === undefined ? {} : { timeoutGraceMs }),
  }
}

function byName<T>(served: readonly T[], name: (each: T) => string): ReadonlyMap<string, T> {
  return new Map(served.map((each) => [name(each), each]))
}

function named<T>(served: ReadonlyMap<string, T>, key: string, params: Params): T {
  const found = served.get(need(params, key))
  if (found === undefined) throw new RpcError(codes.badParams, `there is no ${key} \`${params[key]}\` here`)
  return found
}

function need(params: Params, key: string): any {
  const value = params[key]
  if (value === undefined) throw new RpcError(codes.badParams, `missing parameter \`${key}\``)
  return value
}

function described(error: unknown): object {
  if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data }
  if (error instanceof ServiceError) {
    return { code: codes.failed, message: error.message, data: { fault: error.fault, ...error.details } }
  }
  console.error(error)
  return { code: codes.internal, message: error instanceof Error ? error.message : String(error) }
}
