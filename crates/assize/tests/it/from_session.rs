//! `assize init --from-session`: a draft of a task from what a person did with an agent.

#![cfg(feature = "sessions")]

use crate::sandbox::{Sandbox, words};
use serde_json::{Value, json};
use std::process::{Command, Output};

const KEY: &str = "sk-ant-api03-aB3dE5gH7jK9mN1pQ3sT5vW7aB3dE5gH7jK9mN1pQ3sT5vW7aB3dE5gH7jK9mN1p";

struct Project {
    sandbox: Sandbox,
}

impl Project {
    /// Two commits: the session was held between them.
    fn new() -> Self {
        let project = Self {
            sandbox: Sandbox::new(&[]),
        };
        std::fs::create_dir(project.sandbox.path("project")).unwrap();
        project.git(&["init", "-q", "-b", "main"], "2026-01-01T00:00:00Z");
        for (name, date) in [
            ("before", "2026-01-01T00:00:00Z"),
            ("after", "2026-03-01T00:00:00Z"),
        ] {
            project.sandbox.write(&format!("project/{name}.txt"), name);
            project
                .sandbox
                .write("project/Makefile", "test:\n\ttest -f src/done.txt\n");
            project.git(&["add", "-A"], date);
            project.git(&["commit", "-qm", name], date);
        }
        project
    }

    fn git(&self, arguments: &[&str], date: &str) -> String {
        let output = Command::new("git")
            .current_dir(self.sandbox.path("project"))
            .envs([("GIT_COMMITTER_DATE", date), ("GIT_AUTHOR_DATE", date)])
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn place(&self) -> String {
        let path = self.sandbox.path("project").canonicalize().unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn assize(&self, arguments: &[&str]) -> Output {
        let mut command = self.sandbox.assize(arguments);
        for key in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "OPENAI_API_KEY",
        ] {
            command.env_remove(key);
        }
        command.output().unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        words(&output)
    }

    /// The log of Claude Code: a prompt, an edit, the tests, a second prompt.
    fn claude_log(&self) {
        let place = self.place();
        let line = |uuid: &str, second: u32, kind: &str, message: Value| {
            json!({ "type": kind, "uuid": uuid, "parentUuid": null, "sessionId": "s1", "isSidechain": false, "cwd": place,
                "gitBranch": "main", "version": "2.1.0", "requestId": uuid,
                "timestamp": format!("2026-02-01T09:00:{second:02}.000Z"), "message": message })
            .to_string()
        };
        let used = |id: &str, name: &str, input: Value| {
            json!({ "id": format!("msg_{id}"), "model": "claude-x", "role": "assistant", "stop_reason": "tool_use",
                "content": [{ "type": "tool_use", "id": id, "name": name, "input": input }],
                "usage": { "input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5, "output_tokens": 7 } })
        };
        let result = |id: &str| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "ok", "is_error": false }] });
        let prompt = |text: &str| json!({ "role": "user", "content": text });
        let lines = [
            line(
                "u1",
                0,
                "user",
                prompt(&format!("Write src/done.txt, with the key {KEY}.")),
            ),
            line(
                "a1",
                2,
                "assistant",
                used(
                    "t1",
                    "Write",
                    json!({ "file_path": format!("{place}/src/done.txt"), "content": "x" }),
                ),
            ),
            line("u2", 3, "user", result("t1")),
            line(
                "a2",
                4,
                "assistant",
                used(
                    "t2",
                    "Bash",
                    json!({ "command": format!("cd {place} && make test 2>&1 | tail -3") }),
                ),
            ),
            line("u3", 5, "user", result("t2")),
            line("u4", 9, "user", prompt("Now explain it.")),
        ];
        self.sandbox.write("log.jsonl", &(lines.join("\n") + "\n"));
    }
}

#[test]
fn a_session_becomes_a_task_at_the_commit_it_began_from() {
    let project = Project::new();
    project.claude_log();
    let told = project.done(&["init", "evals", "--from-session", "log.jsonl"]);
    assert!(
        told.contains("the last commit before the session"),
        "{told}"
    );
    let name = std::fs::read_dir(project.sandbox.path("evals/scenarios"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let task = std::fs::read_to_string(name.path()).unwrap();
    let commit = project.git(&["rev-parse", "HEAD~1"], "");
    assert!(
        task.contains(&format!(
            "git: {{ repo: \"../project\", ref: \"{commit}\" }}"
        )),
        "{task}"
    );
    assert!(
        task.contains("prompt: |\n  Write src/done.txt, with the key [redacted"),
        "{task}"
    );
    assert!(!task.contains(KEY), "{task}");
    assert!(
        task.contains("# turns:\n#   - \"Now explain it.\"\n"),
        "{task}"
    );
    assert!(
        task.contains("- command: { run: \"make test\", timeout_ms: 600000 }"),
        "{task}"
    );
    assert!(
        task.contains("- changed: { only: [\"src/done.txt\"] }"),
        "{task}"
    );
    let suite = project.sandbox.read("evals/assize.yaml");
    assert!(suite.contains("uses: claude-code"), "{suite}");
    let checked = project.done(&["check", "evals"]);
    assert!(checked.contains("1 scenario in 2 modes"), "{checked}");
    // An agent that does it passes, one that does nothing fails.
    for (script, passed) in [("mkdir src; touch src/done.txt", 2), ("true", 0)] {
        let line = suite
            .lines()
            .find(|line| line.starts_with("provider: "))
            .unwrap();
        let provider =
            format!("provider: {{ uses: command, command: [sh, -c, \"{script}\"], free: true }}");
        project
            .sandbox
            .write("evals/assize.yaml", &suite.replace(line, &provider));
        let table = project.done(&["run", "evals", "-n", "1", "-q", "--skip-warmup", "--json"]);
        assert_eq!(
            table.matches("\"outcome\":\"pass\"").count(),
            passed,
            "{table}"
        );
    }
}

#[test]
fn the_commit_that_a_log_names_is_taken() {
    let project = Project::new();
    let commit = project.git(&["rev-parse", "HEAD"], "");
    let lines = [
        json!({ "timestamp": "2026-02-01T09:00:00.000Z", "type": "session_meta", "payload": { "id": "t1", "timestamp": "2026-02-01T09:00:00.000Z",
            "cwd": project.place(), "cli_version": "0.166.0", "git": { "commit_hash": commit, "branch": "main" } } }),
        json!({ "timestamp": "2026-02-01T09:00:01.000Z", "type": "response_item", "payload": { "type": "message", "role": "user",
            "content": [{ "type": "input_text", "text": "Add a file." }] } }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    project.sandbox.write("rollout.jsonl", &text);
    let told = project.done(&["init", "evals", "--from-session", "rollout.jsonl"]);
    assert!(told.contains("as the log says"), "{told}");
    let task = project.sandbox.read("evals/scenarios/add-a-file.yaml");
    assert!(task.contains(&format!("ref: \"{commit}\"")), "{task}");
    // The project's own tests, where the session ran none.
    assert!(task.contains("run: \"make test\""), "{task}");
    assert!(
        project
            .sandbox
            .read("evals/assize.yaml")
            .contains("uses: codex")
    );
    project.done(&["check", "evals"]);
}

#[test]
fn a_session_without_a_repository_is_a_draft_with_an_empty_workspace() {
    let sandbox = Sandbox::new(&[(
        "one.atif.json",
        r#"{"schema_version": "ATIF-v1.2", "session_id": "x", "agent": {"name": "other", "version": "1"}, "steps": [
            {"step_id": 1, "source": "user", "message": "Say hello in {workspace}."}, {"step_id": 2, "source": "agent", "message": "Hello."}]}"#,
    )]);
    let told = sandbox
        .assize(&["init", "evals", "--from-session", "one.atif.json"])
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", words(&told));
    assert!(
        words(&told).contains("git does not show"),
        "{}",
        words(&told)
    );
    let task = sandbox.read("evals/scenarios/say-hello-in-workspace.yaml");
    assert!(task.contains("workspace: {}"), "{task}");
    let checked = sandbox.assize(&["check", "evals"]).output().unwrap();
    assert!(checked.status.success(), "{}", words(&checked));
}

#[test]
fn what_is_no_session_is_refused_with_a_hint() {
    let sandbox = Sandbox::new(&[
        ("notes.txt", "hello\n"),
        (
            "empty.atif.json",
            r#"{"schema_version": "ATIF-v1.2", "steps": []}"#,
        ),
    ]);
    for (file, code, message) in [
        ("missing.jsonl", 2, "is no file"),
        ("notes.txt", 1, "is no session"),
        ("empty.atif.json", 1, "no message of a user"),
    ] {
        let output = sandbox
            .assize(&["init", "evals", "--from-session", file])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", words(&output));
        assert!(words(&output).contains(message), "{}", words(&output));
        assert!(!sandbox.path("evals").exists());
    }
}
