//! `assize check --oracle`: proves Harbor tasks before money is spent. The reference solution must earn the full reward, and
//! an agent that does nothing must not.

use crate::exit::Exit;
use crate::programs::harbor::{Setting, solve, start_agents, verify};
use crate::suite::LoadedSuite;
use crate::suite::harbor::HarborTask;
use crate::terminal::{plain, print, say};
use anyhow::Result;
use assize_contracts::{BaseScenario, Container, Sandbox, SessionSandbox};
use assize_engine::ProfileSuite;
use assize_measures::Rewards;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The proof of one task.
struct Proof {
    task: String,
    /// `Err` says why the solution does not prove anything good.
    oracle: Result<(), String>,
    /// `Err` says why doing nothing does not prove anything.
    empty: Result<(), String>,
}

pub(super) fn oracle(suite: &LoadedSuite) -> Result<Exit> {
    let profile = &suite.profile;
    let tasks: Vec<&Arc<BaseScenario>> = profile
        .scenarios
        .iter()
        .filter(|scenario| task_of(scenario).is_some())
        .collect();
    if tasks.is_empty() {
        say("the suite has no Harbor tasks, so there is nothing for an oracle to prove");
        return Ok(Exit::Done);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut is_proved = true;
    for scenario in tasks {
        let proof = runtime.block_on(prove(scenario, profile));
        is_proved &= proof.oracle.is_ok() && proof.empty.is_ok();
        show(&proof);
    }
    Ok(if is_proved { Exit::Done } else { Exit::Usage })
}

fn task_of(scenario: &BaseScenario) -> Option<&Path> {
    let task = scenario
        .checks
        .iter()
        .find_map(|check| check.pointer("/harbor/task"));
    task.and_then(Value::as_str).map(Path::new)
}

fn show(proof: &Proof) {
    let line = |who: &str, found: &Result<(), String>, good: &str| match found {
        Ok(()) => format!("  {who}: {good}"),
        Err(reason) => format!("  {who}: {reason}"),
    };
    let is_proved = proof.oracle.is_ok() && proof.empty.is_ok();
    let word = if is_proved { "proved" } else { "NOT PROVED" };
    print(plain(&format!("{} is {word}", proof.task)));
    print(plain(&line("oracle", &proof.oracle, "full reward")));
    print(plain(&line("empty agent", &proof.empty, "no full reward")));
}

async fn prove(scenario: &BaseScenario, profile: &ProfileSuite) -> Proof {
    let found = prepared(scenario, profile);
    let (oracle, empty) = match &found {
        Ok((task, container, setting)) => {
            let solved = attempt(task, container, setting, true).await;
            let untouched = attempt(task, container, setting, false).await;
            (of_solution(solved), of_nothing(untouched))
        }
        Err(reason) => (Err(reason.clone()), Err(reason.clone())),
    };
    Proof {
        task: scenario.id.clone(),
        oracle,
        empty,
    }
}

fn prepared<'a>(
    scenario: &'a BaseScenario,
    profile: &ProfileSuite,
) -> Result<(HarborTask, &'a Container, Setting), String> {
    let directory = task_of(scenario).ok_or("the scenario is no Harbor task")?;
    let (task, _) = HarborTask::read(directory).map_err(|errors| {
        let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
        messages.join("; ")
    })?;
    let Some(Sandbox::Container(container)) = &scenario.sandbox else {
        return Err("the scenario has no container".to_owned());
    };
    let setting = Setting {
        sandbox: SessionSandbox {
            sandbox: Arc::new(Sandbox::Container(container.clone())),
            places: Arc::clone(&profile.places),
            run: Arc::from("oracle"),
            ..SessionSandbox::default()
        },
        engine: container.engine,
        trial: format!("{} oracle", task.id),
    };
    Ok((task, container, setting))
}

/// The rewards with the solution, or of an untouched container.
async fn attempt(
    task: &HarborTask,
    container: &Container,
    setting: &Setting,
    is_solved: bool,
) -> Result<Rewards, String> {
    if is_solved && !task.has_solution() {
        return Err("there is no `solution/solve.sh`".to_owned());
    }
    let agents = start_agents(task, container, setting).await?;
    let verified = async {
        if is_solved {
            solve(task, &agents).await?;
        }
        verify(task, &agents, setting).await
    };
    let verified = verified.await;
    agents.end().await.map_err(|error| error.explained())?;
    verified
}

fn of_solution(rewards: Result<Rewards, String>) -> Result<(), String> {
    let rewards = rewards?;
    match rewards.are_full() {
        true => Ok(()),
        false => Err(format!(
            "the solution earns {}, expected the full reward of 1; the tests said: {}",
            in_words(&rewards),
            end_of(&rewards.output)
        )),
    }
}

fn of_nothing(rewards: Result<Rewards, String>) -> Result<(), String> {
    let rewards = rewards?;
    match rewards.are_full() {
        false => Ok(()),
        true => Err(format!(
            "doing nothing earns {}, so that the task shows nothing",
            in_words(&rewards)
        )),
    }
}

fn in_words(rewards: &Rewards) -> String {
    let values = rewards.values.iter();
    let values: Vec<String> = values
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    values.join(", ")
}

fn end_of(output: &str) -> String {
    let output = output.trim();
    let start = output.ceil_char_boundary(output.len().saturating_sub(300));
    output[start..].replace('\n', " | ")
}
