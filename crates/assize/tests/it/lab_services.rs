//! Tasks with services behind them: models, judges, endpoints that fail in every way they can.

use crate::sandbox::{Sandbox, words};
use assize_llm::testing::{Reply, ScriptedEndpoint};
use serde_json::{Value, json};

fn says(text: impl Into<String>) -> Reply {
    Reply::json(&json!({"model": "house-model",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text.into()}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}))
}

fn run(sandbox: &Sandbox) -> Vec<Value> {
    let output = sandbox.assize(&["run", "-q", "--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let mut rows = sandbox.rows();
    rows.sort_by_key(|row| row["scenarioId"].to_string());
    rows
}

fn lines(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.last_run().join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const PRICES: &str =
    r#"{"house-model": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}"#;

/// A task whose answer comes from a model; `more` are lines of the suite.
fn with_model(url: &str, more: &str) -> Sandbox {
    let suite = format!(
        "modes: {{ m: {{}} }}\ntasks: {{ paths: [t.yaml] }}\n\
         runners: [ {{ id: model, uses: llm, type: x, config: {{ api: openai, base_url: '{url}/v1', model: house-model, retries: 0 }} }} ]\n\
         execution: {{ repetitions: 1, warmup: false }}\n{more}"
    );
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("t.yaml", "{ id: t, type: x, input: Be brief }"),
        ("prices.json", PRICES),
    ])
}

#[test]
fn tokens_of_a_task_are_priced_by_the_suites_own_prices() {
    let endpoint = ScriptedEndpoint::start(|_, _| says("Yes.")).unwrap();
    let unpriced = run(&with_model(&endpoint.url(), "")).remove(0);
    assert_eq!(
        (&unpriced["costSource"], &unpriced["cost"]["totalUsd"]),
        (&json!("unknown"), &Value::Null)
    );
    let sandbox = with_model(&endpoint.url(), "prices: { file: prices.json }\n");
    let priced = run(&sandbox).remove(0);
    assert_eq!(priced["costSource"], "computed");
    assert_eq!(priced["cost"]["totalUsd"], 0.0012);
    assert_eq!(priced["costReadings"]["computedUsd"], 0.0012);
    assert_eq!(priced["costReadings"]["reportedUsd"], Value::Null);
    assert_eq!(
        lines(&sandbox, "runs.jsonl")[0]["metrics"]["costSource"],
        "computed"
    );
}

/// Three tasks whose outputs are judged; the endpoint finds the output in its prompt.
fn judged(url: &str) -> Sandbox {
    let suite = format!(
        "modes: {{ table: {{}} }}\ntasks: {{ paths: [tasks.yaml] }}\n\
         judge: {{ api: openai, base_url: '{url}/v1', model: house-model, retries: 0 }}\n\
         prices: {{ file: prices.json }}\n\
         runners: [ {{ id: table, uses: rules, type: reply, config: {{ rules: [ {{ output: '{{input}}' }} ] }} }} ]\n\
         evaluators:\n\
         \x20 - {{ id: whole, uses: schema, config: {{ schema: {{ type: string }} }} }}\n\
         \x20 - id: manners\n\
         \x20   uses: judge\n\
         \x20   config: {{ rubric: {{ criteria: [ {{ id: polite, description: The reply is polite }} ] }} }}\n\
         execution: {{ repetitions: 1, warmup: false }}\n"
    );
    let tasks = "- { id: a-polite, input: Please }\n- { id: b-rude, input: Go away }\n\
                 - { id: c-junk, input: Whatever }\n- { id: d-broken, input: Boom }\n";
    Sandbox::new(&[
        ("assize.yaml", &suite),
        ("tasks.yaml", tasks),
        ("prices.json", PRICES),
    ])
}

#[test]
fn a_judge_scores_tasks_and_what_it_takes_is_kept_apart() {
    let endpoint = ScriptedEndpoint::start(|request, _| {
        let asked = request.body.to_string();
        let verdict = |pass: bool, rationale: &str| {
            let verdict = json!({"id": "polite", "rationale": rationale, "pass": pass});
            says(json!({"verdicts": [verdict]}).to_string())
        };
        match asked {
            asked if asked.contains("Please") => verdict(true, "says please"),
            asked if asked.contains("Go away") => verdict(false, "sends people away"),
            asked if asked.contains("Boom") => Reply::Body(500, "no".to_owned()),
            _ => says("I would rather not say."),
        }
    })
    .unwrap();
    let sandbox = judged(&endpoint.url());
    let rows = run(&sandbox);
    let outcomes: Vec<&str> = rows
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["pass", "fail", "void", "void"], "{rows:#?}");

    let scores = lines(&sandbox, "scores.jsonl");
    let score_of = |row: &Value, metric: &str| {
        let is_it =
            |score: &&Value| score["runId"] == row["sessionId"] && score["metric"] == metric;
        scores.iter().find(is_it).cloned().unwrap_or_default()
    };
    let rude = score_of(&rows[1], "success");
    assert_eq!(
        (&rude["value"], &rude["target"]),
        (&json!(false), &json!("final"))
    );
    assert_eq!(
        rude["evidence"]["alignment"]["polite"]["actual"]["rationale"], "sends people away",
        "{rude:#}"
    );

    // A judge that says nothing of use loses its verdict and no more: other scores stay, and so does what it cost.
    let (junk, broken) = (&rows[2], &rows[3]);
    for row in [junk, broken] {
        assert_eq!(row["errorCode"], "evaluator_error", "{row:#}");
        assert_eq!(row["hookErrors"][0]["hook"], "evaluator:manners");
        assert_eq!(score_of(row, "schema_valid")["value"], true);
        assert_eq!(score_of(row, "success"), Value::Null);
    }
    let error = junk["error"].as_str().unwrap();
    assert!(error.contains("no verdict in 3 answers"), "{error}");
    let error = broken["error"].as_str().unwrap();
    assert!(error.contains("500"), "{error}");
    assert_eq!(score_of(junk, "judge_tokens_total")["value"], 3300);

    // The judge's tokens and money are its own, never the capability's.
    let polite = &rows[0];
    assert_eq!(polite["extensions"]["judge_tokens_total"], 1100);
    assert_eq!(polite["extensions"]["judge_cost_usd"], 0.0012);
    assert_eq!(
        (&polite["tokens"]["total"], &polite["cost"]["totalUsd"]),
        (&json!(0), &json!(0))
    );
}

const FAULTS: &str = r#"{"id":"a-good","type":"service","input":"good"}
{"id":"b-500","type":"service","input":"500"}
{"id":"c-junk","type":"service","input":"junk"}
{"id":"d-silence","type":"service","input":"silence","metadata":{"timeout":700}}
{"id":"e-crash","type":"program","input":"crash"}
{"id":"f-noise","type":"program","input":"noise"}
{"id":"g-nobody","type":"nobody","input":"x"}
{"id":"h-wrong-path","steps":[{"id":"one","type":"service","input":"good"},{"id":"two","type":"program","input":"fine"}],"input_map":{"two":[{"from":"step:one.output.intent","to":"input"}]}}
{"id":"i-good","type":"program","input":"fine"}
"#;

#[test]
fn whatever_fails_gives_a_clear_record_and_loses_nothing_else() {
    let endpoint = ScriptedEndpoint::start(|request, _| match request.body["input"].as_str() {
        Some("500") => Reply::Body(500, "out of order".to_owned()),
        Some("junk") => Reply::Body(200, "<html>".to_owned()),
        Some("silence") => Reply::Silence,
        _ => Reply::json(&json!({"answer": 42})),
    })
    .unwrap();
    let program = r#"case "$(cat)" in *'"crash"'*) kill -9 $$;; *'"noise"'*) echo 'not JSON';; *) echo '{"answer":42}';; esac"#;
    let suite = format!(
        "modes: {{ m: {{}} }}\ntasks: {{ paths: [tasks.jsonl] }}\n\
         runners:\n\
         \x20 - {{ id: service, uses: http, type: service, config: {{ url: '{}' }} }}\n\
         \x20 - {{ id: program, uses: command, type: program, config: {{ command: [sh, work.sh] }} }}\n\
         \x20 - {{ id: nobody, uses: http, type: nobody, config: {{ url: 'http://127.0.0.1:1' }} }}\n\
         evaluators: [ {{ id: shape, uses: schema, config: {{ schema: {{ type: object }} }} }} ]\n\
         execution: {{ repetitions: 1, warmup: false }}\n",
        endpoint.url()
    );
    let sandbox = Sandbox::new(&[
        ("assize.yaml", &suite),
        ("tasks.jsonl", FAULTS),
        ("work.sh", program),
    ]);
    let rows = run(&sandbox);
    let found: Vec<[&str; 2]> = rows
        .iter()
        .map(|row| ["outcome", "errorCode"].map(|key| row[key].as_str().unwrap_or("")))
        .collect();
    assert_eq!(
        found,
        [
            ["pass", ""],
            ["fail", "task_failed"],
            ["fail", "task_failed"],
            ["fail", "timeout"],
            ["fail", "task_failed"],
            ["fail", "task_failed"],
            ["void", "runner_error"],
            ["fail", "task_failed"],
            ["pass", ""],
        ],
        "{rows:#?}"
    );
    let said = [
        "",
        "request: the service answers 500: `out of order`",
        "parse-output: the answer is not JSON",
        "request: no answer within 700 ms",
        "run: the program ended with signal 9",
        "parse-output: the output is not JSON",
        "execute: the service cannot be reached",
        "two: `step:one.output.intent` for `input`: there is nothing at `intent` in the output of `one`",
        "",
    ];
    for (row, said) in rows.iter().zip(said) {
        let error = row["error"].as_str().unwrap_or("");
        assert!(error.starts_with(said), "{error}\nexpected {said}");
    }
    check_records(&sandbox, rows.len());
}

/// Every trial has a record that fits its schema, with a trace from `started` to `completed` or `failed`, and a named step
/// where it failed.
fn check_records(sandbox: &Sandbox, count: usize) {
    let schema = sandbox.done(&["schema", "run-record"]);
    let schema = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let records = lines(sandbox, "runs.jsonl");
    assert_eq!(records.len(), count);
    for record in &records {
        let errors: Vec<String> = validator
            .iter_errors(record)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}: {record:#}");
        let events = record["trace"].as_array().unwrap();
        assert_eq!(events[0]["event"], "started");
        assert_eq!(events.last().unwrap()["event"], record["status"]);
        let has_step = record["error"]["step"].is_string();
        assert_eq!(has_step, record["status"] == "failed", "{record:#}");
    }
}

#[test]
fn a_limit_holds_for_a_runner_like_for_a_provider() {
    // Two at once would find the directory of the other.
    let script = "mkdir busy || exit 1; sleep 0.05; rmdir busy; echo 1";
    let suite = "modes: { m: {} }\ntasks: { paths: [tasks.jsonl] }\n\
        runners: [ { id: program, uses: command, type: x, config: { command: [sh, work.sh] } } ]\n\
        execution: { repetitions: 3, warmup: false, concurrency: 4, limits: { program: 1 } }\n";
    let tasks = "{\"id\":\"a\",\"input\":1}\n{\"id\":\"b\",\"steps\":[{\"id\":\"one\",\"type\":\"x\",\"input\":1}],\"input_map\":{}}\n";
    let sandbox = Sandbox::new(&[
        ("assize.yaml", suite),
        ("tasks.jsonl", tasks),
        ("work.sh", script),
    ]);
    let rows = run(&sandbox);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["outcome"] == "pass"), "{rows:#?}");
    sandbox.write(
        "assize.yaml",
        &suite.replace("limits: { program", "limits: { progam"),
    );
    let said = sandbox.refused(&["check"]);
    assert!(
        said.contains("unknown provider or runner `progam`") && said.contains("`program`"),
        "{said}"
    );
}
