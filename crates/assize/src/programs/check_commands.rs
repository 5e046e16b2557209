//! Commands of `command` checks: hidden files are placed, then the command runs in the workspace, on this machine or in a
//! fresh container of the agent's image. Verifiers of Harbor tasks are in `harbor.rs`.

use super::harbor;
use crate::suite::harbor::HarborTask;
use assize_agents::container::{self, Resident, Wanted};
use assize_contracts::{
    BoxError, Container as Settings, ContainerEngine, ContainerNetwork, Sandbox, async_trait,
};
use assize_measures::{
    CheckPlace, CommandOutcome, CommandRunner, CommandSpec, HarborSpec, Rewards,
};
use assize_process::container::{Mount, Within};
use assize_process::workspace::{copy_tree, remove_tree};
use assize_process::{Bound, Command, Output, Status};
use std::fs;
use std::io;
use std::path::Path;

/// Bytes kept of each stream from each end.
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
        let output = match (spec.place, &*spec.context.sandbox.sandbox) {
            (CheckPlace::LikeAgent, Sandbox::Container(settings)) => {
                in_container(spec, settings).await?
            }
            _ => {
                let command = command(spec, Command::pass_usual_env).run_to_end().await;
                command.map_err(|error| error.explained())?
            }
        };
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

    async fn verify(&self, spec: &HarborSpec<'_>) -> Result<Rewards, BoxError> {
        let (task, _) = HarborTask::read(spec.task).map_err(|errors| {
            let first = errors.first().map(|error| error.message.clone());
            first.unwrap_or_else(|| "the task cannot be read".to_owned())
        })?;
        let handle = spec.context.container.as_ref();
        let handle = handle.ok_or("the container in which the agent worked is gone")?;
        let agents = container::attach(handle).await;
        let agents = agents.map_err(|error| error.explained())?;
        let setting = harbor::Setting {
            sandbox: spec.context.sandbox.clone(),
            engine: engine_of(&spec.context.sandbox.sandbox),
            trial: format!("{} {}", task.id, spec.context.mode),
        };
        Ok(harbor::verify(&task, &agents, &setting).await?)
    }
}

fn engine_of(sandbox: &Sandbox) -> ContainerEngine {
    match sandbox {
        Sandbox::Container(settings) => settings.engine,
        _ => ContainerEngine::Auto,
    }
}

/// The command of a check in the workspace, on top of an environment.
fn command(spec: &CommandSpec<'_>, surround: impl Fn(Command) -> Command) -> Command {
    let command = Command::from_argv(["sh", "-c", spec.run], spec.workspace);
    let command = surround(command).timeout(spec.timeout).bound(Bound {
        head: OUTPUT,
        tail: OUTPUT,
    });
    let variables = spec.environment.iter();
    variables.fold(command, |command, (name, value)| command.env(name, value))
}

/// Runs the command in a fresh container of the agent's image, with the workspace that the agent left and without the model.
async fn in_container(spec: &CommandSpec<'_>, settings: &Settings) -> Result<Output, BoxError> {
    let settings = Settings {
        network: match settings.network {
            ContainerNetwork::Open => ContainerNetwork::Open,
            _ => ContainerNetwork::None,
        },
        ..settings.clone()
    };
    let wanted = Wanted {
        settings: &settings,
        sandbox: &spec.context.sandbox,
        trial: format!("check {} {}", spec.context.mode, spec.context.iteration),
        mounts: vec![Mount::same(spec.workspace)],
        agent: None,
        resident: Resident::Check,
    };
    let own = container::start(wanted)
        .await
        .map_err(|error| error.explained())?;
    let within = Within {
        workdir: Some(spec.workspace.to_owned()),
        user: None,
    };
    let command = own.exec(command(spec, |command| command), &within);
    let output = command
        .run_to_end()
        .await
        .map_err(|error| error.explained());
    own.end().await.map_err(|error| error.explained())?;
    Ok(output?)
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
