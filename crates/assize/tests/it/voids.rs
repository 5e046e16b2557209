//! Trials in which no model answered, or a model broke down: void with a reason, and never a verdict.

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The service's reaction to a request.
#[derive(Clone, Copy)]
enum Reply {
    /// A whole answer in a stream.
    Whole,
    /// A whole answer in a stream whose connection breaks behind it.
    WholeAndBroken,
    /// Half an answer, then an error event; all in a 200.
    ErrorInStream,
    /// Half an answer, and the stream ends.
    Cut,
    /// Half an answer, then an event that is no JSON, and the stream ends.
    Garbled,
    /// A 200 that is no answer of a model.
    Page(&'static str),
    /// Half an answer, and nothing more until the client is gone.
    Stalled,
    /// A refusal with this status and message.
    Refusal(u16, &'static str),
    /// Not a byte until the client is gone.
    Nothing,
}

/// Answers the requests in this order, and all later ones as the last. Gives its address.
fn service(replies: Vec<Reply>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let place = asked.fetch_add(1, Ordering::SeqCst);
            let reply = *replies.get(place).or(replies.last()).unwrap();
            std::thread::spawn(move || answer(stream, reply));
        }
    });
    url
}

fn answer(mut stream: TcpStream, reply: Reply) {
    read_request(&mut stream);
    let half = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-sonnet-4-5\",",
        "\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"half \"}}\n\n",
    );
    let rest = concat!(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"done\"}}\n\n",
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let stream_of = |body: String| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}"
        )
    };
    let response = match reply {
        Reply::Whole => stream_of(format!("{half}{rest}")),
        Reply::WholeAndBroken => {
            let whole = format!("{half}{rest}");
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{whole}\r\n",
                whole.len()
            )
        }
        Reply::ErrorInStream => stream_of(format!("{half}{error}")),
        Reply::Cut => stream_of(half.to_owned()),
        Reply::Garbled => stream_of(format!("{half}data: upstream went away\n\n")),
        Reply::Page(body) => format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ),
        Reply::Stalled => {
            let _ = stream.write_all(stream_of(half.to_owned()).as_bytes());
            let _ = stream.read(&mut [0; 1]);
            return;
        }
        Reply::Refusal(status, message) => {
            let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string();
            format!(
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Reply::Nothing => {
            let _ = stream.read(&mut [0; 1]);
            return;
        }
    };
    let _ = stream.write_all(response.as_bytes());
}

fn read_request(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head
        .split("content-length:")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let length: usize = length
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body);
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
}

/// An agent that asks so often as its prompt says, prints what it got and ends well, whatever happened.
const AGENT: &str = r#"
import http.client, json, os, sys, urllib.request, urllib.error
def ask():
    body = json.dumps({"model": "claude-sonnet-4-5", "stream": True, "messages": [{"role": "user", "content": "Do it"}]}).encode()
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {"x-api-key": "a-key-of-no-use"})
    try:
        return urllib.request.urlopen(request).read().decode()
    except http.client.IncompleteRead as error:
        return error.partial.decode()
    except urllib.error.HTTPError as error:
        return "the service says no: " + error.read().decode()
    except Exception as error:
        return "the service broke off: " + str(error)
said = [ask() for _ in range(int(sys.argv[1]))]
print("I did all I could.", "done" if said and "done" in said[-1] else "")
"#;

const RECIPE: &str = r#"
name: mine
apis: [anthropic]
command: [python3, AGENT, "{prompt}"]
auto_approve: {}
environment: { ANTHROPIC_BASE_URL: "{anthropic_url}" }
"#;

fn sandbox(url: &str, prompt: &str, more: &str) -> Sandbox {
    let suite = format!(
        "provider: {{ uses: ./mine.yaml }}\npermissions: {{ auto_approve: true }}\nmodes: {{ one: {{}} }}\n\
         scenarios: {{ paths: [s.yaml] }}\nexecution: {{ repetitions: 1, warmup: false }}\n\
         capture: {{ upstream: {{ anthropic: '{url}' }} }}\n"
    );
    let scenario = format!("id: s\nprompt: '{prompt}'\n{more}\n");
    let sandbox = Sandbox::new(&[
        ("assize.yaml", &suite),
        ("s.yaml", &scenario),
        ("agent.py", AGENT),
    ]);
    let agent = sandbox.path("agent.py");
    sandbox.write(
        "mine.yaml",
        &RECIPE.replace("AGENT", agent.to_str().unwrap()),
    );
    sandbox
}

/// The only row of a run, and how the command ended.
fn row(sandbox: &Sandbox) -> (Value, Option<i32>) {
    let output = sandbox.assize(&["run", "-q"]).output().unwrap();
    let rows = sandbox.rows();
    assert_eq!(rows.len(), 1, "{}", words(&output));
    (rows[0].clone(), output.status.code())
}

#[track_caller]
fn check(replies: Vec<Reply>, calls: &str, outcome: &str, code: Option<&str>, cause: Option<&str>) {
    let sandbox = sandbox(
        &service(replies),
        calls,
        "checks: [ { output: { contains: done } } ]",
    );
    let (row, exit) = row(&sandbox);
    let found = (&row["outcome"], &row["errorCode"], &row["voidCause"]);
    assert_eq!(
        found,
        (&json!(outcome), &json!(code), &json!(cause)),
        "{row:#}"
    );
    let expected = if outcome == "void" { Some(5) } else { Some(0) };
    assert_eq!(exit, expected, "{row:#}");
}

#[test]
fn a_session_in_which_every_call_was_refused_is_void_before_the_first_action() {
    let replies = vec![Reply::Refusal(401, "invalid x-api-key")];
    let sandbox = sandbox(&service(replies), "2", "");
    let (row, exit) = row(&sandbox);
    assert_eq!(row["errorCode"], "llm_401", "{row:#}");
    assert_eq!(row["voidCause"], "no_model_answer");
    assert_eq!(
        row["error"],
        "I did all I could. (the model's API answered 401: invalid x-api-key)"
    );
    assert_eq!(exit, Some(5));
}

#[test]
fn an_agent_that_asked_no_model_taught_nothing_whatever_it_printed() {
    check(
        vec![Reply::Whole],
        "0",
        "void",
        Some("no_model_answer"),
        Some("no_model_answer"),
    );
}

#[test]
fn a_model_that_answers_is_judged() {
    check(vec![Reply::Whole], "1", "pass", None, None);
}

#[test]
fn the_answer_that_is_shown_is_the_one_that_was_judged() {
    let sandbox = sandbox(
        &service(vec![Reply::Whole]),
        "1",
        "checks: [ { output: { contains: I did all I could } } ]",
    );
    let (row, _) = row(&sandbox);
    assert_eq!(row["outcome"], "pass", "{row:#}");
    // The model said `half done`.
    let shown = sandbox.done(&["show", "last/0"]);
    let (_, answer) = shown.split_once("\nanswer\n").unwrap();
    assert!(answer.starts_with("  I did all I could. done"), "{shown}");
}

#[test]
fn an_error_or_a_cut_inside_a_stream_is_the_models_failure() {
    for broken in [Reply::ErrorInStream, Reply::Cut, Reply::Garbled] {
        check(
            vec![broken],
            "1",
            "void",
            Some("llm_error"),
            Some("llm_error"),
        );
        check(
            vec![Reply::Whole, broken],
            "2",
            "void",
            Some("llm_error"),
            Some("llm_error"),
        );
    }
}

#[test]
fn a_connection_that_breaks_behind_a_whole_answer_matters_only_to_an_agent_that_minds() {
    let check = "checks: [ { output: { contains: done } } ]";
    let sandbox = sandbox(&service(vec![Reply::WholeAndBroken]), "1", check);
    let (taken, _) = row(&sandbox);
    assert_eq!(taken["outcome"], "pass", "{taken:#}");
    assert_eq!(taken["agentTurns"], 1, "{taken:#}");
    assert_eq!(taken["tokens"]["output"], 5, "{taken:#}");
    sandbox.write(
        "agent.py",
        &format!("{AGENT}\nsys.exit('the service broke off')"),
    );
    let output = sandbox.assize(&["run", "-q"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
}

#[test]
fn a_wrong_address_that_answers_200_is_no_model() {
    for page in [
        "",
        "{}",
        r#"{"message": "Welcome to the gateway"}"#,
        "<!doctype html><title>Sign in</title>",
        "{ half a document",
    ] {
        let sandbox = sandbox(&service(vec![Reply::Page(page)]), "2", "");
        let (row, exit) = row(&sandbox);
        let found = (&row["outcome"], &row["voidCause"], exit);
        let expected = (&json!("void"), &json!("no_model_answer"), Some(5));
        assert_eq!(found, expected, "{page:?}: {row:#}");
    }
}

#[test]
fn an_agent_that_recovers_from_a_broken_stream_is_judged() {
    check(
        vec![Reply::ErrorInStream, Reply::Whole],
        "2",
        "pass",
        None,
        None,
    );
    check(
        vec![Reply::Cut, Reply::Refusal(529, "Overloaded"), Reply::Whole],
        "3",
        "pass",
        None,
        None,
    );
}

#[test]
fn a_prompt_that_grew_too_long_is_the_agents_own_failure() {
    let overflow = Reply::Refusal(400, "prompt is too long: 208310 tokens > 200000 maximum");
    check(
        vec![Reply::Whole, overflow],
        "2",
        "fail",
        Some("context_overflow"),
        None,
    );
    check(vec![overflow], "1", "fail", Some("context_overflow"), None);
    // One that compacts and goes on has recovered.
    check(vec![overflow, Reply::Whole], "2", "pass", None, None);
}

#[test]
fn a_call_without_a_byte_until_the_time_limit_is_no_answer() {
    let sandbox = sandbox(&service(vec![Reply::Nothing]), "1", "timeout_ms: 6000");
    let (row, exit) = row(&sandbox);
    assert_eq!(row["errorCode"], "llm_no_answer", "{row:#}");
    assert_eq!(
        (&row["voidCause"], exit),
        (&json!("llm_no_answer"), Some(5))
    );
}

/// The main agent waits for its subagent, which waits for a silent service.
#[test]
fn a_call_of_a_subagent_without_a_byte_until_the_time_limit_is_no_answer() {
    let replies = vec![Reply::Whole, Reply::Nothing];
    let sandbox = sandbox(&service(replies), "1", "timeout_ms: 6000");
    let tools = r#""tools": [{"name": "Agent", "input_schema": {}}], "model""#;
    let agent = AGENT.replacen("\"model\"", tools, 1);
    let (head, tail) = agent.split_once("said =").unwrap();
    let agent = head
        .replace("def ask():", "def ask(more):")
        .replace("\"a-key-of-no-use\"}", "\"a-key-of-no-use\", **more}");
    assert_ne!(agent, head);
    let asks = "ask({})\nask({\"x-claude-code-agent-id\": \"a1\"})\nsaid =";
    sandbox.write(
        "agent.py",
        &format!("{agent}{asks}{}", tail.replace("ask()", "ask({})")),
    );
    let (row, exit) = row(&sandbox);
    let found = (&row["errorCode"], &row["agentTurns"], exit);
    assert_eq!(
        found,
        (&json!("llm_no_answer"), &json!(1), Some(5)),
        "{row:#}"
    );
}

#[test]
fn a_call_that_began_late_is_the_agents_timeout() {
    let sandbox = sandbox(&service(vec![Reply::Nothing]), "1", "timeout_ms: 7000");
    sandbox.write("agent.py", &format!("import time; time.sleep(4)\n{AGENT}"));
    let (row, _) = row(&sandbox);
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("fail"), &json!("timeout")),
        "{row:#}"
    );
}

/// Asks a second time when 3.5 of 6 seconds have brought nothing.
fn impatient(replies: Vec<Reply>) -> Value {
    let sandbox = sandbox(&service(replies), "2", "timeout_ms: 6000");
    let patient = "urllib.request.urlopen(request).read()";
    let agent = AGENT.replace(
        patient,
        "urllib.request.urlopen(request, timeout=3.5).read()",
    );
    assert_ne!(agent, AGENT);
    sandbox.write("agent.py", &agent);
    row(&sandbox).0
}

#[test]
fn a_call_that_the_agent_gave_up_before_the_time_limit_is_not_the_reason() {
    let row = impatient(vec![Reply::Nothing, Reply::Stalled]);
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("fail"), &json!("timeout")),
        "{row:#}"
    );
}

#[test]
fn asking_a_silent_service_again_does_not_make_its_silence_the_agents_fault() {
    let row = impatient(vec![Reply::Nothing, Reply::Nothing]);
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("void"), &json!("llm_no_answer")),
        "{row:#}"
    );
}

#[test]
fn the_agents_own_words_are_the_reason_of_a_session_without_a_model() {
    let sandbox = sandbox("http://127.0.0.1:9", "0", "");
    sandbox.write(
        "agent.py",
        "import sys\nsys.stderr.write('Not logged in - Please run /login')\nsys.exit(1)",
    );
    let (row, exit) = row(&sandbox);
    assert_eq!((&row["outcome"], exit), (&json!("void"), Some(5)));
    assert!(
        row["error"]
            .as_str()
            .unwrap()
            .contains("Not logged in - Please run /login"),
        "{row:#}"
    );
    assert_eq!(row["voidCause"], "no_model_answer");
}

#[test]
fn an_agent_that_reports_answer_and_usage_unseen_is_judged_by_its_own_numbers() {
    let sandbox = sandbox(
        "http://127.0.0.1:9",
        "0",
        "checks: [ { output: { contains: done } } ]",
    );
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "done", "total_cost_usd": 0.25,
        "usage": {"input_tokens": 100, "output_tokens": 20}
    });
    sandbox.write("agent.py", &format!("print('''{result}''')"));
    let recipe = sandbox.read("mine.yaml");
    sandbox.write("mine.yaml", &format!("{recipe}output: claude-code\n"));
    let (row, exit) = row(&sandbox);
    assert_eq!(
        (&row["outcome"], exit),
        (&json!("pass"), Some(0)),
        "{row:#}"
    );
    assert_eq!(row["notCaptured"], true);
    assert_eq!(row["costSource"], "reported");
    assert_eq!(row["tokens"]["total"], 120);
}

#[test]
fn a_command_that_calls_no_model_keeps_its_verdict() {
    let sandbox = Sandbox::of(
        "echo done; exit 3",
        "execution: { repetitions: 1, warmup: false }",
        "",
    );
    let (row, exit) = row(&sandbox);
    assert_eq!(
        (&row["outcome"], &row["errorCode"]),
        (&json!("fail"), &json!("exit_3"))
    );
    assert_eq!(exit, Some(0));
}

/// Two modes, one of which has a provider that cannot be reached.
fn half_broken(execution: &str) -> Sandbox {
    let suite = format!(
        "permissions: {{ auto_approve: true }}\nmodes:\n  works: {{ provider: {{ uses: command, command: [echo, done] }} }}\n\
         \x20 broken: {{ provider: {{ uses: ./mine.yaml }} }}\n\
         scenarios: {{ paths: [s.yaml] }}\nexecution: {{ warmup: false, concurrency: 1, {execution} }}\n\
         gates: ['success >= 0.5']\n"
    );
    let sandbox = sandbox(
        "http://127.0.0.1:9",
        "0",
        "checks: [ { output: { contains: done } } ]",
    );
    sandbox.write("assize.yaml", &suite);
    sandbox.write("agent.py", "import sys\nsys.exit('Not logged in')");
    sandbox
}

#[test]
fn a_mode_that_is_void_for_the_same_reason_from_the_start_is_stopped_and_can_be_resumed() {
    let sandbox = half_broken("repetitions: 6");
    let output = sandbox.assize(&["run"]).output().unwrap();
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let count = |rows: &[Value], mode: &str| rows.iter().filter(|row| row["mode"] == mode).count();
    let rows = sandbox.rows();
    assert_eq!(
        (count(&rows, "works"), count(&rows, "broken")),
        (6, 3),
        "{said}"
    );
    assert!(
        said.contains(
            "mode `broken` is stopped: its first 3 trials are all void for the same reason"
        ),
        "{said}"
    );
    assert!(
        said.contains("Not logged in") && said.contains("--resume"),
        "{said}"
    );
    assert!(
        !said.contains("points higher"),
        "no verdict on a mode that is void:\n{said}"
    );
    sandbox.write("agent.py", "print('done')");
    let recipe = sandbox.read("mine.yaml").replace("apis: [anthropic]\n", "");
    sandbox.write("mine.yaml", &recipe);
    let resumed = sandbox
        .assize(&["run", "--resume", "last", "-q"])
        .output()
        .unwrap();
    let rows = sandbox.rows();
    assert_eq!(count(&rows, "broken"), 6, "{}", words(&resumed));
}

#[test]
fn a_mode_that_is_void_to_its_last_trial_is_stopped_as_well() {
    let sandbox = half_broken("repetitions: 3");
    let output = sandbox.assize(&["run"]).output().unwrap();
    let said = words(&output);
    assert_eq!(sandbox.rows().len(), 6, "{said}");
    assert!(said.contains("mode `broken` is stopped"), "{said}");
    assert_eq!(output.status.code(), Some(5), "{said}");
}

#[test]
fn a_run_in_which_nothing_was_judged_ends_incomplete_before_its_gates() {
    let sandbox = half_broken("repetitions: 2");
    let output = sandbox
        .assize(&["run", "--mode", "broken"])
        .output()
        .unwrap();
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("nothing was judged"), "{said}");
    assert!(
        said.contains("broken: 2 × void: ") && said.contains("Not logged in"),
        "{said}"
    );
}

#[test]
fn voids_stop_no_mode_where_the_suite_says_so() {
    let sandbox = half_broken("repetitions: 4, stop_after_voids: 0");
    let output = sandbox.assize(&["run", "-q"]).output().unwrap();
    assert_eq!(sandbox.rows().len(), 8, "{}", words(&output));
}
