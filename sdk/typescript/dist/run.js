// Runs a suite from a script: starts `assize` with this very process as its plugin.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Session } from "./serve.js";
/** Runs a suite to its end. Providers that do not say otherwise serve one mode after another, as there is one process. */
export async function runProfileSuite(options) {
    const home = await mkdtemp(join(tmpdir(), "assize-"));
    const suiteFile = join(process.cwd(), `.assize-suite-${randomBytes(6).toString("hex")}.json`);
    const socket = join(home, "plugin.sock");
    const server = await listen(options, socket);
    try {
        const suite = await suiteOf(options, home, socket);
        await writeFile(suiteFile, JSON.stringify(suite));
        return await run(options, suiteFile);
    }
    finally {
        server.close();
        await rm(suiteFile, { force: true });
        await rm(home, { recursive: true, force: true });
    }
}
/** Everybody who connects talks to the same objects. */
async function listen(options, path) {
    const served = {
        name: options.name ?? "suite",
        provider: options.provider,
        scorers: options.scorer ? [options.scorer] : [],
        collectors: options.collectors ?? [],
        analyzers: (options.analyzers ?? []).filter((analyzer) => typeof analyzer !== "string"),
        ...(options.modeResolver ? { modeResolver: options.modeResolver } : {}),
        ...(options.hooks ? { hooks: options.hooks } : {}),
    };
    const server = createServer((connection) => {
        const session = new Session(served, (text) => void connection.write(text));
        connection.on("data", (chunk) => session.hear(chunk));
        connection.on("error", () => connection.destroy());
    });
    await new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(path, resolve);
    });
    return server;
}
async function suiteOf(options, home, socket) {
    const paths = [];
    for (const [number, scenario] of options.scenarios.entries()) {
        const path = join(home, `scenario-${number}.json`);
        await writeFile(path, JSON.stringify(scenario));
        paths.push(path);
    }
    const modes = options.modes ?? ["default"];
    const { collectors, analyzers = [], hooks } = options;
    const hasHooks = hooks !== undefined && Object.values(hooks).some((hook) => typeof hook === "function");
    return {
        version: 1,
        ...(options.name === undefined ? {} : { name: options.name }),
        provider: { uses: options.provider.id },
        modes: options.modeResolver ? modes : Object.fromEntries(modes.map((mode) => [mode, {}])),
        ...(options.modeResolver ? { modeResolver: "script" } : {}),
        ...(options.models ? { models: options.models } : {}),
        scenarios: { paths },
        ...(options.scorer ? { scorer: { uses: options.scorer.id } } : {}),
        ...(collectors ? { collectors: collectors.map(({ id }) => id) } : {}),
        analyzers: analyzers.map((analyzer) => (typeof analyzer === "string" ? analyzer : analyzer.name)),
        ...(hasHooks ? { hooks: "script" } : {}),
        execution: defined({
            repetitions: options.repetitions, allowedRetries: options.allowedRetries, warmup: options.warmup,
            concurrency: options.concurrency, seed: options.seed, timeoutDefaultMs: options.timeoutMs,
        }),
        output: defined({ sessionExport: options.sessionExport, resultsDir: options.resultsDir }),
        ...(options.permissions ? { permissions: options.permissions } : {}),
        plugins: [{ id: "script", socket, timeouts: options.timeouts ?? {} }],
        ...options.suite,
    };
}
function defined(values) {
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
async function run(options, suiteFile) {
    const binary = options.binary ?? process.env.ASSIZE_BIN ?? "assize";
    const child = spawn(binary, ["run", suiteFile, "--json", "--yes"], { stdio: ["ignore", "pipe", "pipe"] });
    const [events, words, code] = await Promise.all([
        text(child.stdout), text(child.stderr),
        new Promise((resolve, reject) => {
            child.once("error", (error) => reject(new Error(`cannot start \`${binary}\`: ${error.message}`)));
            child.once("close", resolve);
        }),
    ]);
    const told = events.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
    const started = told.find((event) => event.event === "run_started");
    if (started === undefined || code === 1 || code === 2) {
        throw new Error(`\`assize run\` ended with exit code ${code}:\n${words.trim()}`);
    }
    const directory = started.directory;
    const finished = told.find((event) => event.event === "run_finished");
    const rows = (await readFile(join(directory, "rows.jsonl"), "utf8")).split("\n").filter((line) => line !== "");
    return { runId: started.runId, directory, rows: rows.map((line) => JSON.parse(line)), open: finished?.open ?? 0 };
}
async function text(stream) {
    const chunks = [];
    for await (const chunk of stream)
        chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
}
