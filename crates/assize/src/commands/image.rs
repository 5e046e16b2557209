//! `assize image build`: an agent on top of any image.

use crate::cli::{ImageAction, ImageArguments};
use crate::commands::{Obstructed, UsageError};
use crate::exit::Exit;
use crate::suite::{SuiteError, is_path, read_recipe, suggest};
use crate::terminal::{plain, print, say};
use anyhow::Result;
use assize_agents::Recipe;
use assize_agents::image::AgentLayer;
use assize_process::Error;
use assize_process::container::{EngineKind, engine_for};
use std::path::Path;

pub(crate) fn image(arguments: &ImageArguments) -> Result<Exit> {
    let ImageAction::Build(build) = &arguments.action;
    let recipe = recipe(&build.agent)?;
    let layer = AgentLayer {
        recipe: &recipe,
        version: build.agent_version.clone(),
        from: build.from.clone(),
        tag: build.tag.clone(),
        environment: variables(&build.env)?,
        uses_host_network: build.host_network,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let wanted = build.engine.as_deref().and_then(EngineKind::named);
    let built = runtime.block_on(async {
        let engine = engine_for(wanted).await?;
        say(format!("{} {}", engine.kind(), engine.version()));
        layer.build(&engine).await
    });
    let built = built.map_err(obstructed)?;
    if built.is_cached {
        say("the image is there already");
    }
    print(plain(&built.name));
    Ok(Exit::Done)
}

fn recipe(name: &str) -> Result<Recipe> {
    if is_path(name) {
        return Ok(read_recipe(Path::new(name)).map_err(SuiteError::from)?);
    }
    let known = Recipe::built_in();
    let found = known.iter().find(|recipe| recipe.name == name).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|recipe| recipe.name.as_str()).collect();
        UsageError {
            message: format!("unknown agent `{name}`"),
            hint: suggest(name, &names).or_else(|| Some(format!("known are {}", names.join(", ")))),
        }
        .into()
    })
}

/// Variables by name, with a value or with that of this process.
fn variables(given: &[String]) -> Result<Vec<(String, String)>> {
    let read = |text: &String| {
        if let Some((name, value)) = text.split_once('=') {
            return Ok((name.to_owned(), value.to_owned()));
        }
        let value = std::env::var(text).map_err(|_| UsageError {
            message: format!("the environment variable `{text}` is not set"),
            hint: Some(format!("write `--env {text}=VALUE`, or set it")),
        })?;
        Ok((text.clone(), value))
    };
    given.iter().map(read).collect()
}

fn obstructed(error: Error) -> anyhow::Error {
    match error.hint() {
        Some(hint) => Obstructed {
            message: error.to_string(),
            hint: hint.to_owned(),
        }
        .into(),
        None => error.into(),
    }
}
