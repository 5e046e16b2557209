//! One good run of each agent: it does its work, and every token of the script is counted.

use crate::agents::{
    Agent, CHAT, CLAUDE_CODE, CODEX, GEMINI, GEMINI_ACP, OPENCODE, OPENCODE_ACP, SCENARIO,
};
use crate::offline::Offline;
use serde_json::Value;

pub(crate) fn claude_code() {
    check(&CLAUDE_CODE);
}

pub(crate) fn codex() {
    check(&CODEX);
}

pub(crate) fn opencode() {
    check(&OPENCODE);
}

pub(crate) fn gemini() {
    check(&GEMINI);
}

pub(crate) fn gemini_acp() {
    check(&GEMINI_ACP);
}

pub(crate) fn opencode_acp() {
    check(&OPENCODE_ACP);
}

/// No agent at all: the bare model with tools.
pub(crate) fn chat() {
    check(&CHAT);
}

fn check(agent: &Agent) {
    check_run(agent, &agent.suite(SCENARIO));
}

/// The trial passes, and its numbers are those of the script; agent and wire agree.
pub(crate) fn check_run(agent: &Agent, offline: &Offline) {
    let row = &agent.run(offline)[0];
    check_tokens(row, offline);
    check_reach(row, offline);
    let calls = row["toolCalls"]["records"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{row:#}");
    assert_ne!(calls[0]["success"], false, "{row:#}");
    let calls = offline.trace(0)["modelCalls"].as_array().unwrap().clone();
    let main = calls.iter().filter(|call| call["side"] == false);
    assert_eq!(main.count(), 2, "{calls:#?}");
}

/// A pass with the tokens of the script, to which the agent has nothing else to say.
pub(crate) fn check_tokens(row: &Value, offline: &Offline) {
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(tokens(row), expected(&offline.wire()), "{row:#}");
    let measured = row["extensions"].as_object().unwrap();
    let is_claim = |name: &&String| name.contains("_reported_");
    assert_eq!(measured.keys().find(is_claim), None, "{row:#}");
}

/// Model and instructions of the suite reach the LLM, no other host is looked up, and the user's home stays as it was.
pub(crate) fn check_reach(row: &Value, offline: &Offline) {
    let model = row["model"].as_str().unwrap();
    let wire = offline.wire();
    let main: Vec<&Value> = wire
        .iter()
        .filter(|exchange| exchange["side"] == false)
        .collect();
    let first = main.first().unwrap()["request"].to_string();
    assert!(first.contains("Answer in one sentence."), "{first}");
    for exchange in main {
        let path = exchange["path"].as_str().unwrap();
        let asked = exchange["request"]["model"].as_str().unwrap_or_default();
        let is_asked = asked.ends_with(model) || path.contains(model);
        assert!(is_asked, "{model} is not asked by {exchange:#}");
    }
    assert_eq!(offline.names(), "", "hosts that were looked for");
    let left = |place: &str| {
        let entries = std::fs::read_dir(offline.path(place)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // What is Assize's own, and the scripted LLM's.
        let is_known = |name: &String| name.starts_with("assize-") || name.starts_with("tmp");
        names.filter(|name| !is_known(name)).collect::<Vec<_>>()
    };
    assert_eq!(left("home"), [".keep"], "left in the user's home");
    assert_eq!(left("tmp"), [".keep"], "left in TMPDIR");
}

/// All input, cache reads, all output.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Tokens {
    pub(crate) prompt: u64,
    pub(crate) cache_read: u64,
    pub(crate) completion: u64,
}

pub(crate) fn tokens(row: &Value) -> Tokens {
    let of = |keys: &[&str]| {
        let count = |key: &&str| row["tokens"][*key].as_u64().unwrap_or(0);
        keys.iter().map(count).sum()
    };
    Tokens {
        prompt: of(&["input", "cacheRead", "cacheWrite"]),
        cache_read: of(&["cacheRead"]),
        completion: of(&["output", "reasoning"]),
    }
}

/// The script's counts for the requests that were really made: two turns, and side requests where the agent makes any.
pub(crate) fn expected(wire: &[Value]) -> Tokens {
    let mut sum = Tokens::default();
    for exchange in wire.iter().filter(|exchange| exchange["status"] == 200) {
        let (prompt, cache_read, completion) = match (&exchange["side"], &exchange["turn"]) {
            (Value::Bool(true), _) => (142, 0, 6),
            (_, turn) if turn == 0 => (11961, 9216, 96),
            (_, turn) if turn == 1 => (12337, 11947, 41),
            _ => continue,
        };
        sum.prompt += prompt;
        sum.cache_read += cache_read;
        sum.completion += completion;
    }
    sum
}
