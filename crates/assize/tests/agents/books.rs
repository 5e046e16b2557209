//! The scripted LLM keeps books: every answer has counts of its own, and what was really served is written down call by call.
//! Here every class of token, every tool, every turn and the outcome of a trial are held against them.
//!
//! Nothing of `assize-llm` is used: the books are the LLM's, and adding them up is done here.

use crate::agents::{Agent, CHAT, CLAUDE_CODE, CODEX, GEMINI_ACP, GOOSE, SCENARIO};
use crate::faults::script;
use crate::offline::{Offline, repository};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The functions below for one agent each.
macro_rules! for_agent {
    ($name:ident, $agent:expr) => {
        pub(crate) mod $name {
            use crate::agents::*;

            pub(crate) fn every_number_is_the_served_one() {
                super::every_number_is_the_served_one(&$agent);
            }
            pub(crate) fn a_broken_decoder_is_noticed() {
                super::a_broken_decoder_is_noticed(&$agent);
            }
            pub(crate) fn a_cut_answer_leaves_a_lower_bound() {
                super::a_cut_answer_leaves_a_lower_bound(&$agent);
            }
            pub(crate) fn time_is_over_while_an_answer_streams() {
                super::time_is_over_while_an_answer_streams(&$agent);
            }
            pub(crate) fn a_tool_hangs_when_time_is_over() {
                super::a_tool_hangs_when_time_is_over(&$agent);
            }
            pub(crate) fn not_a_byte_of_an_answer_is_no_verdict() {
                super::not_a_byte_of_an_answer_is_no_verdict(&$agent);
            }
            pub(crate) fn an_error_inside_every_answer_is_no_verdict() {
                super::an_error_inside_every_answer_is_no_verdict(&$agent);
            }
            pub(crate) fn large_output_of_a_tool_fails_nobody() {
                super::large_output_of_a_tool_fails_nobody(&$agent);
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
for_agent!(goose, GOOSE);
for_agent!(qwen, QWEN);
for_agent!(pi, PI);
for_agent!(cline, CLINE);
for_agent!(copilot, COPILOT);
for_agent!(chat, CHAT);

/// The same for APIs whose usage can be missing.
macro_rules! without_usage {
    ($($name:ident, $agent:ident;)+) => {
        $(pub(crate) fn $name() {
            usage_that_is_never_told_is_unknown(&crate::agents::$agent);
        })+
    };
}

without_usage! {
    claude_code_without_usage, CLAUDE_CODE;
    codex_without_usage, CODEX;
    opencode_without_usage, OPENCODE;
    gemini_without_usage, GEMINI;
    gemini_acp_without_usage, GEMINI_ACP;
    opencode_acp_without_usage, OPENCODE_ACP;
    goose_without_usage, GOOSE;
    qwen_without_usage, QWEN;
    pi_without_usage, PI;
    chat_without_usage, CHAT;
}

const CLASSES: [&str; 5] = ["input", "cacheRead", "cacheWrite", "output", "reasoning"];

/// The answer that ends the task, as the scenario's checks want it.
const LAST_WORD: &str = "Done: out.txt now contains the word hi.";

/// The usage that the LLM really served in a session.
#[derive(Debug, Default)]
struct Books {
    /// Sums by class. Absent where one call did not report it, or the API has no such class.
    exact: BTreeMap<String, u64>,
    /// The tokens that were reported in any case.
    at_least: u64,
    /// Every call reported everything.
    is_whole: bool,
    /// Answers to the main agent that came to their end.
    turns: u64,
    /// Tools that were asked for in answers that came to their end, by conversation.
    tools: Vec<(String, String)>,
    /// Calls of subagents.
    of_agents: usize,
}

fn books(wire: &[Value]) -> Books {
    let served: Vec<&Value> = wire
        .iter()
        .filter(|call| call["book"].is_object())
        .collect();
    let mut books = Books {
        is_whole: true,
        ..Books::default()
    };
    let mut unknown: Vec<&str> = Vec::new();
    for call in &served {
        let is_over = call["fault"].is_null() && call["client_gone"].is_null();
        let talk = call["talk"].as_str().unwrap_or_default();
        if is_over && call["side"] == false {
            books.turns += u64::from(talk.is_empty());
            let tools = call["tools"].as_array().unwrap().iter();
            let named =
                tools.map(|tool| (talk.to_owned(), tool["name"].as_str().unwrap().to_owned()));
            books.tools.extend(named);
        }
        books.of_agents += usize::from(!talk.is_empty());
        for class in CLASSES {
            let (has, told) = (&call["book"][class], &call["told"][class]);
            match (has.as_u64(), told.as_u64()) {
                (None, _) => {}
                (Some(_), Some(told)) => {
                    *books.exact.entry(class.to_owned()).or_default() += told;
                    books.at_least += told;
                }
                (Some(_), None) => {
                    books.is_whole = false;
                    unknown.push(class);
                }
            }
        }
    }
    books
        .exact
        .retain(|class, _| !unknown.contains(&class.as_str()));
    books
}

/// Everything in which a trial differs from the books.
fn differences(row: &Value, trace: &Value, wire: &[Value]) -> Vec<String> {
    let books = books(wire);
    let mut found = Vec::new();
    let mut compare = |what: &str, measured: &Value, served: Value| {
        if *measured != served {
            found.push(format!("{what}: measured {measured}, served {served}"));
        }
    };
    let tokens = &row["tokens"];
    for class in CLASSES {
        compare(class, &tokens[class], json!(books.exact.get(class)));
    }
    let bound = &row["tokensAtLeast"]["total"];
    match books.is_whole {
        true => {
            compare("total", &tokens["total"], json!(books.at_least));
            compare("lower bound", bound, Value::Null);
        }
        false => {
            compare("total", &tokens["total"], Value::Null);
            compare("lower bound", bound, json!(books.at_least));
            compare("cost", &row["cost"]["totalUsd"], Value::Null);
        }
    }
    compare("turns", &row["agentTurns"], json!(books.turns));
    let calls = trace["events"].as_array().unwrap().iter();
    let calls: Vec<&Value> = calls.filter(|event| event["type"] == "tool_call").collect();
    compare(
        "tools",
        &row["toolCalls"]["total"],
        json!(books.tools.len()),
    );
    compare(
        "tools in the trace",
        &json!(calls.len()),
        json!(books.tools.len()),
    );
    let by_agents = books.tools.iter().filter(|(talk, _)| !talk.is_empty());
    let of_agents = calls.iter().filter(|call| call["agentId"].is_string());
    compare(
        "tools of subagents",
        &json!(of_agents.count()),
        json!(by_agents.count()),
    );
    let model_calls = trace["modelCalls"].as_array().unwrap().iter();
    let of_agents = model_calls.filter(|call| call["agentId"].is_string());
    compare(
        "calls of subagents",
        &json!(of_agents.count()),
        json!(books.of_agents),
    );
    found
}

fn check(row: &Value, offline: &Offline) {
    let found = differences(row, &offline.trace(0), &offline.wire());
    assert!(found.is_empty(), "{}\n{row:#}", found.join("\n"));
}

/// Seconds that an agent may take to its first question on a busy machine.
fn start_up(agent: &Agent) -> u32 {
    match agent.section {
        "opencode" | "acp" => 45,
        "gemini" | "qwen" | "pi" | "cline" | "copilot" => 20,
        _ => 10,
    }
}

fn limited(seconds: u32) -> String {
    format!("{SCENARIO}timeout_ms: {}\n", seconds * 1000)
}

/// A suite whose LLM keeps books, with these turns.
fn kept(agent: &Agent, scenario: &str, turns: Value) -> Offline {
    script(
        agent.suite(scenario),
        &json!({"books": true, "turns": turns}),
    )
}

/// Two commands at once of which one fails, a tool that was not offered, a second of sleep, the last word.
fn full_script() -> Value {
    json!([
        {"tool": "shell", "command": "echo hi > out.txt", "say": "Both at once.",
         "also": [{"tool": "shell", "command": "echo two; exit 3"}]},
        {"tool": "=no_such_tool", "args": {"word": "x"}, "say": "Now one that does not exist."},
        {"tool": "shell", "command": "sleep 1; echo slept", "say": "A nap."},
        {"text": LAST_WORD},
    ])
}

/// Also the row of the table in docs/agents.md is what was measured.
fn every_number_is_the_served_one(agent: &Agent) {
    let offline = kept(agent, &limited(90), full_script());
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(row["userTurns"], 1, "{row:#}");
    let trace = offline.trace(0);
    let calls = trace["events"].as_array().unwrap().iter();
    let calls: Vec<&Value> = calls.filter(|event| event["type"] == "tool_call").collect();
    // Codex reports as an error that it does not know the model.
    let mut events = trace["events"].as_array().unwrap().iter();
    let error = events.find(|event| event["type"] == "error");
    assert!(error.is_none() || !agent.is(&CODEX), "{error:?}");
    for call in &calls {
        assert_ne!(call["input"], Value::Null, "{call:#}");
        // Agents add words about the end of a command; `chat` gives what it printed, which may be nothing.
        assert!(call["output"] != "" || agent.is(&CHAT), "{call:#}");
    }
    let nap = calls
        .iter()
        .find(|call| call["output"].to_string().contains("slept"));
    let nap = nap.unwrap_or_else(|| panic!("no nap among {calls:#?}"));
    let took = nap["durationMs"].as_f64();
    assert!(took.is_none_or(|ms| ms >= 1000.0), "{nap:#}");
    let retried = &row["toolCalls"]["retried"];
    assert!(retried.is_null() || *retried == 1, "{row:#}");
    assert_eq!(
        table_row(agent),
        measured(&row, &calls),
        "the table in docs/agents.md"
    );
}

/// Nothing stands in the table that no test measures.
pub(crate) fn the_table_has_no_other_rows() {
    let page = std::fs::read_to_string(repository().join("docs/agents.md")).unwrap();
    let (_, table) = page.split_once("\n## What is measured of each\n").unwrap();
    let (_, table) = table.split_once("\n| --- |").unwrap();
    let rows = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let names: Vec<&str> = rows.filter_map(|line| line.split('|').nth(1)).collect();
    let measured = [
        " `claude-code` ",
        " `codex` ",
        " `opencode` ",
        " `gemini` ",
        " `acp` with gemini ",
        " `acp` with opencode ",
        " `goose` ",
        " `qwen` ",
        " `pi` ",
        " `cline` ",
        " `copilot` ",
        " `chat` ",
    ];
    assert_eq!(names, measured);
}

/// The table's row of an agent, without its name.
fn table_row(agent: &Agent) -> Vec<String> {
    let page = std::fs::read_to_string(repository().join("docs/agents.md")).unwrap();
    let (_, table) = page.split_once("\n## What is measured of each\n").unwrap();
    let name = match agent.section {
        "acp" => format!("| `acp` with {} |", agent.mode),
        section => format!("| `{section}` |"),
    };
    let line = table.lines().find(|line| line.starts_with(&name));
    let line = line.unwrap_or_else(|| panic!("no line begins with {name}"));
    let cells = line.trim_matches('|').split('|').skip(1);
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// Tokens, turns, failed tools, times of tools.
fn measured(row: &Value, calls: &[&Value]) -> Vec<String> {
    let known = |value: &Value| if value.is_null() { "unknown" } else { "exact" };
    let times = match calls {
        calls if calls.iter().any(|call| call["durationIsBound"] == true) => "bounded",
        calls if calls.iter().all(|call| call["durationMs"].is_null()) => "unknown",
        _ => "exact",
    };
    // The command that exits with 3, and the tool that does not exist.
    let failed = match &row["toolCalls"]["failed"] {
        failed if failed.is_null() || *failed == 2 => known(failed),
        failed => panic!("{failed} failed calls, not 2: {row:#}"),
    };
    let cells = [
        known(&row["tokens"]["total"]),
        known(&row["agentTurns"]),
        failed,
        times,
    ];
    cells.map(str::to_owned).to_vec()
}

/// The comparison is worth something: it fails when a decoder counts one token too many.
fn a_broken_decoder_is_noticed(agent: &Agent) {
    let turns = json!([{"text": LAST_WORD}]);
    let offline = kept(agent, &limited(60), turns).and_environment("ASSIZE_BREAK_DECODER", "1");
    let row = agent.run(&offline).remove(0);
    let found = differences(&row, &offline.trace(0), &offline.wire());
    assert!(
        found.iter().any(|line| line.starts_with("output:")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|line| line.starts_with("total:")),
        "{found:?}"
    );
}

/// Both for an agent that asks again and one that gives up, the sum is unknown, and the reported part stays.
fn a_cut_answer_leaves_a_lower_bound(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt", "say": "I write the file."},
        {"tool": "shell", "command": "cat out.txt", "say": "And look at it once more.", "cut": 2},
        {"text": LAST_WORD},
    ]);
    let offline = kept(agent, &limited(90), turns);
    let row = agent.run(&offline).remove(0);
    assert!(!books(&offline.wire()).is_whole, "nothing was cut");
    check(&row, &offline);
}

fn usage_that_is_never_told_is_unknown(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt", "no_usage": true},
        {"text": LAST_WORD, "no_usage": true},
    ]);
    let offline = kept(agent, &limited(90), turns);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(row["tokens"]["total"], Value::Null, "{row:#}");
    assert_eq!(row["costSource"], "unknown", "{row:#}");
}

/// One answer is complete, the next one stands still in the middle.
fn time_is_over_while_an_answer_streams(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt", "say": "I write the file."},
        {"text": LAST_WORD, "hang": 1, "times": 100},
    ]);
    let offline = kept(agent, &limited(start_up(agent) + 15), turns);
    let row = agent.run(&offline).remove(0);
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert_eq!(row["completionReason"], "timeout", "{row:#}");
    assert_ne!(books(&offline.wire()).at_least, 0);
    check(&row, &offline);
}

fn a_tool_hangs_when_time_is_over(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt; sleep 3600", "say": "This takes a while."},
        {"text": LAST_WORD},
    ]);
    // Codex goes on without the result of a command after ten seconds.
    let limit = if agent.is(&CODEX) {
        9
    } else {
        start_up(agent) + 10
    };
    let offline = kept(agent, &limited(limit), turns);
    let row = agent.run(&offline).remove(0);
    assert_eq!(row["completionReason"], "timeout", "{row:#}");
    check(&row, &offline);
    let events = offline.trace(0)["events"].as_array().unwrap().clone();
    let hanging = events
        .iter()
        .find(|event| event["type"] == "tool_call")
        .unwrap();
    assert!(
        hanging["input"].to_string().contains("sleep 3600"),
        "{hanging:#}"
    );
    assert_eq!(hanging["success"], Value::Null, "{hanging:#}");
}

/// A service that takes a question and never answers: nothing was learnt about the agent.
fn not_a_byte_of_an_answer_is_no_verdict(agent: &Agent) {
    let turns = json!([{"text": LAST_WORD, "hang": 0, "times": 100}]);
    let offline = kept(agent, &limited(2 * start_up(agent) + 10), turns);
    let row = agent.run(&offline).remove(0);
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], "llm_no_answer", "{row:#}");
    assert_eq!(row["voidCause"], "llm_no_answer", "{row:#}");
    assert_eq!(row["tokens"]["total"], Value::Null, "{row:#}");
}

/// Half an answer is none. Claude Code asks again without a stream and gets a whole one; the others give up, some only
/// when their time is over.
fn an_error_inside_every_answer_is_no_verdict(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt", "say": "I write the file."},
        {"text": LAST_WORD, "error": 1, "times": 100},
    ]);
    let offline = kept(agent, &limited(start_up(agent) + 25), turns);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    if agent.is(&CLAUDE_CODE) {
        assert_eq!(row["outcome"], "pass", "{row:#}");
        return;
    }
    assert_eq!(row["outcome"], "void", "{row:#}");
    assert_eq!(row["errorCode"], "llm_error", "{row:#}");
}

/// Some APIs refuse a prompt that grew too long only after they have begun with 200.
fn a_prompt_that_grew_too_long_is_the_agents_fail(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt", "say": "I write the file."},
        {"text": LAST_WORD, "error": 1, "overflow": true, "times": 100},
    ]);
    let offline = kept(agent, &limited(start_up(agent) + 25), turns);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    assert_eq!(row["outcome"], "fail", "{row:#}");
    assert_eq!(row["errorCode"], "context_overflow", "{row:#}");
}

pub(crate) fn codex_overflow_inside_an_answer() {
    a_prompt_that_grew_too_long_is_the_agents_fail(&CODEX);
}

pub(crate) fn goose_overflow_inside_an_answer() {
    a_prompt_that_grew_too_long_is_the_agents_fail(&GOOSE);
}

pub(crate) fn chat_overflow_inside_an_answer() {
    a_prompt_that_grew_too_long_is_the_agents_fail(&CHAT);
}

/// Gemini CLI cuts its own stdout when it is a pipe.
fn large_output_of_a_tool_fails_nobody(agent: &Agent) {
    let turns = json!([
        {"tool": "shell", "command": "echo hi > out.txt; head -c 5000000 /dev/zero | tr '\\0' x | fold -w 99", "say": "Much."},
        {"text": LAST_WORD},
    ]);
    let offline = kept(agent, &limited(90), turns);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    // As an ACP server Gemini CLI does not shorten what a tool says, and stops by itself before it asks for too much.
    if agent.is(&GEMINI_ACP) {
        assert_eq!(row["errorCode"], "max_tokens", "{row:#}");
        return;
    }
    assert_eq!(row["outcome"], "pass", "{row:#}");
}

/// Claude Code keeps what it caches for an hour, which costs more; run, record and Claude itself agree on it.
pub(crate) fn an_hour_in_the_cache_has_its_price() {
    let agent = &CLAUDE_CODE;
    let turns = json!([{"tool": "shell", "command": "echo hi > out.txt"}, {"text": LAST_WORD}]);
    let books = json!({"books": true, "hour": true, "turns": turns});
    let offline = script(agent.suite(&limited(60)), &books);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    let served = |class: &str| -> f64 {
        let counts = offline.wire();
        let counts = counts
            .iter()
            .filter_map(|call| call["book"][class].as_f64());
        counts.sum()
    };
    // Dollars per million tokens of claude-sonnet-4-5: input, read from the cache, written for an hour, output.
    let parts = [
        ("input", 3.0),
        ("cacheRead", 0.3),
        ("cacheWrite", 6.0),
        ("output", 15.0),
    ];
    let expected: f64 = parts
        .iter()
        .map(|(class, price)| served(class) * price / 1e6)
        .sum();
    let cost = row["cost"]["totalUsd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    let metrics = row["extensions"].as_object().unwrap();
    assert!(!metrics.contains_key("cost_reported_usd"), "{row:#}");
}

/// A subagent does part of the work: its tools, texts and tokens carry its id.
fn subagent(agent: &Agent, start: Value) {
    let mut first = json!({"tool": "agent", "prompt": "DELEGATED: create out.txt with the word hi", "say": "I delegate."});
    first
        .as_object_mut()
        .unwrap()
        .extend(start.as_object().unwrap().clone());
    let books = json!({
        "books": true,
        "turns": [first, {"text": LAST_WORD}],
        "agents": {"DELEGATED": {"turns": [
            {"tool": "shell", "command": "echo hi > out.txt", "say": "I do it."},
            {"text": "The subagent is done."},
        ]}},
    });
    let offline = script(agent.suite(&limited(90)), &books);
    let row = agent.run(&offline).remove(0);
    assert_ne!(
        self::books(&offline.wire()).of_agents,
        0,
        "no subagent was started"
    );
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    let analysis = offline.assize(&["analyze", "last", "--analyzer", "subagents", "--json"]);
    assert!(analysis.contains("subagents_work"), "{analysis}");
}

pub(crate) fn claude_code_subagent() {
    subagent(
        &CLAUDE_CODE,
        json!({"args": {"subagent_type": "general-purpose", "run_in_background": false}}),
    );
}

pub(crate) fn opencode_subagent() {
    subagent(
        &crate::agents::OPENCODE,
        json!({"args": {"subagent_type": "general"}}),
    );
}

/// The main agent does not wait for its subagent, whose answer never comes to its end: what it took is unknown.
pub(crate) fn codex_subagent_is_still_running_at_the_end() {
    let agent = &CODEX;
    let books = json!({
        "books": true,
        "turns": [
            {"tool": "spawn_agent", "prompt": "DELEGATED: think about it", "say": "I delegate."},
            {"tool": "shell", "command": "sleep 2; echo hi > out.txt", "say": "Meanwhile I write the file."},
            {"text": LAST_WORD},
        ],
        "agents": {"DELEGATED": {"turns": [{"text": "The subagent never comes to its end.", "hang": 3, "times": 100}]}},
    });
    let offline = script(agent.suite(&limited(60)), &books);
    let row = agent.run(&offline).remove(0);
    let served = self::books(&offline.wire());
    assert_ne!(served.of_agents, 0, "no subagent was started");
    assert!(!served.is_whole);
    check(&row, &offline);
}

/// Codex with its own newest model, which calls tools by programs in JavaScript and lets subagents inherit the conversation.
fn newest_model_of_codex(scenario: &str, books: &Value) -> Offline {
    let offline = script(CODEX.suite(scenario), books);
    let suite = offline.read("assize.yaml");
    offline.write("assize.yaml", &suite.replace(", model: gpt-5.1-codex", ""));
    offline
}

pub(crate) fn codex_with_its_newest_model() {
    let books = json!({"books": true, "turns": full_script()});
    let offline = newest_model_of_codex(&limited(90), &books);
    let row = CODEX.run(&offline).remove(0);
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(row["toolCalls"]["failed"], 2, "{row:#}");
    let wire = offline.wire();
    let is_program = |call: &Value| call["tools"][0]["input"].is_string();
    assert!(wire.iter().any(is_program), "no program was written");
}

pub(crate) fn codex_with_its_newest_model_and_subagents() {
    let task = "DELEGATED: create two.txt";
    let start = |name: &str| json!({"tool": "collaboration/spawn_agent", "args": {"task_name": name, "message": task}});
    let mut first = start("one");
    first["also"] = json!([start("two")]);
    let books = json!({
        "books": true,
        "turns": [
            first,
            {"tool": "shell", "command": "sleep 2; echo hi > out.txt", "say": "Meanwhile I write the file."},
            {"text": LAST_WORD},
        ],
        "agents": {"DELEGATED": {"turns": [{"tool": "shell", "command": "echo hi > two.txt"}, {"text": "The subagent is done."}]}},
    });
    let offline = newest_model_of_codex(&limited(60), &books);
    let row = CODEX.run(&offline).remove(0);
    assert_ne!(
        self::books(&offline.wire()).of_agents,
        0,
        "no subagent was started"
    );
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(agents_in(&offline.trace(0)), 2);
}

/// The number of subagents that asked a model.
fn agents_in(trace: &Value) -> usize {
    let calls = trace["modelCalls"].as_array().unwrap().iter();
    let agents: BTreeSet<&str> = calls.filter_map(|call| call["agentId"].as_str()).collect();
    agents.len()
}

/// Two subagents with the same task at the same time.
fn subagents_with_the_same_task(agent: &Agent, start: &Value) {
    let mut first = json!({"tool": "agent", "prompt": "DELEGATED: create out.txt with the word hi", "args": start});
    first["also"] = json!([first.clone()]);
    let books = json!({
        "books": true,
        "turns": [first, {"text": LAST_WORD}],
        "agents": {"DELEGATED": {"turns": [{"tool": "shell", "command": "echo hi > out.txt"}, {"text": "The subagent is done."}]}},
    });
    let offline = script(agent.suite(&limited(90)), &books);
    let row = agent.run(&offline).remove(0);
    check(&row, &offline);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    assert_eq!(agents_in(&offline.trace(0)), 2);
}

pub(crate) fn claude_code_subagents_with_the_same_task() {
    let start = json!({"subagent_type": "general-purpose", "run_in_background": false});
    subagents_with_the_same_task(&CLAUDE_CODE, &start);
}

pub(crate) fn opencode_subagents_with_the_same_task() {
    let start = json!({"subagent_type": "general"});
    subagents_with_the_same_task(&crate::agents::OPENCODE, &start);
}

/// goose's summary of its tools is part of the text that it prints, so only the wire distinguishes its tools.
pub(crate) fn goose_tools_do_not_tell_whether_they_failed() {
    let offline = kept(&GOOSE, &limited(90), full_script());
    let row = GOOSE.run(&offline).remove(0);
    assert_eq!(row["toolCalls"]["failed"], Value::Null, "{row:#}");
    assert_eq!(row["toolCalls"]["errorRate"], Value::Null, "{row:#}");
}
