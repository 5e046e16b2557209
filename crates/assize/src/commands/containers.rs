//! Containers before and after runs: engines and images that a run needs, and what killed runs left.

use super::preflight::Obstacle;
use crate::terminal::{plain, say};
use assize_agents::container::{image_source, kind};
use assize_contracts::{Container, ContainerNetwork, Sandbox, with_causes};
use assize_engine::{Mode, ProfileSuite};
use assize_process::Error;
use assize_process::container::{
    Engine, EngineKind, ImageSource, engine_for, image_for, own_program,
};

/// True if every trial of the mode is in a container.
pub(super) fn is_housed(profile: &ProfileSuite, mode: &Mode) -> bool {
    let mut walls = profile.scenarios.iter().map(|scenario| {
        let own = scenario.sandbox.as_ref();
        own.unwrap_or(&mode.sandbox)
    });
    !profile.scenarios.is_empty() && walls.all(|wall| matches!(wall, Sandbox::Container(_)))
}

/// Finds the engines and provides the images of a run, so that its first trials do not wait for them.
pub(super) async fn prepare(profile: &ProfileSuite) -> Vec<Obstacle> {
    let mut obstacles = Vec::new();
    let mut seen: Vec<&Container> = Vec::new();
    for container in containers(profile) {
        if seen.contains(&container) {
            continue;
        }
        seen.push(container);
        if let Err(error) = provide(container, profile).await {
            let obstacle = obstacle(&error);
            if !obstacles.contains(&obstacle) {
                obstacles.push(obstacle);
            }
        }
    }
    obstacles
}

async fn provide(container: &Container, profile: &ProfileSuite) -> Result<(), Error> {
    let engine = engine_for(kind(container.engine)).await?;
    if container.network == ContainerNetwork::Model {
        own_program()?;
    }
    let source = image_source(container, &profile.places.suite);
    let is_there = match &source {
        ImageSource::Named(name) => engine.image_id(name).await.is_some(),
        ImageSource::Built { .. } => false,
    };
    if !is_there {
        say(plain(&match &source {
            ImageSource::Named(name) => format!("fetching the image `{name}`"),
            ImageSource::Built { context, .. } => {
                format!(
                    "building the image of `{}`, unless it is there",
                    context.display()
                )
            }
        }));
    }
    image_for(&engine, &source).await.map(drop)
}

/// The containers that trials of the suite are in.
fn containers(profile: &ProfileSuite) -> Vec<&Container> {
    let of_scenarios = profile
        .scenarios
        .iter()
        .filter_map(|scenario| scenario.sandbox.as_ref());
    let has_common = profile
        .scenarios
        .iter()
        .any(|scenario| scenario.sandbox.is_none());
    let of_modes = profile
        .modes
        .iter()
        .filter(|_| has_common)
        .map(|mode| &*mode.sandbox);
    let walls = of_modes.chain(of_scenarios);
    walls.filter_map(container_of).collect()
}

fn container_of(wall: &Sandbox) -> Option<&Container> {
    match wall {
        Sandbox::Container(container) => Some(container),
        _ => None,
    }
}

fn obstacle(error: &Error) -> Obstacle {
    Obstacle {
        message: with_causes(error),
        hint: error
            .hint()
            .unwrap_or("`assize doctor` says which engines answer")
            .to_owned(),
    }
}

/// Removes containers that killed runs left, of every engine that answers. Says which.
pub(super) fn sweep() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for kind in EngineKind::ALL {
            let Ok(engine) = Engine::find(Some(kind)).await else {
                continue;
            };
            for name in engine.sweep().await?.removed {
                say(plain(&format!("removed the container {name}")));
            }
        }
        Ok(())
    })
}
