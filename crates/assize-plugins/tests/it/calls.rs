//! Calls that go well, at once and one after another.

use crate::support::{LONG, collect, example, faulty, program, spec, start};
use assize_contracts::{BaseScenario, CreateSessionParams, PromptResult};
use futures_util::future::join_all;

#[test]
fn a_collector_answers_like_one_that_is_built_in() {
    let host = start(faulty("none")).unwrap();
    let metrics = host.block_on(collect(&host, "good")).unwrap().unwrap();
    assert_eq!(metrics[0].name, "answered");
    host.end();
}

#[test]
fn a_rust_program_serves_what_it_registers() {
    let words = example("words");
    let host = start(spec(&[words.to_str().unwrap()])).unwrap();
    let plugins = host.plugins();
    let collector = &plugins.collectors()["answer_words"];
    let result = PromptResult {
        text: "four words it is".to_owned(),
        ..PromptResult::default()
    };
    let scenario = BaseScenario::new("x", "y");
    let call = collector.collect(&result, &scenario, "plain", None);
    let metrics = host.block_on(call).unwrap().unwrap();
    assert_eq!(serde_json::to_value(&metrics).unwrap()[0]["value"], 4);
    host.end();
}

#[test]
fn many_calls_at_once_are_each_answered_once() {
    let host = start(faulty("none")).unwrap();
    let calls = (0..500).map(|_| collect(&host, "good"));
    let answers = host.block_on(join_all(calls)).unwrap();
    assert!(answers.into_iter().all(|answer| answer.unwrap().len() == 1));
}

#[test]
fn an_unanswered_call_holds_up_no_other() {
    let host = start(faulty("none")).unwrap();
    host.block_on(async {
        let never = collect(&host, "never");
        let others = join_all((0..50).map(|_| collect(&host, "good")));
        tokio::select! {
            _ = never => panic!("it was never to be answered"),
            answers = others => assert!(answers.iter().all(Result::is_ok)),
        }
        // The unanswered one was cancelled by being dropped; the plugin goes on.
        assert!(collect(&host, "good").await.is_ok());
    });
}

#[test]
fn what_a_plugin_says_is_kept_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(faulty("stderr")).unwrap();
    let redact: assize_plugins::Redact =
        std::sync::Arc::new(|text: &str| text.replace("hello", "[redacted]"));
    host.keep_logs_in(directory.path(), &redact).unwrap();
    host.block_on(collect(&host, "bad")).unwrap().unwrap();
    host.end();
    let log = std::fs::read_to_string(directory.path().join("mine.log")).unwrap();
    assert!(
        log.contains("info: [redacted] from the plugin"),
        "{}",
        &log[..200]
    );
    assert!(log.contains("stderr: noise") && log.len() < 5 << 20);
    assert!(program(&host).offer().is_some());
}

/// A provider in TypeScript whose prompts take their time without doing anything.
const PATIENT: &str = "
import { servePlugin } from 'KIT'
const summary = { totalTurns: 0, totalToolCalls: 0, totalTokens: {}, totalDuration: null }
servePlugin({ provider: {
  id: 'patient', scope: 'session',
  init() {}, shutdown() {}, destroySession() {},
  createSession: ({ iteration }) => ({ sessionId: `s${iteration}`, provider: 'patient', createdAt: '2026-01-01T00:00:00Z' }),
  async prompt({ sessionId }) {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    return { text: sessionId, metrics: {}, completionReason: 'stop' }
  },
  exportSession: ({ sessionId }) => ({ sessionId, events: [], turns: [], summary }),
} })
";

#[test]
fn two_hundred_sessions_in_one_process_do_not_wait_for_each_other() {
    let kit =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript/dist/index.js");
    let directory = tempfile::tempdir().unwrap();
    let plugin = directory.path().join("patient.mjs");
    let kit = kit.canonicalize().unwrap().display().to_string();
    std::fs::write(&plugin, PATIENT.replace("KIT", &kit)).unwrap();
    let host = start(spec(&["node", plugin.to_str().unwrap()])).unwrap();
    let provider = host.plugins().providers()["patient"].instance();
    let session = async |number: i64| {
        let params = CreateSessionParams {
            iteration: number,
            ..CreateSessionParams::default()
        };
        let handle = provider.create_session(&params).await.unwrap();
        let result = provider.prompt(&handle, "hello", LONG).await.unwrap();
        assert_eq!(result.text, format!("s{number}"));
        assert_eq!(
            provider.export_session(&handle).await.unwrap().session_id,
            result.text
        );
        provider.destroy_session(&handle).await.unwrap();
    };
    let began = std::time::Instant::now();
    host.block_on(join_all((0..200).map(session)));
    // One after another they would take 200 s.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    host.end();
}
