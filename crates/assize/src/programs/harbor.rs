//! The verifier of a Harbor task: its tests are placed after the agent has ended, in the agent's container or in one of their
//! own, and leave rewards in files. Also its reference solution, for the oracle.

use crate::suite::harbor::{HarborEnvironment, HarborTask, VerifierPlace, of_environment};
use assize_agents::container::{self, Resident, Wanted};
use assize_contracts::{Container as Settings, ContainerEngine, ContainerNetwork, SessionSandbox};
use assize_measures::Rewards;
use assize_process::container::{Container, Within};
use assize_process::{Bound, Command, Output, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Bytes kept of the tests' output from each end.
const OUTPUT: u64 = 32 << 10;

/// A reward file that is larger is none.
const LARGEST_REWARD: &str = "65536";

/// The time limit of a small step around the tests.
const STEP_LIMIT: Duration = Duration::from_secs(60);

const TESTS: &str = "/tests";
const SOLUTION: &str = "/solution";

/// Settings that the containers of a verifier share with those of its run.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) sandbox: SessionSandbox,
    pub(crate) engine: ContainerEngine,
    pub(crate) trial: String,
}

/// Runs the tests of a task on what the agent left. `Err` says why nothing is known.
pub(crate) async fn verify(
    task: &HarborTask,
    agents: &Container,
    setting: &Setting,
) -> Result<Rewards, String> {
    match &task.verifier.place {
        VerifierPlace::Shared => {
            bring_tests(task, agents).await?;
            run_tests(task, agents).await
        }
        VerifierPlace::Separate {
            environment,
            has_tests,
            has_network,
        } => {
            let artifacts = assize_secrets::private_directory("assize-harbor-")
                .map_err(|error| error.to_string())?;
            collect(task, agents).await?;
            let found = fetch(task, agents, artifacts.path()).await?;
            let own = start(environment, *has_network, setting).await?;
            let verified = async {
                for (source, target) in &found {
                    put(&own, source, target).await?;
                }
                match has_tests {
                    true => make_places(&own).await?,
                    false => bring_tests(task, &own).await?,
                }
                run_tests(task, &own).await
            };
            let verified = verified.await;
            own.end().await.map_err(|error| error.explained())?;
            verified
        }
    }
}

/// Starts the container of the agent, as a trial would, without an agent.
pub(crate) async fn start_agents(
    task: &HarborTask,
    settings: &Settings,
    setting: &Setting,
) -> Result<Container, String> {
    let alone = Settings {
        install_agent: false,
        ..settings.clone()
    };
    let wanted = Wanted {
        settings: &alone,
        sandbox: &setting.sandbox,
        trial: setting.trial.clone(),
        mounts: Vec::new(),
        agent: None,
        resident: Resident::Check,
    };
    let container = container::start(wanted).await;
    container.map_err(|error| format!("`{}`: {}", task.id, error.explained()))
}

/// Runs the reference solution in the agent's container, as its user. `Err` says why it did not end well.
pub(crate) async fn solve(task: &HarborTask, agents: &Container) -> Result<(), String> {
    make_places(agents).await?;
    put(agents, &task.directory.join("solution"), SOLUTION).await?;
    let script = format!("{SOLUTION}/solve.sh");
    as_root(agents, &["chmod", "-R", "a+rX", SOLUTION]).await?;
    as_root(agents, &["chmod", "a+x", &script]).await?;
    let command =
        Command::from_argv([script.as_str()], "/").env("DEBIAN_FRONTEND", "noninteractive");
    let command = with_variables(command, &task.solution_env).timeout(task.agent_limit);
    let within = Within {
        workdir: None,
        user: task.agent_user.clone(),
    };
    let output = run(agents, command, &within).await?;
    match output.exit.is_success() {
        true => Ok(()),
        false => Err(format!(
            "the solution {}: {}",
            output.exit.in_words(task.agent_limit),
            last_words(&output)
        )),
    }
}

async fn start(
    environment: &HarborEnvironment,
    has_network: bool,
    setting: &Setting,
) -> Result<Container, String> {
    let settings = Settings {
        engine: setting.engine,
        network: match has_network {
            true => ContainerNetwork::Open,
            false => ContainerNetwork::None,
        },
        ..of_environment(environment)
    };
    let wanted = Wanted {
        settings: &settings,
        sandbox: &setting.sandbox,
        trial: format!("{} verifier", setting.trial),
        mounts: Vec::new(),
        agent: None,
        resident: Resident::Check,
    };
    let started = container::start(wanted).await;
    started.map_err(|error| format!("the verifier's container: {}", error.explained()))
}

/// The directories that tasks expect. Rewards and tests that are there already are not the verifier's.
async fn make_places(container: &Container) -> Result<(), String> {
    let script = "[ ! -L /logs ] || rm -f /logs; [ ! -L /logs/verifier ] || rm -f /logs/verifier; \
        mkdir -p /logs/verifier /logs/agent /logs/artifacts && chmod 777 /logs/verifier /logs/agent /logs/artifacts && \
        rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json";
    as_root(container, &["sh", "-c", script]).await
}

async fn bring_tests(task: &HarborTask, container: &Container) -> Result<(), String> {
    make_places(container).await?;
    as_root(container, &["rm", "-rf", TESTS]).await?;
    put(container, &task.directory.join("tests"), TESTS).await?;
    as_root(container, &["chmod", "-R", "a+rX", TESTS]).await
}

async fn run_tests(task: &HarborTask, container: &Container) -> Result<Rewards, String> {
    let script = format!("{TESTS}/test.sh");
    as_root(container, &["chmod", "a+x", &script]).await?;
    let limit = task.verifier.limit;
    let command = Command::from_argv([script.as_str()], "/");
    let command = with_variables(command, &task.verifier.env).timeout(limit);
    let within = Within {
        workdir: None,
        user: task.verifier.user.clone(),
    };
    let output = run(container, command, &within).await?;
    if output.exit.stopped.is_some() {
        return Err(format!("the tests {}", output.exit.in_words(limit)));
    }
    let text = format!("{}{}", output.stdout.text(), output.stderr.text());
    let values = match read(container, "/logs/verifier/reward.json").await? {
        Some(json) => from_json(&json)?,
        None => match read(container, "/logs/verifier/reward.txt").await? {
            Some(text) => from_text(&text)?,
            None => {
                return Err(format!(
                    "the tests wrote no reward (`/logs/verifier/reward.txt` or `reward.json`); they {}: {}",
                    output.exit.in_words(limit),
                    last_words(&output)
                ));
            }
        },
    };
    Ok(Rewards {
        values,
        output: text,
    })
}

/// Commands that write what a separate verifier is to see.
async fn collect(task: &HarborTask, agents: &Container) -> Result<(), String> {
    for collector in &task.verifier.collectors {
        let command = Command::from_argv(["sh", "-c", &collector.command], "/");
        let within = Within {
            workdir: None,
            user: collector.user.clone(),
        };
        let mut command = agents.exec(command.timeout(collector.limit), &within);
        command.elsewhere = None;
        // As in Harbor, a collector that fails leaves its artifact missing.
        command
            .run_to_end()
            .await
            .map_err(|error| error.explained())?;
    }
    Ok(())
}

/// Copies artifacts out of the agent's container. One that is missing, or a link, is left out.
async fn fetch(
    task: &HarborTask,
    agents: &Container,
    place: &Path,
) -> Result<Vec<(std::path::PathBuf, String)>, String> {
    let mut found = Vec::new();
    for (number, source) in task.artifacts.iter().enumerate() {
        let target = place.join(number.to_string());
        if agents.copy_out(source, &target).await.is_err() {
            continue;
        }
        let is_link =
            std::fs::symlink_metadata(&target).is_ok_and(|metadata| metadata.is_symlink());
        if target.exists() && !is_link {
            found.push((target, source.clone()));
        }
    }
    Ok(found)
}

/// Copies a file or the content of a directory in, and makes the directories above.
async fn put(container: &Container, source: &Path, target: &str) -> Result<(), String> {
    let directory = match source.is_dir() {
        true => Some(Path::new(target)),
        false => Path::new(target).parent(),
    };
    if let Some(directory) = directory {
        as_root(container, &["mkdir", "-p", &directory.to_string_lossy()]).await?;
    }
    let copied = container.copy_in(source, target).await;
    copied.map_err(|error| error.explained())
}

async fn as_root(container: &Container, argv: &[&str]) -> Result<(), String> {
    let command = Command::from_argv(argv.iter().copied(), "/").timeout(STEP_LIMIT);
    let output = run(container, command, &root()).await?;
    match output.exit.is_success() {
        true => Ok(()),
        false => Err(format!(
            "`{}` in the container: {}",
            argv.join(" "),
            last_words(&output)
        )),
    }
}

fn root() -> Within {
    Within {
        workdir: Some("/".into()),
        user: Some("0".to_owned()),
    }
}

/// The content of a file inside. Absent when there is none.
async fn read(container: &Container, path: &str) -> Result<Option<String>, String> {
    let script = "[ -f \"$0\" ] || exit 44; head -c \"$1\" \"$0\"";
    let command = Command::from_argv(["sh", "-c", script, path, LARGEST_REWARD], "/");
    let output = run(container, command.timeout(STEP_LIMIT), &root()).await?;
    match output.exit.status {
        Some(Status::Exited(0)) => Ok(Some(output.stdout.text().into_owned())),
        Some(Status::Exited(44)) => Ok(None),
        _ => Err(format!("`{path}` cannot be read: {}", last_words(&output))),
    }
}

async fn run(container: &Container, command: Command, within: &Within) -> Result<Output, String> {
    let command = command.bound(Bound {
        head: OUTPUT,
        tail: OUTPUT,
    });
    let output = container.exec(command, within).run_to_end().await;
    output.map_err(|error| error.explained())
}

fn with_variables(command: Command, variables: &BTreeMap<String, String>) -> Command {
    let variables = variables.iter();
    variables.fold(command, |command, (name, value)| command.env(name, value))
}

fn last_words(output: &Output) -> String {
    let words = output.stderr.last_words(400);
    match words.is_empty() {
        true => output.stdout.last_words(400),
        false => words,
    }
}

fn from_text(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let reward: Option<f64> = text
        .trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite());
    let reward = reward.ok_or_else(|| {
        let start: String = text.trim().chars().take(40).collect();
        format!("found {start:?} in `reward.txt`, expected a number")
    })?;
    Ok(BTreeMap::from([("reward".to_owned(), reward)]))
}

/// A number, or numbers by name.
fn from_json(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let wrong = |what: &str| format!("found {what} in `reward.json`, expected numbers by name");
    let value: Value = serde_json::from_str(text).map_err(|_| wrong("no JSON"))?;
    let number = |value: &Value| match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        other => other.as_f64().filter(|number| number.is_finite()),
    };
    match &value {
        Value::Object(map) if !map.is_empty() => map
            .iter()
            .map(|(name, value)| {
                let found = number(value).ok_or_else(|| wrong(&format!("`{name}`: {value}")))?;
                Ok((name.clone(), found))
            })
            .collect(),
        other => match number(other) {
            Some(reward) => Ok(BTreeMap::from([("reward".to_owned(), reward)])),
            None => Err(wrong("no number")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_read_in_both_forms() {
        assert_eq!(from_text(" 0.5\n").unwrap()["reward"], 0.5);
        assert_eq!(from_json("1").unwrap()["reward"], 1.0);
        let both = from_json(r#"{"reward": 1, "style": 0.25}"#).unwrap();
        assert_eq!((both["reward"], both["style"]), (1.0, 0.25));
    }

    #[test]
    fn what_is_no_reward_is_refused() {
        for text in ["", "yes", "NaN", "inf", "1 2"] {
            assert!(from_text(text).is_err(), "{text}");
        }
        for text in [
            "",
            "{}",
            "[]",
            r#"{"reward": "1"}"#,
            r#"{"reward": null}"#,
            "1e999",
            "{",
        ] {
            assert!(from_json(text).is_err(), "{text}");
        }
    }
}
