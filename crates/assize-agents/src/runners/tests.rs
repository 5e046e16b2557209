use assize_contracts::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn made(uses: &str, config: Value) -> Result<Arc<dyn Runner>, OverrideProblem> {
    let plugins = crate::plugins();
    let config = config.as_object().unwrap();
    let setup = RunnerSetup {
        id: "r",
        task_type: "x",
        config,
        directory: Path::new("."),
        plugins: &plugins,
    };
    plugins.runners()[uses].make(&setup)
}

fn task(input: Value) -> AtomicTask {
    serde_json::from_value(json!({
        "id": "t", "name": "t", "type": "x", "input": input, "metadata": {},
        "context": {"user": "Ada"},
    }))
    .unwrap()
}

async fn run_within(
    uses: &str,
    config: Value,
    input: Value,
    ms: u64,
) -> Result<RunRecord, BoxError> {
    let runner = made(uses, config.clone()).unwrap();
    let setting = RunSetting {
        timeout: Duration::from_millis(ms),
        seed: 7,
        ..RunSetting::default()
    };
    let record = runner.execute_in(&task(input), &config, &setting).await;
    runner.shutdown().await.unwrap();
    record
}

async fn run(uses: &str, config: Value, input: Value) -> RunRecord {
    run_within(uses, config, input, 60_000).await.unwrap()
}

fn error(record: &RunRecord) -> (&str, &str) {
    let error = record.error.as_ref().unwrap();
    (error.step.as_deref().unwrap(), &error.message)
}

#[tokio::test]
async fn the_first_rule_that_fits_gives_the_output() {
    let config = json!({
        "rules": [
            {"when": {"contains": ["订", "机票"]}, "output": {"intent": "book_flight", "said": "{input}"}},
            {"when": [{"at": "kind", "equals": "a"}, {"at": "text", "matches": "^h.+o$"}], "output": "{input.list}"},
            {"when": {"any_of": ["cancel", "stop"]}, "output": "for {context.user}"},
        ],
        "default": {"intent": "unknown"},
    });
    let check = async |input: Value, output: Value| {
        let record = run("rules", config.clone(), input).await;
        assert_eq!(record.output, Some(output));
        assert_eq!(record.metrics.tokens, Some(0));
    };
    check(
        json!("我想订机票"),
        json!({"intent": "book_flight", "said": "我想订机票"}),
    )
    .await;
    check(
        json!({"kind": "a", "text": "hello", "list": [1, 2]}),
        json!([1, 2]),
    )
    .await;
    check(json!("please stop"), json!("for Ada")).await;
    check(json!({"kind": "b"}), json!({"intent": "unknown"})).await;
}

#[tokio::test]
async fn without_a_fitting_rule_a_task_fails_in_a_named_phase() {
    let rules = json!({"rules": [{"when": {"contains": "x"}, "output": "{input.missing}"}]});
    let record = run("rules", rules.clone(), json!("y")).await;
    assert_eq!(error(&record).0, "match");
    let record = run("rules", rules, json!("x")).await;
    assert_eq!(
        error(&record),
        ("render", "the task has no `input.missing`")
    );
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let check = |config: Value, expected: &str| {
        let problem = made("rules", config).err().unwrap();
        assert!(problem.message.contains(expected), "{problem:?}");
    };
    check(
        json!({"rules": [{"when": {"matches": "("}, "output": 1}]}),
        "rule 1",
    );
    check(
        json!({"rules": [{"when": {"at": "x"}, "output": 1}]}),
        "expected `contains`",
    );
    check(json!({"rules": "nowhere.json"}), "`nowhere.json`");
    check(json!({}), "missing field `rules`");
}

#[tokio::test]
async fn a_program_gets_the_task_and_gives_json() {
    let script = r#"read task; echo "$task" | grep -q '"input":"hi"' && echo '{"ok": true}'"#;
    let record = run(
        "command",
        json!({"command": ["sh", "-c", script]}),
        json!("hi"),
    )
    .await;
    assert_eq!(record.output, Some(json!({"ok": true})), "{record:?}");
    assert_eq!(
        record.metrics.tokens, None,
        "nobody knows what a program uses"
    );
}

#[tokio::test]
async fn a_program_that_crashes_babbles_or_hangs_is_a_failed_record() {
    let sh = |script: &str| json!({"command": ["sh", "-c", script]});
    let crashed = run("command", sh("echo oh no >&2; exit 3"), json!(1)).await;
    assert_eq!(
        error(&crashed),
        ("run", "the program ended with exit code 3: oh no")
    );
    let babbled = run("command", sh("echo hello"), json!(1)).await;
    let (phase, message) = error(&babbled);
    assert!(
        phase == "parse-output" && message.contains("`hello`"),
        "{message}"
    );
    let silent = run("command", sh("true"), json!(1)).await;
    assert_eq!(error(&silent).0, "parse-output");
    let hung = run_within("command", sh("sleep 60"), json!(1), 300)
        .await
        .unwrap();
    assert_eq!(
        error(&hung),
        ("run", "the program did not end within 300 ms")
    );
    let flood = json!({"command": ["sh", "-c", "yes | head -c 5000"], "max_output": 1000});
    let flooded = run("command", flood, json!(1)).await;
    assert!(error(&flooded).1.contains("longer than 1000 bytes"));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_teaches_nothing() {
    let missing = json!({"command": ["./no-such-program"]});
    assert!(
        run_within("command", missing, json!(1), 1000)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn an_agent_answers_a_task_in_a_session_of_its_own() {
    let config = json!({
        "provider": {"uses": "command", "command": ["sh", "-c", "echo Sure:; echo '```json'; echo '{\"got\": \"'$0'\"}'; echo '```'", "{prompt}"]},
        "prompt": "for {context.user}: {input.text}",
        "output": "json",
    });
    let record = run("agent", config, json!({"text": "hi"})).await;
    assert_eq!(
        record.output,
        Some(json!({"got": "for Ada: hi"})),
        "{record:?}"
    );
    let events: Vec<&str> = record.trace.iter().map(|event| &*event.event).collect();
    assert!(
        events.contains(&"prompt") && events.contains(&"turn_boundary"),
        "{events:?}"
    );
}

#[tokio::test]
async fn an_agent_that_gives_no_json_or_no_answer_fails() {
    let config = |script: &str| json!({"provider": {"uses": "command", "command": ["sh", "-c", script]}, "output": "json"});
    let text = run("agent", config("echo no"), json!("hi")).await;
    assert_eq!(error(&text).0, "parse-output");
    let hung = run_within("agent", config("sleep 60"), json!("hi"), 300)
        .await
        .unwrap();
    assert_eq!(error(&hung).0, "prompt");
}

#[test]
fn what_is_not_live_is_said() {
    let runner = made("agent", json!({"provider": {"uses": "simulated"}})).unwrap();
    assert_eq!(runner.nature(), Nature::Simulated);
    assert!(!runner.may_cost());
}

#[test]
fn unknown_providers_are_refused() {
    let problem = made("agent", json!({"provider": {"uses": "nobody"}}))
        .err()
        .unwrap();
    assert_eq!(problem.message, "unknown provider `nobody`");
}
