//! The examples that the seeds print run as they stand, with the TypeScript kit.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/shared/harness.rs"]
mod harness;
#[path = "it/support.rs"]
#[expect(dead_code, reason = "the rest is for the tests of the program")]
mod support;
#[path = "it/plugins/typescript.rs"]
mod typescript;

use harness::{Test, beside};
use serde_json::Value;
use std::process::{Command, ExitCode};
use support::Suite;
use typescript::compile;

const SEEDS: &str = "seeds";

fn main() -> ExitCode {
    let tests: &[Test] = &[
        (
            "the_printed_examples_run_as_they_stand",
            the_printed_examples_run_as_they_stand,
        ),
        (
            "the_printed_call_runs_a_suite_from_a_script",
            the_printed_call_runs_a_suite_from_a_script,
        ),
        (
            "every_printed_block_is_compiled_with_the_kit",
            every_printed_block_is_compiled_with_the_kit,
        ),
        (
            "the_provider_of_the_printed_steps_runs",
            the_provider_of_the_printed_steps_runs,
        ),
    ];
    harness::run(SEEDS, tests)
}

/// The directory of the printed code that the kit's compiler sees.
const COMPILED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../sdk/typescript/tests/printed"
);

/// The beginnings of blocks that are no programs: parts are left out in them, or wrong on purpose, so they do not compile.
const SKETCHES: [&str; 6] = [
    "// Example future implementation (not in initial release)",
    "// ❌ 错误：直接添加字段",
    "// ❌ 错误：没有 Trace",
    "// ❌ 错误：没有步骤信息",
    "import type { SessionProvider } from \"assize\"\n\nclass MyProvider implements SessionProvider {",
    "// If a collector returns:",
];

/// Every block of TypeScript in all seeds, with its import line changed.
fn all_printed() -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(beside(SEEDS))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut blocks = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let parts = text.split("```typescript\n").skip(1);
        blocks.extend(parts.map(|part| {
            let code = part.split("```").next().unwrap();
            code.replace("@ghx-dev/agent-profiler", "assize")
        }));
    }
    blocks
}

/// `npm test` of the kit compiles these files strictly, wherever the checkout is; here they are held against the seeds.
fn every_printed_block_is_compiled_with_the_kit() {
    let compiled: Vec<String> = std::fs::read_dir(COMPILED)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let blocks = all_printed();
    assert!(blocks.len() > 40, "{}", blocks.len());
    let mut sketches = 0;
    for block in blocks {
        if SKETCHES.iter().any(|start| block.starts_with(start)) {
            sketches += 1;
            continue;
        }
        // Methods of one class share their imports, and a call needs its other options.
        let code = match block.find("from \"assize\"\n") {
            Some(place) if block.starts_with("import type") => &block[place + 14..],
            _ => &block,
        };
        for part in code.split("// ... other options\n") {
            let part = part.trim();
            let is_there = compiled.iter().any(|text| text.contains(part));
            assert!(is_there, "is compiled nowhere:\n{part}");
        }
    }
    assert_eq!(sketches, SKETCHES.len());
}

/// The code that the author of the printed steps has to write besides them: an agent that answers at once.
const AUTHOR: &str = r#"
function mapToTraceEvent(event: unknown): TraceEvent {
  return event as TraceEvent
}
class Finished extends MyProvider {
  readonly agentClient: AgentClient = {
    startSession: async ({ scenario }) => `session-${scenario}`,
    send: async (_id, text) => ({
      output: `done: ${text}`, stopReason: "stop",
      usage: { inputTokens: 5, outputTokens: 4, reasoningTokens: 3, cacheReadTokens: 2, cacheWriteTokens: 1, totalTokens: 15 },
      tools: [{ name: "bash", category: "shell", success: true, durationMs: 7 }],
      cost: { total: 0.5, input: 0.25, output: 0.125, reasoning: 0.125 },
    }),
    getSessionEvents: async () => [
      { type: "tool_call", name: "bash", input: {}, output: "ok", durationMs: 7, success: true },
      { type: "text_output", content: "done", tokenCount: 1 },
    ],
    endSession: async () => {},
    stopServer: async () => {},
  }
  async startAgentServer(port: number): Promise<void> {
    if (!(port > 0)) throw new Error(`no port: ${port}`)
  }
  groupEventsIntoTurns(events: readonly TraceEvent[]): readonly Turn[] {
    const startTimestamp = "2026-01-01T00:00:00.000Z"
    return [{ number: 1, events, startTimestamp, endTimestamp: startTimestamp, durationMs: 7 }]
  }
  computeTotalTokens(): TokenBreakdown {
    return { input: 5, output: 4, reasoning: 3, cacheRead: 2, cacheWrite: 1, total: 15, active: 13 }
  }
}
import { servePlugin } from "assize"
servePlugin({ provider: new Finished() })
"#;

fn the_provider_of_the_printed_steps_runs() {
    let suite = Suite::of(
        "provider: { uses: my-provider }\nmodes: { plain: {} }\nscenarios: { paths: ['scenarios/*.yaml'] }\n\
         execution: { repetitions: 1, warmup: false }\nplugins: [{ id: mine, command: [node, provider.js] }]\n",
    );
    let steps = std::fs::read_to_string(format!("{COMPILED}/provider-steps.ts")).unwrap();
    let declared = "declare function mapToTraceEvent(event: unknown): TraceEvent\n";
    assert!(steps.contains(declared));
    suite.write(
        "provider.ts",
        format!("{}{AUTHOR}", steps.replace(declared, "")),
    );
    compile(suite.path());
    suite.done(&["run", "-q"]);
    for row in suite.rows() {
        assert_eq!(row["outcome"], "pass", "{row}");
        assert_eq!(row["tokens"]["active"], 13, "{row}");
        assert_eq!(row["toolCalls"]["byCategory"]["shell"], 1, "{row}");
        assert_eq!(row["cost"]["totalUsd"], 0.5, "{row}");
        assert!(row.get("hookErrors").is_none(), "{row}");
    }
}

/// The code block below a heading of one of the seeds, with its import line changed.
fn printed(seed: &str, heading: &str) -> String {
    let file = std::fs::read_dir(beside(SEEDS))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(seed)
        })
        .unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let section = text.split(&format!("## {heading}\n")).nth(1).unwrap();
    let code = section
        .split("```typescript\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    code.replace("@ghx-dev/agent-profiler", "assize")
}

const STUB_SUITE: &str = "\
provider: { uses: stub-provider }
modes: { plain: {}, other: {} }
scenarios: { paths: ['scenarios/*.yaml'] }
collectors: [token, reasoning_count, tool_stats]
execution: { repetitions: 2 }
plugins:
  - { id: stub, command: [node, provider.js] }
  - { id: reasoning, command: [node, reasoning.js] }
  - { id: tools, command: [node, tools.js] }
";

/// Only the import line is changed and the last line added.
fn the_printed_examples_run_as_they_stand() {
    let suite = Suite::of(STUB_SUITE);
    let serve = "\nimport { servePlugin } from \"assize\"; ";
    let examples = [
        (
            "provider.ts",
            printed("003", "Complete Stub Example"),
            "servePlugin({ provider: stubProvider })",
        ),
        (
            "reasoning.ts",
            printed("004", "Basic Example"),
            "servePlugin({ collectors: [reasoningCountCollector] })",
        ),
        (
            "tools.ts",
            printed("004", "Multi-Metric Collector"),
            "servePlugin({ collectors: [toolStatsCollector] })",
        ),
    ];
    for (file, code, last) in examples {
        suite.write(file, format!("{code}{serve}{last}\n"));
    }
    compile(suite.path());
    suite.done(&["run", "-q"]);
    let rows = suite.rows();
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(row["outcome"], "pass", "{row}");
        assert_eq!(row["tokens"]["total"], 85, "{row}");
        assert_eq!(row["extensions"]["reasoning_events"], 0, "{row}");
        assert_eq!(row["extensions"]["tool_call_total"], 0, "{row}");
        assert!(row.get("hookErrors").is_none(), "{row}");
    }
}

/// The call as it is printed, with the other options filled in.
fn the_printed_call_runs_a_suite_from_a_script() {
    let suite = Suite::of("");
    std::fs::remove_file(suite.path().join("assize.yaml")).unwrap();
    let without_import = |code: String| code[code.find("const ").unwrap()..].to_owned();
    let call = printed("004", "Registering Collectors");
    let call = call.replace(
        "// ... other options",
        "provider: stubProvider, modes: [\"a\", \"b\"], repetitions: 2, hooks: { beforeScenario: () => { calls += 1 } },\n\
         scenarios: [{ id: \"one\", prompt: \"Do it.\" }, { id: \"two\", prompt: \"Do that.\" }], warmup: false,",
    );
    let code = format!(
        "import type {{ SessionProvider, ProviderConfig, CreateSessionParams, SessionHandle, PromptResult, SessionTrace, \
         Collector, CustomMetric, BaseScenario }} from \"assize\"\n{}\n{}\n{}\nlet calls = 0\n{call}\n\
         console.log(JSON.stringify({{ result, calls }}))\n",
        without_import(printed("003", "Complete Stub Example")),
        without_import(printed("004", "Basic Example")),
        without_import(printed("004", "Multi-Metric Collector")),
    );
    suite.write("script.ts", code);
    compile(suite.path());
    let output = Command::new("node")
        .arg("script.js")
        .current_dir(suite.path())
        .env("ASSIZE_BIN", env!("CARGO_BIN_EXE_assize"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = printed["result"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[0]["extensions"]["tool_call_total"], 0);
    assert_eq!(rows[0]["extensions"]["tokens_total"], 85);
    // The hook is the script's own: it sees the script's variables.
    assert_eq!(printed["calls"], 8);
    let left: Vec<_> = std::fs::read_dir(suite.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with(".assize-suite")),
        "{left:?}"
    );
}
