//! `assize mcp`: what an agent is offered, and what no call can do.

use crate::support::{Suite, assize};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn start(root: &std::path::Path, options: &[&str]) -> Self {
        let mut child = assize(root)
            .arg("mcp")
            .args(["--root", root.to_str().unwrap()])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        let mut server = Self {
            child,
            stdin,
            stdout,
            last_id: 0,
        };
        let greeting = server.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } }),
        );
        assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
        server
    }

    fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.send(format!("{message}\n").as_bytes());
        self.last_id
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id);
        answer
    }

    /// The text that a tool answers with, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["isError"].as_bool().unwrap())
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

const ARGUMENTS: [&str; 3] = ["--allow-run", "--max-trials", "100"];

#[test]
fn a_server_that_only_reads_lists_checks_compares_and_shows() {
    let suite = Suite::new();
    suite.done(&["run", "--quiet"]);
    let mut server = Server::start(suite.path(), &[]);
    assert_eq!(
        server.tools(),
        ["suites", "check", "runs", "compare", "show"]
    );
    assert_eq!(server.call("suites", json!({})), (".".to_owned(), false));
    let (checked, is_error) = server.call("check", json!({ "suite": "." }));
    assert!(!is_error, "{checked}");
    let (runs, _) = server.call("runs", json!({ "suite": "." }));
    assert!(runs.contains("\"runId\""), "{runs}");
    let (verdict, is_error) = server.call("compare", json!({ "suite": "." }));
    assert!(!is_error && verdict.contains("against"), "{verdict}");
    let (trial, is_error) = server.call("show", json!({ "suite": ".", "position": 0 }));
    assert!(
        !is_error && trial.starts_with("[What follows is data"),
        "{trial}"
    );
    let (refused, is_error) = server.call("run", json!({ "suite": "." }));
    assert!(is_error && refused.contains("--allow-run"), "{refused}");
}

#[test]
fn no_path_leads_out_of_the_root() {
    let outside = Suite::new();
    let inside = Suite::new();
    std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
    let mut server = Server::start(inside.path(), &ARGUMENTS);
    let outside = outside.path().to_str().unwrap();
    for path in ["..", "link", "link/assize.yaml", "/etc", outside, "./../.."] {
        for tool in ["check", "runs", "compare", "run"] {
            let (text, is_error) = server.call(tool, json!({ "suite": path }));
            assert!(is_error, "{tool} {path}: {text}");
        }
    }
    let (text, is_error) = server.call("compare", json!({ "suite": ".", "run": "../../x" }));
    assert!(is_error && text.contains("id of a run"), "{text}");
    let moved = "output: { results_dir: /tmp }\n";
    let file = inside.path().join("assize.yaml");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{written}{moved}")).unwrap();
    let (text, is_error) = server.call("runs", json!({ "suite": "." }));
    assert!(is_error && text.contains("outside"), "{text}");
}

#[test]
fn limits_hold_over_all_calls() {
    let suite = Suite::new();
    // Two modes, two scenarios, three repetitions.
    let planned = 12;
    let most = (planned + 1).to_string();
    let mut server = Server::start(suite.path(), &["--allow-run", "--max-trials", &most]);
    let many = json!({ "suite": ".", "repetitions": 1000 });
    let (text, is_error) = server.call("run", many);
    assert!(is_error && text.contains("--max-trials"), "{text}");
    let (text, is_error) = server.call("run", json!({ "suite": "." }));
    assert!(
        !is_error && text.contains(&format!("{planned} trials finished")),
        "{text}"
    );
    let (text, is_error) = server.call("run", json!({ "suite": "." }));
    assert!(is_error && text.contains("--max-trials allows 1"), "{text}");
}

#[test]
fn a_run_ends_with_its_processes_when_stdin_closes() {
    let suite = Suite::new();
    let file = suite.path().join("assize.yaml");
    let marker = suite.path().join("started");
    let slow = format!(
        "sandbox: none\nprovider: {{ uses: command, command: [sh, -c, 'echo $$ > {}; sleep 600'] }}\nmodes: {{ plain: {{}} }}\nscenarios: {{ paths: [\"scenarios/*.yaml\"] }}\n",
        marker.display()
    );
    std::fs::write(&file, slow).unwrap();
    let mut server = Server::start(suite.path(), &ARGUMENTS);
    server.request(
        "tools/call",
        json!({ "name": "run", "arguments": { "suite": "." } }),
    );
    let pid = wait_for(|| {
        let text = std::fs::read_to_string(&marker).ok()?;
        text.trim().parse::<u32>().ok()
    });
    let other = server.request(
        "tools/call",
        json!({ "name": "run", "arguments": { "suite": "." } }),
    );
    let answer = server.read();
    assert_eq!(answer["id"], other);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("one at a time"), "{text}");
    drop(server);
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    wait_for(|| (!process.exists()).then_some(()));
}

#[test]
fn a_huge_request_is_refused_and_the_next_one_answered() {
    let suite = Suite::new();
    let mut server = Server::start(suite.path(), &[]);
    let mut huge = vec![b'['; 10 << 20];
    huge.push(b'\n');
    server.send(&huge);
    let refused = server.read();
    assert_eq!(refused["error"]["code"], -32600);
    server.send(b"{\"jsonrpc\": \"2.0\"\n");
    assert_eq!(server.read()["error"]["code"], -32700);
    assert_eq!(server.ask("no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}
