//! Commands of `command` checks: hidden files are placed, then the command runs in the workspace.

use assize_contracts::{BoxError, async_trait};
use assize_measures::{CommandOutcome, CommandRunner, CommandSpec};
use assize_process::workspace::{copy_tree, remove_tree};
use assize_process::{Bound, Command, Status};
use std::fs;
use std::io;
use std::path::Path;

/// How much of each stream is kept from each end.
const OUTPUT: u64 = 16 << 10;

/// Runs the commands of checks under the keeper. Of secrets they get those of the mode alone.
pub(crate) struct KeptCommands;

#[async_trait]
impl CommandRunner for KeptCommands {
    async fn run(&self, spec: &CommandSpec<'_>) -> Result<CommandOutcome, BoxError> {
        for (target, source) in spec.files {
            place(source, spec.workspace, Path::new(target))
                .map_err(|error| format!("cannot place `{}`: {error}", source.display()))?;
        }
        let command = Command::from_argv(["sh", "-c", spec.run], spec.workspace)
            .pass_usual_env()
            .timeout(spec.timeout)
            .bound(Bound {
                head: OUTPUT,
                tail: OUTPUT,
            });
        let command = spec
            .environment
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        let output = command
            .run_to_end()
            .await
            .map_err(|error| error.explained())?;
        let mut text = format!("{}{}", output.stdout.text(), output.stderr.text());
        let exit = match (output.exit.stopped, output.exit.status) {
            (None, Some(Status::Exited(code))) => Some(code),
            _ => {
                text.push_str(&format!("\nit {}", output.exit.in_words(spec.timeout)));
                None
            }
        };
        Ok(CommandOutcome { exit, output: text })
    }
}

/// Puts a file or directory into the workspace in place of whatever the agent left there. The agent's links are not
/// followed: they could lead anywhere.
fn place(source: &Path, workspace: &Path, target: &Path) -> Result<(), BoxError> {
    let mut parent = workspace.to_owned();
    for part in target.parent().into_iter().flat_map(Path::components) {
        parent.push(part);
        match fs::symlink_metadata(&parent) {
            Ok(metadata) if metadata.is_dir() => continue,
            Ok(_) => fs::remove_file(&parent)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        fs::create_dir(&parent)?;
    }
    let target = workspace.join(target);
    match fs::symlink_metadata(&target) {
        Ok(metadata) if metadata.is_dir() => remove_tree(&target)?,
        Ok(_) => fs::remove_file(&target)?,
        Err(_) => {}
    }
    if source.is_dir() {
        copy_tree(source, &target)?;
    } else {
        fs::copy(source, &target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_placed_file_does_not_follow_the_agents_links() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("hidden.py"), "real").unwrap();
        fs::write(path("outside.py"), "untouched").unwrap();
        fs::create_dir_all(path("work")).unwrap();
        fs::create_dir_all(path("elsewhere")).unwrap();
        symlink(path("outside.py"), path("work/test.py")).unwrap();
        symlink(path("elsewhere"), path("work/tests")).unwrap();
        for target in ["test.py", "tests/deep/test.py"] {
            place(&path("hidden.py"), &path("work"), Path::new(target)).unwrap();
            assert_eq!(
                fs::read_to_string(path("work").join(target)).unwrap(),
                "real"
            );
        }
        assert_eq!(fs::read_to_string(path("outside.py")).unwrap(), "untouched");
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0);
    }
}
