//! One commit of a local repository as a repository of its own. Git runs under the keeper like any other program.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::Command;
use crate::error::{Error, Result};

const TIMEOUT: Duration = Duration::from_secs(600);

/// Asks for any commit, not only the tips of branches, and takes the owner of the repository as the user named it.
const UPLOAD_PACK: &str = "git -c safe.directory=* -c uploadpack.allowAnySHA1InWant=true -c uploadpack.allowFilter=true upload-pack";

pub(super) async fn checkout(repository: &Path, revision: &str, into: &Path) -> Result<()> {
    let repository = repository
        .canonicalize()
        .map_err(Error::file("open", repository))?;
    let git = Git {
        repository,
        revision,
        into,
    };
    let resolve = [
        "rev-parse",
        "--verify",
        "--end-of-options",
        &format!("{revision}^{{commit}}"),
    ];
    let commit = git.run(&git.repository, &resolve).await?;
    let source = git.repository.display().to_string();
    git.run(into, &["init", "--quiet", "--template="]).await?;
    git.run(
        into,
        &[
            "fetch",
            "--quiet",
            "--no-tags",
            "--depth=1",
            "--upload-pack",
            UPLOAD_PACK,
            &source,
            &commit,
        ],
    )
    .await?;
    git.run(into, &["checkout", "--quiet", "--detach", &commit])
        .await?;
    // It names the place the commit came from, which is none of the agent's business.
    let _ = std::fs::remove_file(into.join(".git/FETCH_HEAD"));
    Ok(())
}

/// Makes git write down the inodes and times that its files have now. A repository that refuses works without.
pub(super) async fn refresh(repository: &Path) {
    let git = Git {
        repository: repository.to_owned(),
        revision: "HEAD",
        into: repository,
    };
    let _ = git
        .run(repository, &["update-index", "-q", "--refresh"])
        .await;
}

struct Git<'a> {
    repository: PathBuf,
    revision: &'a str,
    into: &'a Path,
}

impl Git<'_> {
    /// Runs git and returns its output without the line end.
    async fn run(&self, directory: &Path, arguments: &[&str]) -> Result<String> {
        let command = Command::from_argv(["git", "-c", "safe.directory=*"], directory)
            .args(arguments)
            .pass_env("PATH")
            .env("HOME", self.into)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "file")
            .timeout(TIMEOUT);
        let output = command.run_to_end().await?;
        if output.exit.is_success() {
            return Ok(output.stdout.text().trim_end().to_owned());
        }
        let last_words = output
            .stderr
            .text()
            .lines()
            .last()
            .unwrap_or("it said nothing")
            .to_owned();
        Err(Error::Git {
            repository: self.repository.clone(),
            revision: self.revision.to_owned(),
            message: last_words,
        })
    }
}
