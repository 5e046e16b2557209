//! Failures of an agent: never a pass, never longer than the trial may take, and no process left behind.

use crate::agents::{Agent, CLAUDE_CODE, CODEX, GEMINI, GEMINI_ACP, SCENARIO};
use crate::good_runs::check_tokens;
use crate::offline::Offline;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The functions below for one agent each.
macro_rules! for_agent {
    ($name:ident, $agent:expr) => {
        pub(crate) mod $name {
            use crate::agents::*;

            pub(crate) fn llm_500() {
                super::failing_llm(&$agent, "500", "llm_500");
            }
            pub(crate) fn llm_429() {
                super::failing_llm(&$agent, "429", "llm_429");
            }
            pub(crate) fn llm_401() {
                super::failing_llm(&$agent, "401", "llm_401");
            }
            pub(crate) fn a_prompt_that_grew_too_long() {
                super::a_prompt_that_grew_too_long(&$agent);
            }
            pub(crate) fn a_page_in_place_of_a_model() {
                super::a_page_in_place_of_a_model(&$agent);
            }
            pub(crate) fn no_key() {
                super::no_key(&$agent);
            }
            pub(crate) fn unknown_model() {
                super::unknown_model(&$agent);
            }
            pub(crate) fn wrong_address() {
                super::wrong_address(&$agent);
            }
            pub(crate) fn every_stream_is_cut() {
                super::every_stream_is_cut(&$agent);
            }
            pub(crate) fn one_stream_is_cut() {
                super::one_stream_is_cut(&$agent);
            }
            pub(crate) fn a_void_attempt_is_tried_again() {
                super::a_void_attempt_is_tried_again(&$agent);
            }
            pub(crate) fn time_is_over_while_a_tool_sleeps() {
                super::time_is_over_while_a_tool_sleeps(&$agent);
            }
            pub(crate) fn tools_in_parallel() {
                super::tools_in_parallel(&$agent);
            }
            pub(crate) fn several_prompts() {
                super::several_prompts(&$agent);
            }
        }
    };
}

for_agent!(claude_code, CLAUDE_CODE);
for_agent!(codex, CODEX);
for_agent!(opencode, OPENCODE);
for_agent!(gemini, GEMINI);
for_agent!(gemini_acp, GEMINI_ACP);
for_agent!(opencode_acp, OPENCODE_ACP);
for_agent!(chat, CHAT);

/// An agent that prints only text. It begins every prompt anew, so there are no conversations to continue.
pub(crate) mod goose {
    use crate::agents::GOOSE;

    pub(crate) fn llm_500() {
        super::failing_llm(&GOOSE, "500", "llm_500");
    }
    pub(crate) fn llm_429() {
        super::failing_llm(&GOOSE, "429", "llm_429");
    }
    pub(crate) fn llm_401() {
        super::failing_llm(&GOOSE, "401", "llm_401");
    }
    pub(crate) fn no_key() {
        super::no_key(&GOOSE);
    }
    pub(crate) fn unknown_model() {
        super::unknown_model(&GOOSE);
    }
    pub(crate) fn wrong_address() {
        super::wrong_address(&GOOSE);
    }
    pub(crate) fn a_prompt_that_grew_too_long() {
        super::a_prompt_that_grew_too_long(&GOOSE);
    }
    pub(crate) fn a_page_in_place_of_a_model() {
        super::a_page_in_place_of_a_model(&GOOSE);
    }
    pub(crate) fn every_stream_is_cut() {
        super::every_stream_is_cut(&GOOSE);
    }
    pub(crate) fn time_is_over_while_a_tool_sleeps() {
        super::time_is_over_while_a_tool_sleeps(&GOOSE);
    }
}

/// The agents behind recipes: whatever keeps a model from answering, there is no verdict.
pub(crate) mod no_model {
    use crate::agents::*;

    macro_rules! no_model {
        ($($name:ident, $agent:ident;)+) => {
            $(pub(crate) fn $name() {
                super::no_key(&$agent);
                super::unknown_model(&$agent);
                super::wrong_address(&$agent);
                super::a_page_in_place_of_a_model(&$agent);
            })+
        };
    }

    no_model! {
        qwen, QWEN;
        pi, PI;
        cline, CLINE;
        copilot, COPILOT;
        aider, AIDER;
        mini_swe_agent, MINI_SWE_AGENT;
    }
}

/// The time limit of a trial here, and the time around it.
const TIMEOUT: Duration = Duration::from_secs(120);
const AROUND: Duration = Duration::from_secs(60);

/// The same where nothing but failures is to come: opencode tries again until its time is over.
const TIMEOUT_OF_FAILURES: Duration = Duration::from_secs(40);

fn the_row(agent: &Agent, offline: &Offline) -> Value {
    let began = Instant::now();
    let row = agent.run(offline).remove(0);
    assert!(
        began.elapsed() < TIMEOUT + AROUND,
        "took {:?}",
        began.elapsed()
    );
    row
}

fn limited(scenario: &str, timeout: Duration) -> String {
    format!("{scenario}timeout_ms: {}\n", timeout.as_millis())
}

/// An agent on the usual scenario, with an LLM that fails.
fn failing(agent: &Agent, timeout: Duration, fault: &[&str]) -> Offline {
    let scenario = limited(SCENARIO, timeout);
    let fault = [&["--drop-after", "2", "--fault"], fault].concat();
    agent.suite(&scenario).with_llm(&fault)
}

/// The number of requests that the LLM failed.
fn failures(offline: &Offline) -> usize {
    let wire = offline.wire();
    wire.iter().filter(|call| !call["fault"].is_null()).count()
}

/// The LLM fails for good: nothing was learnt about the agent, whatever its exit code says.
fn failing_llm(agent: &Agent, fault: &str, code: &str) {
    let offline = failing(agent, TIMEOUT_OF_FAILURES, &[fault]);
    let row = the_row(agent, &offline);
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], code, "{row:#}");
    assert_ne!(failures(&offline), 0);
}

/// The API refuses what the agent sends, because it has grown too long: that is what the agent did.
fn a_prompt_that_grew_too_long(agent: &Agent) {
    let from_second = ["overflow", "--fault-from", "2"];
    let offline = failing(agent, TIMEOUT_OF_FAILURES, &from_second);
    let row = the_row(agent, &offline);
    assert_ne!(failures(&offline), 0, "{row:#}");
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert_eq!(row["errorCode"], "context_overflow", "{row:#}");
}

/// A wrong base URL behind which something answers 200.
fn a_page_in_place_of_a_model(agent: &Agent) {
    let offline = failing(agent, TIMEOUT_OF_FAILURES, &["page", "--fault-side"]);
    let row = the_row(agent, &offline);
    assert_ne!(failures(&offline), 0, "{row:#}");
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["voidCause"], "no_model_answer", "{row:#}");
}

/// The API knows no such model, whatever it is asked for.
fn unknown_model(agent: &Agent) {
    let offline = failing(agent, TIMEOUT_OF_FAILURES, &["404", "--fault-side"]);
    let row = the_row(agent, &offline);
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], "llm_404", "{row:#}");
    assert_eq!(row["voidCause"], "no_model_answer", "{row:#}");
    assert_ne!(failures(&offline), 0);
}

/// A wrong base URL behind which nobody listens.
fn wrong_address(agent: &Agent) {
    let offline = agent.suite(&limited(SCENARIO, TIMEOUT_OF_FAILURES));
    let nobody = "http://127.0.0.1:9";
    let offline = offline
        .and_environment("ANTHROPIC_BASE_URL", nobody)
        .and_environment("OPENAI_BASE_URL", &format!("{nobody}/v1"))
        .and_environment("GOOGLE_GEMINI_BASE_URL", nobody);
    let row = the_row(agent, &offline);
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], "llm_unreachable", "{row:#}");
    assert_eq!(row["voidCause"], "no_model_answer", "{row:#}");
}

/// Whoever has no key gets no verdict, also without the look beforehand, and hears it in the agent's own words.
fn no_key(agent: &Agent) {
    let scenario = limited(SCENARIO, TIMEOUT_OF_FAILURES);
    let offline = agent.suite(&scenario).with_environment(&[]);
    let arguments = ["--mode", agent.mode, "--repetitions", "1", "--no-preflight"];
    let row = offline.run(&arguments).remove(0);
    assert_eq!(row["outcome"], "void", "{row:#}");
    // An ACP agent refuses to open a session.
    let cause = row["voidCause"].as_str().unwrap();
    assert!(
        ["no_model_answer", "agent_start"].contains(&cause),
        "{row:#}"
    );
    let said = row["error"].as_str().unwrap();
    let words = match (agent.section, agent.mode) {
        ("claude-code", _) => "Not logged in",
        ("codex", _) => "Missing environment variable",
        ("gemini", _) => "GEMINI_API_KEY",
        ("acp", "gemini") => "API key",
        ("qwen" | "pi" | "aider", _) => "OPENAI_API_KEY",
        ("cline", _) => "--apikey",
        ("mini-swe-agent", _) => "Missing credentials",
        // These ask anyway, and there is no such host.
        _ => "cannot be reached",
    };
    assert!(said.contains(words), "{said}");
}

/// Claude Code asks again without a stream, and gets its answer; the others have none.
fn every_stream_is_cut(agent: &Agent) {
    if !agent.is(&CLAUDE_CODE) {
        return failing_llm(agent, "drop", "llm_error");
    }
    let offline = failing(agent, TIMEOUT, &["drop"]);
    let row = the_row(agent, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_ne!(failures(&offline), 0);
}

/// Agents that try again come to their goal; for the others nothing was learnt.
fn one_stream_is_cut(agent: &Agent) {
    let offline = failing(agent, TIMEOUT, &["drop", "--fault-count", "1"]);
    let row = the_row(agent, &offline);
    let gives_up = agent.is(&GEMINI) || agent.is(&GEMINI_ACP);
    let expected = if gives_up { "void" } else { "pass" };
    assert_eq!(row["outcome"], expected, "{row:#}");
    assert_eq!(failures(&offline), 1);
    let calls = offline.trace(0)["modelCalls"].to_string();
    assert!(calls.contains(r#""ending":"cut""#), "{calls}");
}

/// A scenario may allow another attempt where the LLM failed the first one; what the agent did then is what counts.
fn a_void_attempt_is_tried_again(agent: &Agent) {
    // Some agents try again themselves first.
    let is_stubborn = agent.is(&CLAUDE_CODE) || agent.is(&CODEX);
    let count = if is_stubborn { "4" } else { "1" };
    let offline = failing(agent, TIMEOUT, &["401", "--fault-count", count]);
    let scenario = limited(SCENARIO, TIMEOUT) + "allowed_retries: 2\n";
    offline.write("scenarios/s.yaml", &scenario);
    let row = the_row(agent, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let attempts = row["attempts"].as_array().unwrap();
    assert!(!attempts.is_empty(), "{row:#}");
    for attempt in attempts {
        assert_eq!(attempt["outcome"], "void", "{row:#}");
        assert_eq!(attempt["errorCode"], "llm_401", "{row:#}");
    }
}

/// No process is left: [`Offline::command`] checks that after every run.
fn time_is_over_while_a_tool_sleeps(agent: &Agent) {
    // Codex goes on without the result of a command after ten seconds.
    let timeout_ms = match agent.section {
        "codex" => 6_000,
        "opencode" | "acp" => 60_000,
        _ => 20_000,
    };
    let scenario = format!("{SCENARIO}timeout_ms: {timeout_ms}\n");
    // Outside of its workspace an agent can write nothing that is found afterwards.
    let command = "touch running; sleep 3600";
    let offline = agent.suite(&scenario).with_llm(&["--command", command]);
    let row = the_row(agent, &offline);
    let added = row["extensions"]["files_added"].as_u64();
    assert!(added > Some(0), "no tool was running: {row:#}");
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert_eq!(row["completionReason"], "timeout", "{row:#}");
    assert_eq!(row["censored"], true, "{row:#}");
}

pub(crate) fn script(offline: Offline, script: &Value) -> Offline {
    offline.write("script.json", &script.to_string());
    offline.with_llm(&["--script", "script.json"])
}

fn tools_in_parallel(agent: &Agent) {
    let scenario = format!("{SCENARIO}  - file: {{ path: two.txt, equals: \"ho\\n\" }}\n");
    let turns = json!({"turns": [
        {"tool": "shell", "command": "echo hi > out.txt", "say": "Both at once.",
         "also": [{"tool": "shell", "command": "echo ho > two.txt"}]},
        {"text": "Done: out.txt now contains the word hi."}
    ]});
    let offline = script(agent.suite(&limited(&scenario, TIMEOUT)), &turns);
    let row = the_row(agent, &offline);
    check_tokens(&row, &offline);
    assert_eq!(row["toolCalls"]["total"], 2, "{row:#}");
    let calls = offline.trace(0)["events"].as_array().unwrap().clone();
    let calls = calls.iter().filter(|event| event["type"] == "tool_call");
    assert!(
        calls
            .map(|call| &call["success"])
            .all(|success| success == true),
        "{row:#}"
    );
}

/// The second prompt is asked in the conversation of the first.
fn several_prompts(agent: &Agent) {
    let scenario = SCENARIO.replace("workspace:", "turns: [And once more.]\nworkspace:");
    let scenario = limited(&scenario, TIMEOUT);
    let offline = agent.suite(&scenario);
    let row = the_row(agent, &offline);
    check_tokens(&row, &offline);
    assert_eq!(row["toolCalls"]["total"], 2, "{row:#}");
    let wire = offline.wire();
    let last = wire
        .iter()
        .rfind(|exchange| exchange["side"] == false)
        .unwrap();
    let asked = last["request"].to_string();
    assert!(
        asked.contains("And once more.") && asked.contains("the word hi"),
        "{asked}"
    );
}
