use assize_contracts::*;
use assize_llm::testing::{Reply, ScriptedEndpoint};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn made(uses: &str, config: Value) -> Result<Arc<dyn Runner>, ConfigError> {
    let plugins = crate::plugins();
    let config = config.as_object().unwrap();
    let setup = RunnerSetup {
        id: "r",
        task_type: "x",
        config,
        directory: Path::new("."),
        prices_file: None,
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
        let error = made("rules", config).err().unwrap();
        assert!(error.message.contains(expected), "{error:?}");
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
        events.contains(&"prompt") && events.contains(&"text_output"),
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
    let error = made("agent", json!({"provider": {"uses": "nobody"}}))
        .err()
        .unwrap();
    assert_eq!(error.message, "unknown provider `nobody`");
}

fn answering(reply: Reply) -> ScriptedEndpoint {
    ScriptedEndpoint::start(move |_, _| reply.clone()).unwrap()
}

#[tokio::test]
async fn a_service_gets_the_task_by_post() {
    let service = answering(Reply::json(&json!({"result": {"intent": "book"}})));
    let config = json!({"url": service.url(), "body": {"text": "{input.text}"}, "output": "result", "headers": {"x-test": "1"}});
    let record = run("http", config, json!({"text": "hi"})).await;
    assert_eq!(record.output, Some(json!({"intent": "book"})));
    let received = &service.received()[0];
    assert_eq!(
        (&received.body, received.header("x-test")),
        (&json!({"text": "hi"}), Some("1"))
    );
    let whole = answering(Reply::json(&json!(7)));
    let record = run("http", json!({"url": whole.url()}), json!("hi")).await;
    assert_eq!(record.output, Some(json!(7)));
    assert_eq!(whole.received()[0].body["input"], json!("hi"));
}

#[tokio::test]
async fn a_service_that_answers_500_junk_or_nothing_fails_and_one_that_is_not_there_teaches_nothing()
 {
    let run_on = async |reply: Reply, ms: u64| {
        let service = answering(reply);
        run_within("http", json!({"url": service.url()}), json!(1), ms)
            .await
            .unwrap()
    };
    let refused = run_on(Reply::Body(500, "oh no".into()), 60_000).await;
    assert_eq!(
        error(&refused),
        ("request", "the service answers 500: `oh no`")
    );
    let junk = run_on(Reply::Body(200, "<html>".into()), 60_000).await;
    assert_eq!(error(&junk).0, "parse-output");
    let empty = run_on(Reply::Body(200, String::new()), 60_000).await;
    assert_eq!(error(&empty).0, "parse-output");
    let silent = run_on(Reply::Silence, 200).await;
    assert_eq!(error(&silent), ("request", "no answer within 200 ms"));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = run_within(
        "http",
        json!({"url": format!("http://{nobody}")}),
        json!(1),
        10_000,
    )
    .await;
    assert!(gone.unwrap_err().to_string().contains("cannot be reached"));
}

fn said(text: &str) -> Reply {
    Reply::json(&json!({
        "id": "1", "object": "chat.completion", "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }))
}

fn model(endpoint: &ScriptedEndpoint) -> Value {
    json!({
        "api": "openai", "base_url": endpoint.url(), "model": "gpt-4o-mini", "retries": 0,
        "system": "You know intents.", "prompt": "Intent of: {input.text}",
        "schema": {"type": "object", "properties": {"intent": {"type": "string"}}, "required": ["intent"], "additionalProperties": false},
    })
}

#[tokio::test]
async fn a_model_answers_in_the_form_it_is_asked_for() {
    let endpoint = answering(said(r#"{"intent": "book"}"#));
    let record = run("llm", model(&endpoint), json!({"text": "hi"})).await;
    assert_eq!(record.output, Some(json!({"intent": "book"})), "{record:?}");
    assert_eq!(record.metrics.tokens, Some(120));
    assert!(record.metrics.cost.unwrap().value() > 0.0);
    let body = &endpoint.received()[0].body;
    assert_eq!(body["model"], "gpt-4o-mini");
    assert!(
        body.to_string().contains("Intent of: hi")
            && body.to_string().contains("You know intents."),
        "{body}"
    );
    assert!(body["response_format"].is_object(), "{body}");
    let events: Vec<&str> = record.trace.iter().map(|event| &*event.event).collect();
    assert_eq!(events, ["started", "llm_call", "llm_answer"]);
}

#[tokio::test]
async fn what_a_model_says_wrong_is_a_failure_and_what_a_service_does_wrong_teaches_nothing() {
    let wrong_form = answering(said(r#"{"intention": 1}"#));
    let record = run("llm", model(&wrong_form), json!({"text": "hi"})).await;
    assert_eq!(error(&record).0, "validate-output");
    assert_eq!(
        record.metrics.tokens,
        Some(120),
        "it was paid for all the same"
    );
    let no_json = answering(said("I would rather not."));
    let record = run("llm", model(&no_json), json!({"text": "hi"})).await;
    assert_eq!(error(&record).0, "parse-output");
    let silent = answering(Reply::Silence);
    let record = run_within("llm", model(&silent), json!({"text": "hi"}), 200)
        .await
        .unwrap();
    assert_eq!(error(&record), ("llm_call", "no answer within 200 ms"));
    for (reply, expected) in [
        (Reply::Body(500, "{}".into()), "500"),
        (Reply::Body(200, "<html>".into()), "not one of"),
    ] {
        let endpoint = answering(reply);
        let broken = run_within("llm", model(&endpoint), json!({"text": "hi"}), 60_000).await;
        let message = broken.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_key_that_is_not_set_is_missed_before_anything_runs() {
    let error = made(
        "llm",
        json!({"api": "openai", "model": "m", "key_env": "NO_SUCH_KEY_HERE"}),
    )
    .err()
    .unwrap();
    assert_eq!(
        error.message,
        "the environment variable `NO_SUCH_KEY_HERE` is not set"
    );
}

#[tokio::test]
async fn rule_2_every_runner_notes_its_key_steps() {
    let service = answering(Reply::json(&json!("fine")));
    let asked = answering(said("fine"));
    let check = async |uses: &str, config: Value, expected: &[&str]| {
        let record = run(uses, config, json!({"text": "hi"})).await;
        let events: Vec<&str> = record.trace.iter().map(|event| &*event.event).collect();
        for name in ["started"].iter().chain(expected) {
            assert!(events.contains(name), "{uses}: {name} is not in {events:?}");
        }
    };
    check(
        "rules",
        json!({"rules": [{"output": 1}]}),
        &["rule_matched"],
    )
    .await;
    check(
        "command",
        json!({"command": ["echo", "1"]}),
        &["program_ended"],
    )
    .await;
    check(
        "http",
        json!({"url": service.url()}),
        &["request", "response"],
    )
    .await;
    check("llm", model(&asked), &["llm_call", "llm_answer"]).await;
    let agent = json!({"provider": {"uses": "simulated", "latency_ms": 0}});
    check("agent", agent, &["prompt", "text_output"]).await;
}
