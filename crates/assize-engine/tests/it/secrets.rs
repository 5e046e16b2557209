//! Secrets planted in environment, output and traces are in no file of a run.

use crate::support::*;
use assize_contracts::testing::{Script, ScriptedPrompt};
use assize_contracts::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const TOKEN: &str = "correct horse \"battery\" staple";
const KEY: &str = concat!("sk-", "ant-api03-", "abcdefghijklmnopqrstuvwxyz");

#[tokio::test]
async fn no_secret_reaches_the_disk() {
    let said = format!("the token is {TOKEN}, the key {KEY}");
    let call = TraceEvent::ToolCall {
        name: "bash".into(),
        input: json!({"command": format!("curl -H 'x: {TOKEN}'"), TOKEN: [KEY]}),
        output: json!(said),
        duration_ms: None,
        success: Some(false),
        error: Some(said.clone()),
        context: None,
    };
    let trace =
        SessionTrace::from_events("s".into(), vec![Arc::new(call)], TokenBreakdown::default());
    let result = PromptResult {
        text: said.clone(),
        ..Default::default()
    };
    let script = Script {
        export: Ok(trace),
        ..Script::of(ScriptedPrompt::Answer(Box::new(result)))
    };
    let mut bench = Bench::new(vec![
        script,
        Script::of(ScriptedPrompt::Fail(ProviderError::service(said.clone()))),
    ]);
    bench.suite.execution.repetitions = 2;
    bench.suite.secrets.add("TOKEN", TOKEN);
    bench.suite.modes[0].environment =
        Arc::new(BTreeMap::from([("TOKEN".to_owned(), TOKEN.to_owned())]));
    let details = vec![ScorerCheckResult {
        id: "c".into(),
        actual: Some(json!(said)),
        ..Default::default()
    }];
    let scored = ScorerResult {
        details,
        ..Default::default()
    };
    bench.suite.scorer = Arc::new(NotingScorer(bench.noting(Behaviour::Fine), scored));
    let done = bench.run().await;

    assert_eq!(
        done.provider.params()[0].environment["TOKEN"],
        TOKEN,
        "the agent itself gets it"
    );
    let text = all_text(&done.directory());
    for secret in ["correct horse", "battery", "staple", KEY] {
        assert!(!text.contains(secret), "found {secret} in {text}");
    }
    assert!(text.matches("[redacted-").count() >= 6);
    assert!(
        text.contains("\"TOKEN\""),
        "the manifest names the variable"
    );
    assert_eq!(done.rows().len(), 2, "the records can still be read");
}
