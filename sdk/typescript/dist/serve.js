// The loop: requests from stdin (or a socket), answers to stdout, as many at once as come.
import { isBuiltIn } from "./built-in.js";
import { RpcError, ServiceError, codes } from "./errors.js";
const PROTOCOL_VERSION = 1;
const HOOKS = ["beforeRun", "beforeMode", "beforeScenario", "afterScenario", "afterMode", "afterRun"];
/** Serves a plugin until stdin is closed. What is printed goes to stderr, which is the plugin's log. */
export function servePlugin(plugin) {
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    const session = new Session(plugin, (text) => void write(text));
    process.stdin.on("data", (chunk) => session.hear(chunk));
    process.stdin.on("end", () => process.exit(0));
}
/** One conversation with Assize. */
export class Session {
    plugin;
    write;
    methods;
    underway = new Map();
    pieces = [];
    outgoing = [];
    constructor(plugin, write) {
        this.plugin = plugin;
        this.write = write;
        this.methods = new Methods(plugin);
    }
    /** Takes bytes as they come; a message ends with a line end. */
    hear(chunk) {
        let start = 0;
        for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
            this.pieces.push(chunk.subarray(start, end));
            const line = this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces);
            this.pieces = [];
            start = end + 1;
            if (line.length > 0)
                this.understand(line.toString("utf8"));
        }
        if (start < chunk.length)
            this.pieces.push(start === 0 ? chunk : chunk.subarray(start));
    }
    understand(line) {
        let message;
        try {
            message = JSON.parse(line);
        }
        catch {
            console.error(`assize: not a message: ${line.slice(0, 200)}`);
            return;
        }
        if (typeof message?.method !== "string")
            return;
        if (message.id !== undefined)
            void this.answer(message.id, message.method, message.params);
        else if (message.method === "$/cancel")
            this.cancel(message.params?.id);
    }
    async answer(id, method, params) {
        const call = new Underway(id, method, (message) => this.send(message));
        this.underway.set(id, call);
        let answer;
        try {
            const result = this.result(method, params, call);
            answer = { jsonrpc: "2.0", id, result: (result instanceof Promise ? await result : result) ?? null };
        }
        catch (error) {
            answer = { jsonrpc: "2.0", id, error: described(error) };
        }
        if (this.underway.delete(id))
            this.send(answer);
    }
    result(method, params, call) {
        if (typeof params !== "object" || params === null || Array.isArray(params)) {
            throw new RpcError(codes.badParams, "expected named parameters");
        }
        if (method === "initialize") {
            this.plugin.onOptions?.(params.options ?? {});
            return this.initialized();
        }
        return this.methods.call(method, params, call);
    }
    initialized() {
        const info = { name: this.plugin.name ?? "plugin", version: this.plugin.version ?? "0.0.0" };
        return { protocolVersion: PROTOCOL_VERSION, info, capabilities: this.methods.offer() };
    }
    /** The answer is not needed any more, but it is owed. A hook is answered when it is over, since others wait for that. */
    cancel(id) {
        const call = this.underway.get(id);
        if (call === undefined)
            return;
        call.abort();
        if (call.method.startsWith("hooks/"))
            return;
        this.underway.delete(id);
        this.send({ jsonrpc: "2.0", id, error: { code: codes.cancelled, message: "cancelled" } });
    }
    /** Answers that become ready together go out together. */
    send(message) {
        if (this.outgoing.length === 0)
            setImmediate(() => this.flush());
        try {
            this.outgoing.push(JSON.stringify(message) + "\n");
        }
        catch (error) {
            const id = message.id;
            this.outgoing.push(JSON.stringify({ jsonrpc: "2.0", id, error: described(error) }) + "\n");
        }
    }
    flush() {
        const text = this.outgoing.join("");
        this.outgoing = [];
        if (text !== "")
            this.write(text);
    }
}
/** A call under way. The controller is made when somebody asks for it, which few do. */
class Underway {
    id;
    method;
    send;
    controller;
    isAborted = false;
    constructor(id, method, send) {
        this.id = id;
        this.method = method;
        this.send = send;
    }
    get signal() {
        this.controller ??= new AbortController();
        if (this.isAborted)
            this.controller.abort();
        return this.controller.signal;
    }
    abort() {
        this.isAborted = true;
        this.controller?.abort();
    }
    log(message, level = "info") {
        this.send({ jsonrpc: "2.0", method: "$/log", params: { level, message } });
    }
    progress(message, done, total) {
        this.send({ jsonrpc: "2.0", method: "$/progress", params: { token: this.id, message, done, total } });
    }
}
/** Sets the variables of a mode in this process while a provider serves it, so that whatever it starts inherits them. */
class Environment {
    before = new Map();
    enter(provider, variables) {
        this.leave(provider);
        this.before.set(provider, new Map(Object.keys(variables).map((name) => [name, process.env[name]])));
        Object.assign(process.env, variables);
    }
    leave(provider) {
        for (const [name, value] of this.before.get(provider) ?? []) {
            if (value === undefined)
                delete process.env[name];
            else
                process.env[name] = value;
        }
        this.before.delete(provider);
    }
}
/** A run record with its times as `Date`s. What is no time stays as it is. */
function withDates(run) {
    const date = (text) => {
        const time = new Date(String(text));
        return typeof text !== "string" || Number.isNaN(time.getTime()) ? text : time;
    };
    return {
        ...run,
        startedAt: date(run.startedAt),
        ...("completedAt" in run ? { completedAt: date(run.completedAt) } : {}),
        trace: run.trace?.map((event) => ({ ...event, timestamp: date(event.timestamp) })),
    };
}
/** Which method of the protocol is which method of the plugin. */
class Methods {
    plugin;
    methods = new Map();
    providers;
    environment = new Environment();
    constructor(plugin) {
        this.plugin = plugin;
        this.providers = byName([...(plugin.providers ?? []), ...(plugin.provider ? [plugin.provider] : [])], (each) => each.id);
        this.addProviders();
        this.addMeasures();
        this.addLab();
        const { modeResolver, hooks = {} } = plugin;
        if (modeResolver)
            this.methods.set("modeResolver/resolve", (p, call) => modeResolver.resolve(need(p, "mode"), call));
        for (const event of HOOKS) {
            const hook = hooks[event];
            const key = event.endsWith("Mode") ? "mode" : "context";
            if (hook)
                this.methods.set(`hooks/${event}`, (p, call) => hook.call(hooks, need(p, key), call));
        }
    }
    call(name, params, call) {
        const method = this.methods.get(name);
        if (method === undefined)
            throw new RpcError(codes.unknownMethod, `there is no method \`${name}\``);
        return method(params, call);
    }
    offer() {
        const { analyzers = [], modeResolver, hooks, runners = [], evaluators = [], concurrency } = this.plugin;
        const events = HOOKS.filter((event) => hooks?.[event] !== undefined);
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
        };
    }
    scorers() {
        return [...(this.plugin.scorers ?? []), ...(this.plugin.scorer ? [this.plugin.scorer] : [])];
    }
    collectors() {
        return (this.plugin.collectors ?? []).filter((collector) => !isBuiltIn(collector));
    }
    addProviders() {
        const of = (p) => named(this.providers, "provider", p);
        const add = (name, method) => void this.methods.set(`provider/${name}`, method);
        add("init", (p, call) => {
            const [provider, config] = [of(p), need(p, "config")];
            if (provider.scope !== "session")
                this.environment.enter(provider.id, config.environment ?? {});
            return provider.init(config, call);
        });
        add("createSession", (p, call) => of(p).createSession(need(p, "params"), call));
        add("prompt", (p, call) => of(p).prompt(need(p, "handle"), need(p, "text"), p.timeoutMs, call));
        add("exportSession", (p, call) => of(p).exportSession(need(p, "handle"), call));
        add("destroySession", (p, call) => of(p).destroySession(need(p, "handle"), call));
        add("shutdown", async (p, call) => {
            const provider = of(p);
            try {
                await provider.shutdown(call);
            }
            finally {
                this.environment.leave(provider.id);
            }
        });
    }
    addMeasures() {
        const scorers = byName(this.scorers(), (each) => each.id);
        const collectors = byName(this.collectors(), (each) => each.id);
        const analyzers = byName(this.plugin.analyzers ?? [], (each) => each.name);
        this.methods.set("scorer/evaluate", (p, call) => named(scorers, "scorer", p).evaluate(need(p, "scenario"), need(p, "context"), p.settings ?? {}, call));
        this.methods.set("collector/collect", (p, call) => named(collectors, "collector", p).collect(need(p, "result"), need(p, "scenario"), need(p, "mode"), p.trace ?? null, call));
        this.methods.set("analyzer/analyze", (p, call) => named(analyzers, "analyzer", p).analyze(need(p, "trace"), need(p, "scenario"), need(p, "mode"), call));
    }
    addLab() {
        const runners = byName(this.plugin.runners ?? [], (each) => each.id);
        const evaluators = byName(this.plugin.evaluators ?? [], (each) => each.id);
        this.methods.set("runner/execute", (p, call) => named(runners, "runner", p).execute(need(p, "task"), p.config ?? null, p.setting, call));
        this.methods.set("evaluator/evaluate", (p, call) => named(evaluators, "evaluator", p).evaluate(withDates(need(p, "run")), need(p, "task"), p.config ?? {}, call));
        this.methods.set("evaluator/evaluateScenario", (p, call) => named(evaluators, "evaluator", p).evaluateScenario?.(withDates(need(p, "run")), need(p, "task"), p.config ?? {}, call) ?? []);
    }
}
function offered(provider) {
    const { id, scope = "mode", nature = "live", concurrency, defaultModel, mayCost, timeoutGraceMs } = provider;
    return {
        id, scope, nature,
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(defaultModel === undefined ? {} : { defaultModel }),
        ...(mayCost === undefined ? {} : { mayCost }),
        ...(timeoutGraceMs === undefined ? {} : { timeoutGraceMs }),
    };
}
function byName(served, name) {
    return new Map(served.map((each) => [name(each), each]));
}
function named(served, key, params) {
    const found = served.get(need(params, key));
    if (found === undefined)
        throw new RpcError(codes.badParams, `there is no ${key} \`${params[key]}\` here`);
    return found;
}
function need(params, key) {
    const value = params[key];
    if (value === undefined)
        throw new RpcError(codes.badParams, `missing parameter \`${key}\``);
    return value;
}
function described(error) {
    if (error instanceof RpcError)
        return { code: error.code, message: error.message, data: error.data };
    if (error instanceof ServiceError) {
        return { code: codes.failed, message: error.message, data: { fault: error.fault, ...error.details } };
    }
    console.error(error);
    return { code: codes.internal, message: error instanceof Error ? error.message : String(error) };
}
