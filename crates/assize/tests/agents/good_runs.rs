//! One good run of each agent: it does its work, and every token of the script is counted.

use crate::agents::{
    Agent, CLAUDE_CODE, CODEX, GEMINI, GEMINI_ACP, OPENCODE, OPENCODE_ACP, SCENARIO,
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

fn check(agent: &Agent) {
    let offline = agent.suite(SCENARIO, "");
    check_run(&offline);
}

/// The trial passes, and its numbers are those of the script; agent and wire agree.
pub(crate) fn check_run(offline: &Offline) {
    let rows = offline.run();
    let row = &rows[0];
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(tokens(row), expected(&offline.wire()), "{row:#}");
    let calls = row["toolCalls"]["records"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{row:#}");
    assert_ne!(calls[0]["success"], false, "{row:#}");
    assert_eq!(
        row["extensions"]["tokens_reported_total"],
        Value::Null,
        "{row:#}"
    );
    let calls = offline.trace(0)["modelCalls"].as_array().unwrap().clone();
    let main = calls.iter().filter(|call| call["side"] == false);
    assert_eq!(main.count(), 2, "{calls:#?}");
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

/// What the script says about the requests that were really made: two turns, and side requests where the agent makes any.
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
