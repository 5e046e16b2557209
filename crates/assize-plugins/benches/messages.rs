//! Measures the cost of plugins: the host's share per message, and all CPU that a collector in Node adds to a trial.
//!
//! `cargo build --release -p assize-plugins --examples && cargo bench -p assize-plugins`, on a quiet machine.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found and may panic"
)]

use assize_contracts::{BaseScenario, Collector, PromptResult, SessionTrace, TraceEvent};
use assize_plugins::{PluginHost, PluginSpec, Transport};
use futures_util::stream::{self, StreamExt};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TRIALS: u32 = 1000;
const AT_ONCE: usize = 8;
const PER_MESSAGE_BUDGET: Duration = Duration::from_micros(20);
const PER_TRIAL_BUDGET: Duration = Duration::from_micros(200);

fn main() {
    // `cargo test` runs benches, too; a debug build says nothing about speed.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let words = beside("examples/words");
    let small = measure(
        &[words.to_str().unwrap()],
        "answer_words",
        20 * TRIALS,
        None,
    );
    let share = small.own / (2 * 20 * TRIALS);
    println!("host, per message:                {share:?} of CPU (budget {PER_MESSAGE_BUDGET:?})");
    let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript/dist/index.js");
    let directory = tempfile::tempdir().unwrap();
    let plugin = directory.path().join("plugin.mjs");
    let code = format!(
        "import {{ servePlugin }} from '{}'\n\
         servePlugin({{ collectors: [{{ id: 'reasoning', collect: async (_r, _s, _m, trace) =>\n\
         [{{ name: 'reasoning', value: trace.events.filter((e) => e.type === 'reasoning').length, unit: 'count' }}] }}] }})\n",
        kit.canonicalize().unwrap().display()
    );
    std::fs::write(&plugin, code).unwrap();
    let command = ["node", plugin.to_str().unwrap()];
    let trace = Arc::new(trace(50));
    // A start and a few calls more or less do not matter, so what starting costs is taken off.
    let idle = measure(&command, "reasoning", 0, None);
    let busy = measure(&command, "reasoning", TRIALS, Some(trace));
    let per_trial = (busy.all() - idle.all()) / TRIALS;
    println!(
        "collector in Node, per trial:     {per_trial:?} of CPU (budget {PER_TRIAL_BUDGET:?})"
    );
    println!(
        "  of which the host's             {:?}",
        busy.own.saturating_sub(idle.own) / TRIALS
    );
    println!("  wall time per trial             {:?}", busy.wall / TRIALS);
    let is_within = share < PER_MESSAGE_BUDGET && per_trial < PER_TRIAL_BUDGET;
    println!(
        "{}",
        if is_within {
            "within the budgets"
        } else {
            "OVER BUDGET"
        }
    );
    std::process::exit(i32::from(!is_within));
}

struct Cost {
    own: Duration,
    others: Duration,
    wall: Duration,
}

impl Cost {
    fn all(&self) -> Duration {
        self.own + self.others
    }
}

/// Calls a collector many times and returns the time it took, with the start and the end of the program.
fn measure(
    command: &[&str],
    collector: &str,
    calls: u32,
    trace: Option<Arc<SessionTrace>>,
) -> Cost {
    let (own, others) = (cpu(UsageWho::RUSAGE_SELF), cpu(UsageWho::RUSAGE_CHILDREN));
    let mut host = PluginHost::new().unwrap();
    let spec = PluginSpec {
        id: "bench".to_owned(),
        transport: Transport::Program(command.iter().map(|part| (*part).to_owned()).collect()),
        directory: ".".into(),
        ..PluginSpec::default()
    };
    assert!(host.start(vec![spec]).is_empty());
    let plugins = host.plugins();
    let collector = Arc::clone(&plugins.collectors()[collector]);
    let began = Instant::now();
    // The engine's workers are on a runtime of their own, as here.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let calls = stream::iter(0..calls)
            .map(|_| tokio::spawn(call(Arc::clone(&collector), trace.clone())));
        calls
            .buffer_unordered(AT_ONCE)
            .for_each(|done| async { done.unwrap() })
            .await;
    });
    let wall = began.elapsed();
    host.end();
    Cost {
        own: cpu(UsageWho::RUSAGE_SELF) - own,
        others: cpu(UsageWho::RUSAGE_CHILDREN) - others,
        wall,
    }
}

async fn call(collector: Arc<dyn Collector>, trace: Option<Arc<SessionTrace>>) {
    let scenario = BaseScenario::new("one", "Do it.");
    let result = PromptResult::default();
    collector
        .collect(&result, &scenario, "plain", trace.as_deref())
        .await
        .unwrap();
}

fn cpu(who: UsageWho) -> Duration {
    let usage = getrusage(who).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros as u64)
}

/// A session as agents have them: reasoning, tools, text.
fn trace(events: usize) -> SessionTrace {
    let event = |number: usize| -> TraceEvent {
        let timestamp = format!("2026-01-01T00:00:{:02}.000Z", number % 60);
        let value = match number % 10 {
            0 => {
                json!({ "type": "turn_boundary", "turnNumber": number / 10, "timestamp": timestamp })
            }
            1 | 5 => {
                json!({ "type": "reasoning", "content": "I will look at the tests first.", "durationMs": 120, "tokenCount": 40 })
            }
            9 => {
                json!({ "type": "text_output", "content": "The change is in place.", "tokenCount": 12, "timestamp": timestamp })
            }
            _ => {
                json!({ "type": "tool_call", "name": "Bash", "input": { "command": "pytest -q tests/test_pager.py" },
                         "output": "3 passed in 0.12s", "durationMs": 250, "success": true, "timestamp": timestamp })
            }
        };
        serde_json::from_value(value).unwrap()
    };
    SessionTrace::from_events(
        "session".to_owned(),
        (0..events).map(event).collect(),
        Default::default(),
    )
}

/// Cargo builds examples next to the benches.
fn beside(name: &str) -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    bench.ancestors().nth(2).unwrap().join(name)
}
