//! `assize init --from-git`: tasks from commits that change code and tests. A commit becomes a task only after its tests have
//! been seen to fail without its code and to pass with it.

mod commits;
mod proof;
mod task;

use super::init::Written;
use super::init_agent;
use super::project_tests::tests_of;
use super::repository::Repository;
use crate::cli::InitArguments;
use crate::commands::{Obstructed, UsageError};
use crate::terminal::{one_line, plain, say};
use anyhow::{Context, Result};
use assize_process::workspace::{Workspaces, default_root};
use commits::{Candidate, Commit};
use proof::{OUT_OF_TIME, Proof, Prover};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Everything that was decided about the commits of the range, one JSON object per line.
const DECISIONS: &str = "from-git.jsonl";

/// The agent of suites that were asked for without one.
const USUAL_AGENT: &str = "claude-code";

/// The first thing to do with the suite.
const FIRST_STEP: &str =
    "read the tasks in scenarios/ and improve their prompts; the hidden tests are in checks/";

/// The files of the suite.
pub(super) fn files(arguments: &InitArguments, range: &str) -> Result<Vec<Written>> {
    let agents = match arguments.agent.as_slice() {
        [] => vec![USUAL_AGENT.to_owned()],
        agents => agents.to_vec(),
    };
    init_agent::check_agents(&agents)?;
    let repository = Repository::around_or_here(&arguments.directory)?;
    let commits = commits::commits(&repository, range)?;
    let found = Search::new(arguments, &repository)?.run(&commits)?;
    if found.tasks == 0 {
        return Err(Obstructed {
            message: format!("none of the {} commits of `{range}` makes a task", found.looked_at),
            hint: "a task needs a commit that changes code and test files; `--test COMMAND` names how its tests are run"
                .to_owned(),
        }
        .into());
    }
    say(format!(
        "\n{} of {} commits make a task; why the others do not is in {DECISIONS}",
        found.tasks, found.looked_at
    ));
    let tests = tests_of(&repository.top);
    let suite = init_agent::suite(&repository.name, &agents, tests.as_ref(), FIRST_STEP);
    let mut files = vec![
        Written::text("assize.yaml", suite),
        Written::text(DECISIONS, found.decisions),
    ];
    files.extend(found.files);
    Ok(files)
}

/// The search for tasks among commits.
struct Search<'a> {
    repository: &'a Repository,
    workspaces: Workspaces,
    most: usize,
    test: Option<&'a str>,
    timeout: Duration,
    deadline: Instant,
    issues: Option<&'a Path>,
}

/// The result of a search.
#[derive(Default)]
struct Found {
    files: Vec<Written>,
    /// JSON lines.
    decisions: String,
    ids: BTreeSet<String>,
    tasks: usize,
    looked_at: usize,
}

impl<'a> Search<'a> {
    fn new(arguments: &'a InitArguments, repository: &'a Repository) -> Result<Self> {
        let history = &arguments.history;
        if let Some(issues) = &history.issues
            && !issues.is_dir()
        {
            return Err(UsageError {
                message: format!("`{}` is no directory", issues.display()),
                hint: Some("--issues names a directory with files such as 12.md".to_owned()),
            }
            .into());
        }
        Ok(Self {
            repository,
            workspaces: Workspaces::open(&default_root()?)?,
            most: history.tasks as usize,
            test: history.test.as_deref(),
            timeout: Duration::from_millis(history.timeout),
            deadline: Instant::now() + Duration::from_secs(history.minutes * 60),
            issues: history.issues.as_deref(),
        })
    }

    fn run(&self, commits: &[String]) -> Result<Found> {
        let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
        let mut found = Found::default();
        for id in commits {
            if found.tasks == self.most {
                break;
            }
            let Some(commit) = commits::read(self.repository, id) else {
                found.reject(id, "", "git cannot read it");
                continue;
            };
            match runtime.block_on(self.decide(&commit)) {
                Ok(accepted) => found.accept(&commit, &accepted, &self.repository.from_suite),
                Err(reason) => {
                    found.reject(id, &task::clean(&commit.subject), &task::clean(&reason));
                }
            }
        }
        Ok(found)
    }

    /// `Err` says why the commit makes no task.
    async fn decide(&self, commit: &Commit) -> Result<Accepted, String> {
        let candidate = commits::candidate(self.repository, commit)?;
        let prompt = task::prompt(commit, self.issue(commit).as_deref())?;
        if Instant::now() >= self.deadline {
            return Err(OUT_OF_TIME.to_owned());
        }
        let prover = Prover {
            workspaces: &self.workspaces,
            repository: &self.repository.top,
            test: self.test,
            timeout: self.timeout,
            deadline: self.deadline,
        };
        let proof = prover.prove(commit, &candidate).await?;
        Ok(Accepted {
            candidate,
            proof,
            prompt,
        })
    }

    /// The text of the first issue that the commit names and that is there.
    fn issue(&self, commit: &Commit) -> Option<String> {
        let directory = self.issues?;
        let mut texts = task::issue_numbers(commit).into_iter().flat_map(|number| {
            ["md", "txt"]
                .map(|ending| std::fs::read_to_string(directory.join(format!("{number}.{ending}"))))
        });
        texts.find_map(Result::ok)
    }
}

/// A commit that makes a task.
struct Accepted {
    candidate: Candidate,
    proof: Proof,
    prompt: String,
}

impl Found {
    fn accept(&mut self, commit: &Commit, accepted: &Accepted, repository: &str) {
        let Accepted {
            candidate,
            proof,
            prompt,
        } = accepted;
        let id = task::id(commit, &self.ids);
        let subject = task::clean(&commit.subject);
        say(plain(&format!(
            "✓ {} {}: fails before ({}), passes after ({:.1} s)",
            commit.short(),
            one_line(&subject, 60),
            task::clean(&proof::words(&proof.before)),
            proof.after.took.as_secs_f64(),
        )));
        self.decided(json!({
            "commit": commit.id, "subject": subject, "task": id, "run": proof.run,
            "beforeExit": proof.before.exit, "beforeMs": proof.before.took.as_millis() as u64,
            "afterExit": proof.after.exit, "afterMs": proof.after.took.as_millis() as u64,
        }));
        self.files.extend(task::files(
            &id,
            commit,
            (candidate, proof),
            (prompt, repository),
        ));
        self.ids.insert(id);
        self.tasks += 1;
    }

    fn reject(&mut self, commit: &str, subject: &str, reason: &str) {
        say(plain(&format!(
            "– {} {}: {reason}",
            commit.get(..10).unwrap_or(commit),
            one_line(subject, 60),
        )));
        self.decided(json!({ "commit": commit, "subject": subject, "rejected": reason }));
    }

    fn decided(&mut self, decision: Value) {
        self.looked_at += 1;
        self.decisions.push_str(&format!("{decision}\n"));
    }
}
