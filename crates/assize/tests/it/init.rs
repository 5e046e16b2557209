//! `assize init`, `check` and `completions`.

use crate::support::{Outcome, Suite, assize};
use std::path::Path;
use tempfile::TempDir;

#[test]
fn an_initialized_suite_checks_and_runs_at_once() {
    let suite = Suite::new();
    let written = suite.done(&["init", "fresh"]);
    assert!(written.contains("fresh/assize.yaml"), "{written}");
    let checked = suite.done(&["check", "fresh"]);
    assert!(
        checked.contains("8 scenarios in 2 modes × 5 repetitions = 80 trials"),
        "{checked}"
    );
    let table = suite.done(&["run", "fresh", "-n", "1", "-q"]);
    assert!(table.contains("with-docs"), "{table}");
}

#[test]
fn editors_find_the_schemas_of_an_initialized_suite() {
    let suite = Suite::new();
    suite.done(&["init", "fresh"]);
    for (file, title) in [
        ("fresh/assize.yaml", "SuiteFile"),
        ("fresh/scenarios/fix-bug.yaml", "ScenarioFile"),
    ] {
        let path = suite.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, named) = text.split_once("# yaml-language-server: $schema=").unwrap();
        let schema = path.with_file_name(named.lines().next().unwrap());
        let schema: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&schema).unwrap()).unwrap();
        assert_eq!(schema["title"], title);
    }
}

#[test]
fn init_overwrites_nothing() {
    let suite = Suite::new();
    let before = std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap();
    let outcome = suite.assize(&["init"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("is already there"), "{outcome:?}");
    assert_eq!(
        std::fs::read_to_string(suite.path().join("assize.yaml")).unwrap(),
        before
    );
}

#[test]
fn completions_are_for_the_shells_people_use() {
    let suite = Suite::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(suite.done(&["completions", shell]).contains("assize"));
    }
}

/// A project with a test that fails until `done` is written.
fn project() -> TempDir {
    let place = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("Makefile", "test:\n\ttest -f done\n");
    git(place.path(), &["init", "-q"]);
    git(place.path(), &["add", "."]);
    git(place.path(), &["commit", "-qm", "first"]);
    place
}

fn git(place: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git")
        .current_dir(place)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .status();
    assert!(status.unwrap().success());
}

fn typed(place: &Path, arguments: &[&str]) -> Outcome {
    let mut command = assize(place);
    for key in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_API_KEY",
    ] {
        command.env_remove(key);
    }
    command.args(arguments).output().unwrap().into()
}

#[test]
fn a_suite_for_a_real_repository_runs_its_own_tests() {
    let project = project();
    let place = project.path();
    let outcome = typed(place, &["init", "--agent", "claude-code"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("tests are run by `make test`, as Makefile says"),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stderr
            .contains("next: `assize check && assize run`"),
        "{outcome:#?}"
    );
    // Without a key, `check` reports that, and nothing else is wrong.
    let outcome = typed(place, &["check"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("`claude-code` has no key"),
        "{outcome:#?}"
    );
    assert!(
        outcome.stdout.contains("1 scenario in 2 modes"),
        "{outcome:#?}"
    );
    // Runs are not committed, schemas are.
    git(place, &["add", "."]);
    let staged = std::process::Command::new("git")
        .current_dir(place)
        .args(["status", "--porcelain"])
        .output();
    let staged = String::from_utf8(staged.unwrap().stdout).unwrap();
    assert!(
        staged.contains(".assize/schemas/suite.schema.json"),
        "{staged}"
    );
    // The suite itself, with a program in the agent's place that does the task in one mode.
    let suite = place.join("assize.yaml");
    let text = std::fs::read_to_string(&suite).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("provider: "))
        .unwrap();
    let stand_in = "provider: { uses: command, command: [sh, -c, 'grep -q make && touch done || true'], free: true }";
    std::fs::write(&suite, text.replace(line, stand_in)).unwrap();
    let outcome = typed(place, &["run", "-n", "1", "-q"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    // Its prompt names the tests in both modes.
    assert_eq!(
        outcome.stdout.matches("1 of 1 (100 %)").count(),
        2,
        "{outcome:#?}"
    );
    std::fs::write(
        &suite,
        text.replace(
            line,
            "provider: { uses: command, command: ['true'], free: true }",
        ),
    )
    .unwrap();
    let outcome = typed(place, &["run", "-n", "1", "-q"]);
    assert_eq!(
        outcome.stdout.matches("0 of 1 (0 %)").count(),
        2,
        "{outcome:#?}"
    );
    git(place, &["add", "."]);
    let listed = std::process::Command::new("git")
        .current_dir(place)
        .args(["ls-files", ".assize/runs"])
        .output();
    assert!(listed.unwrap().stdout.is_empty());
}

#[test]
fn two_agents_are_two_modes_in_a_directory_of_their_own() {
    let project = project();
    let outcome = typed(
        project.path(),
        &[
            "init",
            "bench/agents",
            "--agent",
            "claude-code",
            "--agent",
            "codex",
        ],
    );
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let scenario = std::fs::read_to_string(
        project
            .path()
            .join("bench/agents/scenarios/first-task.yaml"),
    )
    .unwrap();
    assert!(scenario.contains("repo: \"../..\""), "{scenario}");
    let outcome = typed(project.path(), &["check", "bench/agents"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    for words in ["mode `claude-code`", "mode `codex`"] {
        assert!(outcome.stderr.contains(words), "{outcome:#?}");
    }
}

#[test]
fn every_agent_gets_a_suite_that_checks() {
    let project = project();
    for agent in [
        "aider",
        "claude-code",
        "cline",
        "codex",
        "copilot",
        "gemini",
        "goose",
        "mini-swe-agent",
        "opencode",
        "pi",
        "qwen",
    ] {
        let outcome = typed(project.path(), &["init", agent, "--agent", agent]);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let outcome = typed(project.path(), &["check", agent]);
        assert_eq!(outcome.code, Some(0), "{agent}: {outcome:#?}");
    }
}

#[test]
fn no_repository_and_no_such_agent_are_said() {
    let outside = TempDir::new().unwrap();
    let outcome = typed(outside.path(), &["init", "--agent", "codex"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("is in no git repository"),
        "{outcome:#?}"
    );
    let outcome = typed(project().path(), &["init", "--agent", "claud-code"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("did you mean `claude-code`?"),
        "{outcome:#?}"
    );
}

/// The file, the end of the run and the README name the same next step.
#[test]
fn everything_agrees_on_the_way_to_a_real_agent() {
    const STEP: &str = "assize init --agent claude-code";
    const WHERE: &str = "for a real one go to your git repository and type";
    let suite = Suite::new();
    suite.done(&["init", "demo"]);
    let outcome = suite.assize(&["run", "demo", "-n", "1"]);
    let comment = std::fs::read_to_string(suite.path().join("demo/assize.yaml")).unwrap();
    for text in [
        outcome.stderr.as_str(),
        comment.as_str(),
        include_str!("../../../../README.md"),
    ] {
        assert!(text.contains(STEP), "{text}");
        assert!(text.to_lowercase().contains(WHERE), "{text}");
    }
    let agents: Vec<&str> = comment
        .lines()
        .filter(|line| line.contains("uses:"))
        .collect();
    assert!(
        agents.iter().all(|line| line.contains("simulated")),
        "no key is needed: {agents:?}"
    );
}
