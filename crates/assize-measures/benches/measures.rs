//! CPU time of collectors, scorer and analyzers on a trace of 50 events, and of the five analyzers on the published
//! sessions in MB/s of their JSON.
//! Run with `cargo bench -p assize-measures`.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use assize_contracts::{
    Analyzer, BaseScenario, PromptResult, Scorer, ScorerContext, SessionTrace, Timestamp,
    TokenBreakdown, ToolCallRecord, TraceEvent,
};
use assize_measures::ChecksScorer;
use assize_measures::analyzers::{ALL, FIVE, TraceAnalyzer};
use serde_json::json;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

/// The best of the rounds is the least disturbed.
const ROUNDS: usize = 5;

fn main() {
    let trace = fifty_events();
    println!(
        "trace of {} events, {} bytes of JSON",
        trace.events.len(),
        size(&trace)
    );
    for analyzer in FIVE {
        report(analyzer.name(), || analyze(&[analyzer], &trace));
    }
    report("the five", || analyze(&FIVE, &trace));
    report("all analyzers", || analyze(&ALL, &trace));
    collectors_and_scorer(&trace);
    published();
}

fn report(name: &str, work: impl FnMut()) {
    println!("{name:>15}: {:6.2} µs", best(work) * 1e6);
}

fn collectors_and_scorer(trace: &SessionTrace) {
    let plugins = assize_measures::plugins();
    let mut scenario = BaseScenario::new("bench", "prompt");
    let result = Arc::new(prompt_result(trace));
    report("four collectors", || {
        for collector in plugins.collectors().values() {
            let metrics = collector.collect(&result, &scenario, "mode", Some(trace));
            black_box(pollster::block_on(metrics).unwrap());
        }
    });
    let context = ScorerContext {
        agent_output: "done".to_owned(),
        result: Some(Arc::clone(&result)),
        ..ScorerContext::default()
    };
    let scorer = ChecksScorer::new();
    for (name, checks) in [
        ("no checks", json!([])),
        ("one check", json!([{"output": {"contains": "done"}}])),
    ] {
        scenario.checks = checks.as_array().unwrap().clone();
        report(name, || {
            black_box(pollster::block_on(scorer.evaluate(&scenario, &context)).unwrap());
        });
    }
}

fn prompt_result(trace: &SessionTrace) -> PromptResult {
    let call = |event: &Arc<TraceEvent>| match &**event {
        TraceEvent::ToolCall { name, success, .. } => Some(ToolCallRecord {
            name: name.clone(),
            category: "tool".to_owned(),
            success: *success,
            duration_ms: None,
            error: None,
            call_ref: None,
        }),
        _ => None,
    };
    let mut result = PromptResult::default();
    result.metrics.tokens = trace.summary.total_tokens;
    result.metrics.timing.wall_ms = trace.summary.total_duration;
    result.metrics.tool_calls = Some(trace.events.iter().filter_map(call).collect());
    result
}

fn published() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/published/sessions");
    let Ok(entries) = std::fs::read_dir(directory) else {
        println!("the published sessions are not beside this checkout");
        return;
    };
    let texts: Vec<String> = entries
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let megabytes = texts.iter().map(String::len).sum::<usize>() as f64 / 1e6;
    let parse = |text: &String| serde_json::from_str::<SessionTrace>(text).unwrap();
    let traces: Vec<SessionTrace> = texts.iter().map(parse).collect();
    let analysis = best(|| {
        traces.iter().for_each(|trace| analyze(&FIVE, trace));
    });
    let whole = best(|| {
        texts.iter().for_each(|text| analyze(&FIVE, &parse(text)));
    });
    println!("published sessions, {megabytes:.2} MB");
    println!("  the five alone: {:7.0} MB/s", megabytes / analysis);
    println!(" with JSON read: {:7.0} MB/s", megabytes / whole);
}

fn analyze(analyzers: &[TraceAnalyzer], trace: &SessionTrace) {
    for analyzer in analyzers {
        black_box(analyzer.find(black_box(trace)));
    }
}

/// Seconds per call in the best round. Rounds are long beside the steps of the kernel's clock.
fn best(mut work: impl FnMut()) -> f64 {
    let mut seconds_of = |calls: u32| {
        let start = cpu_seconds();
        (0..calls).for_each(|_| work());
        cpu_seconds() - start
    };
    let mut calls = 64;
    while seconds_of(calls) < 0.2 {
        calls *= 2;
    }
    let rounds = (0..ROUNDS).map(|_| seconds_of(calls) / f64::from(calls));
    rounds.fold(f64::INFINITY, f64::min)
}

/// CPU time of this thread as the kernel counts it, which can be in steps of some milliseconds.
fn cpu_seconds() -> f64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = counts.split_whitespace().next().unwrap();
    nanoseconds.parse::<f64>().unwrap() / 1e9
}

/// Ten turns of five events as agents make them: a thought, commands with and without failure, an edit, some text.
fn fifty_events() -> SessionTrace {
    let events = (0..10).flat_map(turn).collect();
    let tokens = TokenBreakdown {
        input: Some(20_000),
        output: Some(2_000),
        reasoning: Some(900),
        cache_read: Some(80_000),
        cache_write: Some(0),
        ..TokenBreakdown::default()
    };
    SessionTrace::from_events("bench".to_owned(), events, tokens.with_totals())
}

fn turn(number: u64) -> [TraceEvent; 5] {
    let command = format!(
        "cd /repo && gh api repos/a/b/pulls/{number}/comments -f body='{}'",
        "x".repeat(400)
    );
    let edit =
        json!({"path": format!("src/{number}.rs"), "old": "a".repeat(300), "new": "b".repeat(300)});
    [
        TraceEvent::TurnBoundary {
            turn_number: number,
            timestamp: Timestamp::from_unix_ms(number as i64 * 7_000),
        },
        TraceEvent::Reasoning {
            content: "**Planning the next step** and looking at what is there".to_owned(),
            duration_ms: None,
            token_count: Some(90),
            context: None,
        },
        call(
            "bash",
            json!({"command": command, "description": "Reply"}),
            number % 5 != 3,
        ),
        call("edit", edit, true),
        TraceEvent::TextOutput {
            content: "Done with this part.".to_owned(),
            token_count: Some(6),
            context: None,
        },
    ]
}

fn call(name: &str, input: serde_json::Value, success: bool) -> TraceEvent {
    TraceEvent::ToolCall {
        name: name.to_owned(),
        input,
        output: json!("line of output\n".repeat(60)),
        duration_ms: None,
        success: Some(success),
        error: (!success).then(|| "HTTP 404: Not Found".to_owned()),
        context: None,
    }
}

fn size(trace: &SessionTrace) -> usize {
    serde_json::to_string(trace).unwrap().len()
}
