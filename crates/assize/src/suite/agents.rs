//! The agents that a suite runs, for looking at them without running anything; and recipes by themselves.

use super::document::Document;
use super::environment::interpolate;
use super::file::{LATER, ModeSpec, Modes, ProviderSpec, SuiteFile};
use super::file_error::{FileError, SuiteError};
use super::load::directory_of;
use assize_agents::{AcpProvider, CommandProvider, Recipe};
use assize_contracts::{ConfigError, JsonMap, PermissionConfig, SessionProvider};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An agent, and what a suite says about it.
pub(crate) struct Agent {
    pub(crate) recipe: Recipe,
    pub(crate) provider: Arc<dyn SessionProvider>,
    pub(crate) settings: JsonMap,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) permissions: PermissionConfig,
    /// The model when the suite names one.
    pub(crate) model: Option<String>,
    /// Programs with a relative path lie here.
    pub(crate) directory: PathBuf,
    /// The modes that run it.
    pub(crate) modes: Vec<String>,
}

impl Agent {
    /// By a recipe alone.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self {
            provider: Arc::new(CommandProvider::with_recipe(recipe.clone())),
            permissions: PermissionConfig {
                auto_approve: recipe.approves_everything(),
                ..PermissionConfig::default()
            },
            recipe,
            settings: JsonMap::new(),
            environment: BTreeMap::new(),
            model: None,
            directory: PathBuf::from("."),
            modes: Vec::new(),
        }
    }
}

/// The agents of a file: those that the modes of a suite run by recipes or `acp`, each once; or the one that a recipe is about.
pub(crate) fn agents_of(path: &Path) -> Result<Vec<Agent>, SuiteError> {
    let document = Document::read(path)?;
    let is_recipe = document.value().get("command").is_some();
    if is_recipe {
        return Ok(vec![Agent::new(read_recipe(path)?)]);
    }
    let (document, _) = interpolate(document).map_err(SuiteError)?;
    let mut file: SuiteFile = document.read_as(LATER)?;
    // Values that make no modes are refused when the suite is loaded.
    let _ = super::ablation::expand(&mut file, &directory_of(path));
    let mut agents: Vec<Agent> = Vec::new();
    for (mode, spec) in modes_of(&file) {
        let Some(provider) = spec.provider.as_ref().or(file.provider.as_ref()) else {
            continue;
        };
        let in_file = |found| explain(&document, &["modes", &mode], found);
        let Some(mut agent) = agent(provider, &spec, &directory_of(path), in_file)? else {
            continue;
        };
        agent.model = file.models.first().cloned();
        agent.permissions = PermissionConfig {
            auto_approve: file.permissions.auto_approve,
            allowed_tools: file.permissions.allowed_tools.clone(),
        };
        let is_same = |known: &&mut Agent| {
            known.recipe.name == agent.recipe.name
                && known.settings == agent.settings
                && known.environment == agent.environment
        };
        match agents.iter_mut().find(is_same) {
            Some(known) => known.modes.push(mode),
            None => agents.push(Agent {
                modes: vec![mode],
                ..agent
            }),
        }
    }
    Ok(agents)
}

/// Reads a recipe of the suite's author.
pub(crate) fn read_recipe(path: &Path) -> Result<Recipe, FileError> {
    let document = Document::read(path)?;
    Recipe::from_value(document.value()).map_err(|found| explain(&document, &[], found))
}

fn explain(document: &Document, keys: &[&str], found: ConfigError) -> FileError {
    let keys = keys.iter().map(|key| (*key).to_owned());
    let keys: Vec<String> = keys.chain(found.path).collect();
    let error = document.explain(&keys, &found.message, &[]);
    error.with_hint(found.hint)
}

/// A recipe is named by its file, so that it is not taken for a provider.
pub(crate) fn is_path(uses: &str) -> bool {
    let endings = [".yaml", ".yml", ".toml", ".json"];
    uses.contains('/') || endings.iter().any(|ending| uses.ends_with(ending))
}

fn modes_of(file: &SuiteFile) -> Vec<(String, ModeSpec)> {
    match &file.modes {
        Modes::Definitions(definitions) => definitions.clone(),
        Modes::Names(names) => {
            let named = |name: &String| (name.clone(), ModeSpec::default());
            names.iter().map(named).collect()
        }
    }
}

/// None for what is no agent with a recipe.
fn agent(
    provider: &ProviderSpec,
    mode: &ModeSpec,
    directory: &Path,
    in_file: impl Fn(ConfigError) -> FileError,
) -> Result<Option<Agent>, FileError> {
    let mut settings = provider.overrides.clone();
    settings.extend(mode.provider_overrides.clone());
    let mut built_in = Recipe::built_in().iter();
    let recipe = match provider.uses.as_str() {
        "acp" => AcpProvider::recipe(&settings).map_err(in_file)?,
        uses if is_path(uses) => read_recipe(&directory.join(uses))?,
        uses => match built_in.find(|recipe| recipe.name == uses) {
            Some(recipe) => recipe.clone(),
            None => return Ok(None),
        },
    };
    let mut agent = Agent::new(recipe);
    if provider.uses == "acp" {
        agent.provider = Arc::new(AcpProvider::default());
    }
    Ok(Some(Agent {
        settings,
        environment: mode.variables(),
        directory: directory.to_owned(),
        ..agent
    }))
}
