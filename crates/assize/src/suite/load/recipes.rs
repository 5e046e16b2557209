//! Recipes of agents: those that come with Assize, and files of the suite's author.

use super::{Loader, directory_of};
use crate::suite::agents::{is_path, read_recipe};
use crate::suite::file::SuiteFile;
use assize_agents::{CommandProvider, Recipe};
use assize_contracts::ProviderSource;
use assize_engine::Mode;
use assize_secrets::Secrets;
use serde_json::Value;
use std::sync::Arc;

impl Loader<'_> {
    /// The source of a known provider: a plugin by its name, a recipe by its path.
    pub(super) fn provider_named(&self, name: &str) -> Option<&ProviderSource> {
        let known = self.plugins.providers().get(name);
        known.or_else(|| self.recipes.get(name))
    }

    pub(super) fn provider_source(&mut self, keys: &[&str], uses: &str) -> Option<ProviderSource> {
        let known = self.plugins.providers().get(uses);
        if let Some(source) = known.or_else(|| self.recipes.get(uses)) {
            return Some(source.clone());
        }
        if !is_path(uses) {
            let known: Vec<&str> = self
                .plugins
                .providers()
                .keys()
                .map(String::as_str)
                .collect();
            let keys: Vec<&str> = keys.iter().copied().chain(["uses"]).collect();
            self.unknown(&keys, "provider", uses, &known);
            return None;
        }
        match read_recipe(&directory_of(self.document.path()).join(uses)) {
            Ok(recipe) => {
                self.recipe_keys.extend(recipe.keys.iter().cloned());
                let make = move || Arc::new(CommandProvider::with_recipe(recipe.clone())) as _;
                let source = ProviderSource::Factory(Arc::new(make));
                self.recipes.insert(uses.to_owned(), source.clone());
                Some(source)
            }
            Err(error) => {
                self.add(error);
                None
            }
        }
    }

    pub(super) fn has_recipe(&self, provider: &str) -> bool {
        let is_built_in = Recipe::built_in()
            .iter()
            .any(|recipe| recipe.name == provider);
        is_built_in || self.recipes.contains_key(provider)
    }

    /// Reads the recipes that only runners name.
    pub(super) fn runner_recipes(&mut self, file: &SuiteFile) {
        for (number, uses) in providers_of_runners(file) {
            if is_path(uses) {
                let number = number.to_string();
                self.provider_source(&["runners", &number, "config", "provider"], uses);
            }
        }
    }

    /// Credentials that agents get by their recipes must not reach any record.
    pub(super) fn keep_keys_secret(&self, file: &SuiteFile, modes: &[Mode], secrets: &Secrets) {
        // An agent that is reached in another way has the same keys.
        let runs = |mode: &Mode, recipe: &Recipe| {
            mode.provider == recipe.name
                || (mode.provider == "acp"
                    && mode.overrides.get("agent").and_then(Value::as_str) == Some(&recipe.name))
        };
        let is_used = |recipe: &&Recipe| {
            modes.iter().any(|mode| runs(mode, recipe))
                || providers_of_runners(file).any(|(_, uses)| uses == recipe.name)
        };
        let built_in = Recipe::built_in().iter().filter(is_used);
        let names = built_in.flat_map(|recipe| &recipe.keys);
        for name in names.chain(&self.recipe_keys) {
            if let Ok(value) = std::env::var(name) {
                secrets.add(name, value);
            }
        }
        let of_modes = modes
            .iter()
            .map(|mode| (mode.provider.as_str(), &*mode.overrides));
        let of_runners = file.runners.iter().filter_map(|runner| {
            let provider = runner.config.get("provider")?.as_object()?;
            Some((provider.get("uses")?.as_str()?, provider))
        });
        for (uses, settings) in of_modes.chain(of_runners) {
            let mut recipes = Recipe::built_in().iter();
            let recipe = recipes.find(|recipe| recipe.name == uses);
            let logins = recipe.map(|recipe| recipe.login_secrets(settings));
            for (number, secret) in logins.into_iter().flatten().enumerate() {
                let name = format!("login of {uses} ({})", number + 1);
                secrets.declare(&name, &secret, true);
            }
        }
    }
}

/// The providers that runners name, with the runners' places.
fn providers_of_runners(file: &SuiteFile) -> impl Iterator<Item = (usize, &str)> {
    let runners = file.runners.iter().enumerate();
    runners.filter_map(|(number, runner)| {
        let uses = runner.config.get("provider")?.get("uses")?.as_str()?;
        Some((number, uses))
    })
}
