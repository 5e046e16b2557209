//! A Harbor task as a scenario: its instruction is the prompt, its environment the container, its tests the check.

use super::file::HealthcheckPart;
use super::task::{HarborEnvironment, HarborTask, ImageOf};
use assize_contracts::{BaseScenario, Container, ContainerNetwork, Healthcheck, Sandbox};
use serde_json::json;
use std::time::Duration;

/// The directories that tasks expect.
const PLACES: &str = "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts";

/// The scenario of a task. `over` is what the suite says about containers, which goes before the task's own wishes.
pub(crate) fn scenario(task: &HarborTask, over: Option<&Container>) -> BaseScenario {
    let check = json!({ "harbor": { "task": task.directory.to_string_lossy() }, "id": "reward" });
    BaseScenario {
        name: task.name.clone(),
        description: task.description.clone(),
        timeout_ms: milliseconds(task.agent_limit),
        tags: task.tags.clone(),
        checks: vec![check],
        sandbox: Some(Sandbox::Container(Box::new(container(task, over)))),
        ..BaseScenario::new(task.id.clone(), task.instruction.clone())
    }
}

/// The container of the agent.
fn container(task: &HarborTask, over: Option<&Container>) -> Container {
    let network = match task.is_offline {
        true => ContainerNetwork::Model,
        false => ContainerNetwork::Open,
    };
    let own = Container {
        network,
        user: task.agent_user.clone(),
        setup: vec![PLACES.to_owned()],
        install_agent: true,
        ..of_environment(&task.environment)
    };
    let Some(over) = over else {
        return own;
    };
    let mut environment = own.environment;
    environment.extend(over.environment.clone());
    Container {
        engine: over.engine,
        cpus: over.cpus.or(own.cpus),
        memory_mb: over.memory_mb.or(own.memory_mb),
        // No task brings back what the suite removes.
        network: match over.network {
            ContainerNetwork::Open => network,
            narrower => narrower,
        },
        mounts: over.mounts.clone(),
        user: over.user.clone().or(own.user),
        environment,
        ..own
    }
}

/// The container for an environment of Harbor. Its network is decided elsewhere.
pub(crate) fn of_environment(environment: &HarborEnvironment) -> Container {
    let (image, build, limit) = match &environment.image {
        ImageOf::Named(name) => (Some(name.clone()), None, None),
        ImageOf::Built { context, limit } => (None, Some(context.clone()), Some(*limit)),
    };
    Container {
        image,
        build,
        build_timeout_ms: limit.map(milliseconds),
        cpus: environment.cpus,
        memory_mb: environment.memory_mb,
        workdir: environment.workdir.clone(),
        skills_dir: environment.skills_dir.clone(),
        environment: environment.env.clone(),
        healthcheck: environment.healthcheck.as_ref().map(healthcheck),
        ..Container::default()
    }
}

fn healthcheck(part: &HealthcheckPart) -> Healthcheck {
    let ms = |seconds: f64| (seconds.max(0.0) * 1000.0) as u64;
    Healthcheck {
        command: part.command.clone(),
        interval_ms: ms(part.interval_sec),
        timeout_ms: ms(part.timeout_sec).max(1),
        start_period_ms: ms(part.start_period_sec),
        start_interval_ms: ms(part.start_interval_sec),
        retries: part.retries,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}
