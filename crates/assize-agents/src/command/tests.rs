//! Real programs under the provider. The test binary is its own keeper (feature `early-keeper`).

use super::*;
use assize_contracts::{CompletionReason, Fault, Usd};
use serde_json::{Value, json};

struct Done {
    result: Result<PromptResult, ProviderError>,
    trace: SessionTrace,
}

async fn run(mut overrides: Value, script: &str, timeout: Duration) -> Done {
    overrides["command"] = json!(["sh", "-c", script, "sh", "{workspace}"]);
    let provider = CommandProvider::default();
    let workspace = tempfile::tempdir().unwrap();
    let params = CreateSessionParams {
        workdir: workspace.path().to_owned(),
        provider_overrides: Arc::new(overrides.as_object().unwrap().clone()),
        ..CreateSessionParams::default()
    };
    let handle = provider.create_session(&params).await.unwrap();
    let result = provider.prompt(&handle, "hello", timeout).await;
    let trace = provider.export_session(&handle).await.unwrap();
    provider.destroy_session(&handle).await.unwrap();
    Done { result, trace }
}

async fn answer(script: &str) -> PromptResult {
    run(json!({}), script, Duration::from_secs(60))
        .await
        .result
        .unwrap()
}

fn errors(trace: &SessionTrace) -> Vec<&str> {
    trace
        .events
        .iter()
        .filter_map(|event| match &**event {
            TraceEvent::Error { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn stdout_is_the_answer_to_the_prompt_on_stdin() {
    let done = run(json!({}), "cat; echo; pwd", Duration::from_secs(60)).await;
    let result = done.result.unwrap();
    assert!(result.text.starts_with("hello\n/"), "{}", result.text);
    assert_eq!(result.completion_reason, CompletionReason::Stop);
    assert_eq!(result.metrics.tool_calls, None);
    let program = result.metrics.program.unwrap();
    assert_eq!((program.exit_code, program.signal), (Some(0), None));
    assert!(program.cpu_ms.is_some());
    assert_eq!(
        (done.trace.summary.total_turns, done.trace.events.len()),
        (None, 1)
    );
}

#[tokio::test]
async fn events_tell_tools_tokens_and_cost() {
    let script = r#"echo '{"type":"tool_call","name":"sh","success":false}'
        echo noise
        echo '{"type":"text","text":"done"}'
        echo '{"type":"usage","input":4,"output":2,"cost_usd":0.1}'"#;
    let done = run(json!({"output": "events"}), script, Duration::from_secs(60)).await;
    let result = done.result.unwrap();
    assert_eq!(result.text, "done");
    assert_eq!(result.metrics.tool_calls.unwrap()[0].success, Some(false));
    assert_eq!(result.metrics.cost.total_usd, Usd::new(0.1));
    assert_eq!(done.trace.summary.total_tokens.total, Some(6));
    assert_eq!(
        errors(&done.trace),
        ["1 lines are no events, the first is: noise"]
    );
}

#[tokio::test]
async fn events_may_come_in_a_file() {
    let overrides = json!({"output": "events", "events_file": "out.jsonl"});
    let script = r#"echo answer; echo '{"type":"usage","input":4,"output":2}' > out.jsonl"#;
    let result = run(overrides, script, Duration::from_secs(60))
        .await
        .result
        .unwrap();
    assert_eq!(
        (result.text.as_str(), result.metrics.tokens.total),
        ("answer", Some(6))
    );
}

#[tokio::test]
async fn another_exit_code_than_zero_is_the_agents_fault() {
    let done = run(
        json!({}),
        "echo half; echo oh no >&2; exit 3",
        Duration::from_secs(60),
    )
    .await;
    let error = done.result.unwrap_err();
    assert_eq!(
        (error.fault, error.code.as_deref()),
        (Fault::Agent, Some("exit_3"))
    );
    assert_eq!(error.message, "the program ended with exit code 3: oh no");
    assert_eq!(error.partial.unwrap().text, "half");
    assert_eq!(errors(&done.trace), [error.message]);
}

#[tokio::test]
async fn any_exit_code_can_be_left_to_the_checks() {
    let done = run(
        json!({"success_exit": "any"}),
        "echo x; kill -9 $$",
        Duration::from_secs(60),
    )
    .await;
    let result = done.result.unwrap();
    assert_eq!(result.completion_reason, CompletionReason::Stop);
    assert_eq!(result.metrics.program.unwrap().signal, Some(9));
}

#[tokio::test]
async fn an_error_that_the_program_tells_is_the_agents_fault() {
    let script = r#"echo '{"type":"error","message":"no credit"}'"#;
    let done = run(json!({"output": "events"}), script, Duration::from_secs(60)).await;
    let error = done.result.unwrap_err();
    assert_eq!(
        (error.fault, error.message.as_str()),
        (Fault::Agent, "no credit")
    );
    assert_eq!(errors(&done.trace), ["no credit"]);
}

#[tokio::test]
async fn a_timeout_keeps_what_was_written() {
    let script = "echo so far; trap '' TERM; sleep 60 & wait; sleep 60";
    let done = run(json!({"grace_ms": 50}), script, Duration::from_millis(400)).await;
    let result = done.result.unwrap();
    assert_eq!(
        (result.text.as_str(), result.completion_reason),
        ("so far", CompletionReason::Timeout)
    );
    assert_eq!(errors(&done.trace).len(), 1);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_teaches_nothing() {
    let provider = CommandProvider::default();
    let overrides = json!({"command": ["no-such-program-anywhere"]});
    let params = CreateSessionParams {
        workdir: "/".into(),
        provider_overrides: Arc::new(overrides.as_object().unwrap().clone()),
        ..CreateSessionParams::default()
    };
    let handle = provider.create_session(&params).await.unwrap();
    let error = provider
        .prompt(&handle, "x", Duration::from_secs(9))
        .await
        .unwrap_err();
    assert_eq!(
        (error.fault, error.code.as_deref()),
        (Fault::Service, Some("program_not_started"))
    );
    assert!(
        error.message.contains("it is in no directory of PATH"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_the_cut_is_said() {
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; printf END";
    let overrides = json!({"max_output": 1_000_000});
    let result = run(overrides, script, Duration::from_secs(60))
        .await
        .result
        .unwrap();
    assert!(result.text.len() < 1_200_000);
    assert!(result.text.contains("bytes cut]") && result.text.ends_with("END"));
}

#[tokio::test]
async fn invalid_utf8_and_escape_codes_are_data() {
    assert_eq!(
        answer("printf 'a\\377b\\033[31m'").await.text,
        "a\u{fffd}b\u{1b}[31m"
    );
}

#[tokio::test]
async fn a_program_that_closes_its_output_early_is_waited_for() {
    let result = answer("echo x; exec >&- 2>&-; sleep 0.2").await;
    assert_eq!(result.text, "x");
    assert!(result.metrics.timing.wall_ms.unwrap().value() >= 200.0);
}
