//! Modes and the providers that serve them.

use super::Loader;
use crate::suite::file::{ModeSpec, Modes, ProviderSpec, SuiteFile};
use crate::suite::file_error::suggestion;
use assize_contracts::{ConfigError, JsonMap, ModeResolver, ProviderSource};
use assize_engine::Mode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Loader<'_> {
    pub(super) fn mode_resolver(&mut self, file: &SuiteFile) -> Option<Arc<dyn ModeResolver>> {
        match (&file.mode_resolver, &file.modes) {
            (Some(name), Modes::Names(_)) => {
                let resolvers = self.plugins.mode_resolvers();
                if let Some(resolver) = resolvers.get(name) {
                    return Some(Arc::clone(resolver));
                }
                let known: Vec<&str> = resolvers.keys().map(String::as_str).collect();
                self.unknown(&["mode_resolver"], "mode resolver", name, &known);
            }
            (Some(_), Modes::Definitions(_)) => {
                let message =
                    "modes are defined here, so there is nothing for a mode resolver to do";
                self.report(&["mode_resolver"], message);
            }
            (None, Modes::Names(_)) => {
                let error = self.document.error(
                    &["modes"],
                    "modes that are only names need a `mode_resolver`",
                );
                self.errors
                    .push(error.hint("define them instead: `modes: { plain: {}, other: { … } }`"));
            }
            (None, Modes::Definitions(_)) => {}
        }
        None
    }

    pub(super) fn modes(&mut self, file: &SuiteFile) -> Vec<Mode> {
        let defined: Vec<(String, ModeSpec)> = match &file.modes {
            Modes::Definitions(definitions) => definitions.clone(),
            Modes::Names(names) => names
                .iter()
                .map(|name| (name.clone(), ModeSpec::default()))
                .collect(),
        };
        let names: Vec<&str> = defined.iter().map(|(name, _)| name.as_str()).collect();
        for name in &self.selection.modes {
            if !names.contains(&name.as_str()) {
                let mut error = self
                    .document
                    .error(&["modes"], format!("unknown mode `{name}`"));
                error.hint = suggestion(name, &names);
                self.errors.push(error);
            }
        }
        for (number, name) in names.iter().enumerate() {
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                self.report(
                    &["modes", name],
                    format!("found the mode name {name:?}, expected visible text"),
                );
            }
            if names[..number].contains(name) {
                self.report(&["modes"], format!("the mode `{name}` is given twice"));
            }
        }
        let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let is_chosen =
            |name: &String| self.selection.modes.is_empty() || self.selection.modes.contains(name);
        let (chosen, others): (Vec<_>, Vec<_>) =
            defined.into_iter().partition(|(name, _)| is_chosen(name));
        for (name, spec) in &others {
            self.surround_unchosen(file, name, spec);
        }
        let modes: Vec<Mode> = chosen
            .into_iter()
            .filter_map(|(name, spec)| self.mode(file, name, spec))
            .collect();
        self.refuse_shared_skills(&all);
        match self.selection.aa {
            true => self.twice(modes),
            false => modes,
        }
    }

    pub(super) fn mode(&mut self, file: &SuiteFile, name: String, spec: ModeSpec) -> Option<Mode> {
        let has_own = spec.provider.is_some();
        let environment = Arc::new(spec.variables());
        let sandbox = self.sandbox_of(file, &name, &spec);
        let provider = spec.provider.clone().or_else(|| file.provider.clone());
        if provider.is_none() && file.scenarios.is_none() && file.tasks.is_some() {
            // Tasks are executed by runners.
            return Some(Mode {
                overrides: Arc::new(spec.provider_overrides),
                environment,
                system_instructions: spec.system_instructions,
                sandbox,
                name,
                ..Mode::default()
            });
        }
        let Some(provider) = provider else {
            let error = self
                .document
                .error(&["modes", &name], format!("mode `{name}` has no provider"));
            self.errors
                .push(error.hint("name one for all modes: `provider: { uses: simulated }`"));
            return None;
        };
        let keys: Vec<&str> = if has_own {
            vec!["modes", &name, "provider"]
        } else {
            vec!["provider"]
        };
        let mut on_top = spec.provider_overrides.clone();
        self.surround(file, (&name, &spec), &provider, &mut on_top);
        let overrides = self.overrides(&keys, &name, &provider, on_top);
        Some(Mode {
            provider: provider.uses,
            overrides: Arc::new(overrides),
            environment,
            system_instructions: spec.system_instructions,
            sandbox,
            name,
            ..Mode::default()
        })
    }

    /// The provider's settings with the mode's on top, looked at by the provider itself.
    pub(super) fn overrides(
        &mut self,
        keys: &[&str],
        mode: &str,
        provider: &ProviderSpec,
        on_top: JsonMap,
    ) -> JsonMap {
        let mut overrides = provider.overrides.clone();
        let own_keys: Vec<String> = on_top.keys().cloned().collect();
        overrides.extend(on_top);
        let Some(source) = self.provider_source(keys, &provider.uses) else {
            return overrides;
        };
        if let Err(mut found) = source.instance().check_overrides(&overrides) {
            let from_mode = found.path.first().is_some_and(|key| own_keys.contains(key));
            let surrounding = self.surrounding_in(mode, &found.path);
            let keys = if let Some(key) = surrounding {
                found.path.remove(0);
                self.place_of_surroundings(mode, key)
            } else if from_mode {
                vec!["modes", mode, "provider_overrides"]
            } else {
                keys.to_vec()
            };
            self.report_plugin_error(&keys, found);
        }
        overrides
    }

    pub(super) fn report_plugin_error(&mut self, keys: &[&str], found: ConfigError) {
        let all: Vec<String> = keys
            .iter()
            .map(|key| (*key).to_owned())
            .chain(found.path)
            .collect();
        let error = self.document.explain(&all, &found.message, &[]);
        self.add(error.with_hint(found.hint));
    }

    pub(super) fn providers(&self, modes: &[Mode]) -> BTreeMap<String, ProviderSource> {
        let used = |name: &String| modes.iter().any(|mode| mode.provider == *name);
        let sources = self.plugins.providers().iter().chain(&self.recipes);
        sources
            .filter(|(name, _)| used(name))
            .map(|(name, source)| (name.clone(), source.clone()))
            .collect()
    }

    pub(super) fn limits(
        &mut self,
        file: &SuiteFile,
        providers: &BTreeMap<String, ProviderSource>,
    ) {
        let runners = file.runners.iter().map(|runner| &runner.id);
        let known: Vec<&str> = providers
            .keys()
            .chain(runners)
            .map(String::as_str)
            .collect();
        for (name, limit) in &file.execution.limits {
            if !known.contains(&&**name) && self.selection.modes.is_empty() {
                let kind = match file.runners.is_empty() {
                    true => "provider",
                    false => "provider or runner",
                };
                self.unknown(&["execution", "limits", name], kind, name, &known);
            }
            if *limit == 0 {
                let message = format!("`execution.limits.{name}`: found 0, expected at least 1");
                self.report(&["execution", "limits", name], message);
            }
        }
        if self.selection.concurrency.or(file.execution.concurrency) == Some(0) {
            self.report(
                &["execution", "concurrency"],
                "`execution.concurrency`: found 0, expected at least 1",
            );
        }
        if file.execution.repetitions == Some(0) && self.selection.repetitions.is_none() {
            self.report(
                &["execution", "repetitions"],
                "`execution.repetitions`: found 0, expected at least 1",
            );
        }
        if file.execution.timeout_default_ms == Some(0) {
            self.report(
                &["execution", "timeout_default_ms"],
                "`execution.timeout_default_ms`: found 0, expected at least 1 ms",
            );
        }
    }
}
