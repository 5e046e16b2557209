//! `assize init --from-git`: tasks from a history, proved by running the tests of its commits.

use crate::sandbox::{Sandbox, words};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A repository with a script, and tests that are scripts.
struct History {
    sandbox: Sandbox,
}

const CHECK: &str = "test \"$(sh pages.sh 10 3)\" = 4\n";

impl History {
    /// Its first commit counts pages wrongly: the last one is lost.
    fn new() -> Self {
        let history = Self {
            sandbox: Sandbox::new(&[]),
        };
        history.git(&["init", "-q", "-b", "main"]);
        history.commit(
            "Count pages",
            &[
                ("pages.sh", "echo $(($1 / $2))\n"),
                ("tests/even.sh", "test \"$(sh pages.sh 9 3)\" = 3\n"),
                ("README.md", "Pages.\n"),
            ],
        );
        history
    }

    /// Writes files (an empty one is removed) and commits them.
    fn commit(&self, message: &str, files: &[(&str, &str)]) {
        for (name, content) in files {
            match content.is_empty() {
                true => std::fs::remove_file(self.place().join(name)).unwrap(),
                false => self.sandbox.write(&format!("project/{name}"), content),
            }
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    fn place(&self) -> std::path::PathBuf {
        self.sandbox.path("project")
    }

    fn git(&self, arguments: &[&str]) -> String {
        std::fs::create_dir_all(self.place()).unwrap();
        let output = Command::new("git")
            .current_dir(self.place())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn assize(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.assize(arguments);
        command.current_dir(self.place());
        for key in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ] {
            command.env_remove(key);
        }
        command
    }

    fn done(&self, arguments: &[&str]) -> String {
        let output = self.assize(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        words(&output)
    }

    fn decisions(&self, suite: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.place().join(suite).join("from-git.jsonl"));
        let text = text.unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The reason why a commit was rejected, by its subject.
fn reason<'d>(decisions: &'d [Value], subject: &str) -> &'d str {
    let decision = decisions
        .iter()
        .find(|decision| decision["subject"] == subject);
    decision.unwrap()["rejected"].as_str().unwrap()
}

fn put_in_place_of_the_agent(suite: &Path, script: &str) {
    let path = suite.join("assize.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("provider: "))
        .unwrap();
    let argv = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let provider = format!("provider: {{ uses: command, command: {argv}, free: true }}");
    std::fs::write(&path, text.replace(line, &provider)).unwrap();
}

/// Runs the suite once per mode and says how many trials passed.
fn passed(history: &History, suite: &str) -> (u64, u64) {
    history.done(&["run", suite, "-n", "1", "-q", "--skip-warmup"]);
    let runs = history.place().join(suite).join(".assize/runs");
    let newest = std::fs::read_dir(runs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max();
    let rows = std::fs::read_to_string(newest.unwrap().join("rows.jsonl")).unwrap();
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let passed = rows.iter().filter(|row| row["outcome"] == "pass").count();
    (passed as u64, rows.len() as u64)
}

#[test]
fn commits_whose_tests_fail_before_and_pass_after_become_tasks() {
    let history = History::new();
    history.commit("Explain", &[("README.md", "Counts pages.\n")]);
    history.commit(
        "Keep the last page (#12)\n\nTen lines on pages of three are four pages.\n\nSigned-off-by: a <a@b>",
        &[
            ("pages.sh", "echo $((($1 + $2 - 1) / $2))\n"),
            ("tests/last page.sh", CHECK),
        ],
    );
    history.commit(
        "Say nothing new about pages",
        &[
            ("tests/one.sh", "true\n"),
            ("pages.sh", "# Pages.\necho $((($1 + $2 - 1) / $2))\n"),
        ],
    );
    history.commit(
        "Break pages",
        &[
            ("tests/two.sh", "false\n"),
            ("pages.sh", "echo $((($1 + $2 - 1) / $2)) # up\n"),
        ],
    );
    history.commit(
        "Only code",
        &[("pages.sh", "echo $((($1 + $2 - 1) / $2))\n")],
    );
    history.commit(
        "Refuse pages of no lines",
        &[
            (
                "pages.sh",
                "[ \"$2\" -gt 0 ] || { echo none; exit; }\necho $((($1 + $2 - 1) / $2))\n",
            ),
            ("tests/none.sh", "test \"$(sh pages.sh 10 0)\" = none\n"),
            ("tests/two.sh", ""),
        ],
    );
    let told = history.done(&["init", "evals", "--from-git", "HEAD"]);
    assert!(told.contains("2 of 7 commits make a task"), "{told}");
    assert!(told.contains("Keep the last page"), "{told}");
    let decisions = history.decisions("evals");
    assert_eq!(reason(&decisions, "Explain"), "it changes no code");
    assert_eq!(reason(&decisions, "Count pages"), "it is the first commit");
    assert!(reason(&decisions, "Only code").starts_with("it changes no test file"));
    assert_eq!(
        reason(&decisions, "Say nothing new about pages"),
        "its tests pass without its code"
    );
    let reason = reason(&decisions, "Break pages");
    assert!(
        reason.starts_with("its tests do not pass with its own code: exit code 1"),
        "{reason}"
    );

    let suite = history.place().join("evals");
    let task = std::fs::read_to_string(suite.join("scenarios/keep-the-last-page.yaml")).unwrap();
    assert!(task.contains("prompt: |\n  Keep the last page\n\n  Ten lines on pages of three are four pages.\n\n  Make this"), "{task}");
    assert!(!task.contains("Signed-off-by"), "{task}");
    assert!(task.contains("run: \"sh 'tests/last page.sh'\""), "{task}");
    let hidden = suite.join("checks/keep-the-last-page/tests/last page.sh");
    assert_eq!(std::fs::read_to_string(hidden).unwrap(), CHECK);
    let removing = std::fs::read_to_string(suite.join("scenarios/refuse-pages-of-no-lines.yaml"));
    assert!(
        removing
            .unwrap()
            .contains("rm -f tests/two.sh && sh tests/none.sh")
    );

    let checked = history.done(&["check", "evals"]);
    assert!(checked.contains("2 scenarios in 2 modes"), "{checked}");
    // Neither the fix nor its tests nor any history can be found in the workspace.
    put_in_place_of_the_agent(
        &suite,
        "test \"$(git rev-list --all --count)\" = 1 && ! ls tests | grep -E 'last|none' && ! git log | grep Keep",
    );
    assert_eq!(passed(&history, "evals"), (0, 4));
    put_in_place_of_the_agent(
        &suite,
        "printf '%s\\n' '[ \"$2\" -gt 0 ] || { echo none; exit; }' 'echo $((($1 + $2 - 1) / $2))' > pages.sh",
    );
    assert_eq!(passed(&history, "evals"), (4, 4));
}

#[test]
fn a_search_is_bounded_in_tasks_and_time() {
    let history = History::new();
    history.commit(
        "Sleep a lot",
        &[
            ("pages.sh", "sleep 100\n"),
            ("tests/slow.sh", "sh pages.sh\n"),
        ],
    );
    let fix = |n: u32| {
        history.commit(
            &format!("Add the number {n}"),
            &[
                ("pages.sh", &format!("echo {n}\n")),
                (
                    "tests/number.sh",
                    &format!("test \"$(sh pages.sh)\" = {n}\n"),
                ),
            ],
        );
    };
    (1..=3).for_each(fix);
    let told = history.done(&["init", "evals", "--from-git", "HEAD", "-n", "1"]);
    assert!(told.contains("1 of 1 commits make a task"), "{told}");
    assert!(
        history
            .place()
            .join("evals/scenarios/add-the-number-3.yaml")
            .exists()
    );

    let range = "HEAD~4..HEAD~3";
    let output = history
        .assize(&["init", "slow", "--from-git", range, "--timeout", "1500"])
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    assert!(
        words(&output).contains("time ran out"),
        "{}",
        words(&output)
    );
    assert!(words(&output).contains("none of the 1 commits of `HEAD~4..HEAD~3` makes a task"));
    assert!(!history.place().join("slow").exists());
}

#[test]
fn the_text_of_an_issue_is_the_prompt_where_the_commit_names_one() {
    let history = History::new();
    history.sandbox.write(
        "project/issues/7.md",
        "Pages are lost: ten lines on pages of three.\n",
    );
    history.commit(
        "Fix #7",
        &[
            ("pages.sh", "echo $((($1 + $2 - 1) / $2))\n"),
            ("tests/last.sh", CHECK),
        ],
    );
    let command = "cat {files} > /dev/null && for each in {files}; do sh \"$each\" || exit 1; done";
    history.done(&[
        "init",
        "evals",
        "--from-git",
        "HEAD~1..",
        "--issues",
        "issues",
        "--test",
        command,
    ]);
    let task = std::fs::read_to_string(history.place().join("evals/scenarios/fix-7.yaml")).unwrap();
    assert!(
        task.contains("prompt: |\n  Pages are lost: ten lines on pages of three.\n"),
        "{task}"
    );
    assert!(task.contains("for each in tests/last.sh; do"), "{task}");
}

#[test]
fn a_range_that_git_does_not_know_is_a_usage_error_with_a_hint() {
    let history = History::new();
    for (range, message) in [
        ("v9..", "git knows no commits `v9..`"),
        ("HEAD..HEAD", "there are no commits in `HEAD..HEAD`"),
    ] {
        let output = history
            .assize(&["init", "evals", "--from-git", range])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains(message), "{}", words(&output));
        assert!(words(&output).contains("hint:"), "{}", words(&output));
    }
    let output = history
        .assize(&["init", "evals", "-n", "3"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
}
