//! The plugins a suite names: scorer, collectors, analyzers, hooks; and the programs that serve some of them.

use super::Loader;
use super::judge::uses_judge;
use crate::suite::document::Document;
use crate::suite::file::{LATER, SuiteFile};
use crate::suite::file_error::{FileError, SuiteError};
use crate::suite::hooks::HooksSpec;
use crate::suite::plugin_programs::PluginEntryError;
use crate::suite::scenario::LoadedScenario;
use assize_contracts::{Analyzer, Collector, JsonMap, RunHooks, Scorer};
use assize_engine::Mode;
use assize_measures::make_scorer;
use assize_plugins::{PluginHost, PluginSpec, Unstarted};
use assize_secrets::Secrets;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DEFAULT_COLLECTORS: [&str; 4] = ["token", "latency", "cost", "tool_calls"];

/// Starts the plugin programs of a suite. Their services can be named like everything built in.
pub(super) fn start_programs(
    document: &Document,
    file: &SuiteFile,
) -> Result<Option<PluginHost>, SuiteError> {
    if file.plugins.is_empty() {
        return Ok(None);
    }
    let directory = super::directory_of(document.path());
    let mut errors = Vec::new();
    let mut specs: Vec<PluginSpec> = Vec::new();
    for (number, entry) in file.plugins.iter().enumerate() {
        let number = number.to_string();
        match entry.spec(&directory) {
            Err(PluginEntryError { key, message }) => {
                errors.push(document.error(&["plugins", &number, key], message));
            }
            Ok(spec) if specs.iter().any(|other| other.id == spec.id) => {
                let message = format!("a second plugin has the id `{}`", spec.id);
                errors.push(document.error(&["plugins", &number, "id"], message));
            }
            Ok(spec) => specs.push(spec),
        }
    }
    if !errors.is_empty() {
        return Err(SuiteError(errors));
    }
    let mut host = PluginHost::new().map_err(|error| {
        document.error(&["plugins"], format!("cannot start a runtime: {error}"))
    })?;
    for Unstarted { number, error } in host.start(specs) {
        errors.push(FileError {
            hint: error.hint,
            ..document.error(&["plugins", &number.to_string()], error.message)
        });
    }
    match errors.is_empty() {
        true => Ok(Some(host)),
        false => Err(SuiteError(errors)),
    }
}

impl Loader<'_> {
    pub(super) fn scorer(
        &mut self,
        file: &SuiteFile,
        judge: Option<&JsonMap>,
        scenarios: &[LoadedScenario],
        secrets: &Secrets,
    ) -> Option<Arc<dyn Scorer>> {
        let settings = self.scorer_settings(file, judge, secrets)?;
        if !uses_judge(&settings) {
            self.forgotten_rubric(&settings, scenarios);
        }
        if settings.contains_key("composite")
            && let Some(key) = settings.keys().find(|key| *key != "composite")
        {
            let message = format!("found `{key}` beside `composite`");
            let error = self.document.error(&["scorer", key], message);
            self.errors
                .push(error.hint("name all scorers in the list, each with its settings"));
        }
        let scorer = match make_scorer(self.plugins, &settings) {
            Ok(scorer) => scorer,
            Err(found) => {
                self.report_plugin_error(&[], found);
                return None;
            }
        };
        for LoadedScenario { scenario, document } in scenarios {
            if let Err(found) = scorer.check_scenario(scenario) {
                let error = document.explain(&found.path, &found.message, LATER);
                self.add(error.with_hint(found.hint));
            }
        }
        Some(scorer)
    }

    pub(super) fn collectors(
        &mut self,
        file: &SuiteFile,
        modes: &[Mode],
    ) -> Vec<Arc<dyn Collector>> {
        let runs_programs = modes.iter().any(|mode| {
            ["command", "acp"].contains(&mode.provider.as_str()) || self.has_recipe(&mode.provider)
        });
        let usual = DEFAULT_COLLECTORS
            .into_iter()
            .chain(runs_programs.then_some("program"));
        let names = match &file.collectors {
            Some(names) => names.clone(),
            None => usual.map(str::to_owned).collect(),
        };
        self.named("collector", "collectors", &names, self.plugins.collectors())
    }

    pub(super) fn analyzers(&mut self, file: &SuiteFile) -> Vec<Arc<dyn Analyzer>> {
        self.named(
            "analyzer",
            "analyzers",
            &file.analyzers,
            self.plugins.analyzers(),
        )
    }

    pub(super) fn named<T: ?Sized>(
        &mut self,
        kind: &str,
        key: &str,
        names: &[String],
        plugins: &BTreeMap<String, Arc<T>>,
    ) -> Vec<Arc<T>> {
        let mut found = Vec::new();
        for (number, name) in names.iter().enumerate() {
            match plugins.get(name) {
                Some(plugin) => found.push(Arc::clone(plugin)),
                None => {
                    let known: Vec<&str> = plugins.keys().map(String::as_str).collect();
                    self.unknown(&[key, &number.to_string()], kind, name, &known);
                }
            }
        }
        found
    }

    pub(super) fn hooks(&mut self, file: &SuiteFile, directory: &Path) -> Vec<Arc<dyn RunHooks>> {
        match &file.hooks {
            None => Vec::new(),
            Some(HooksSpec::Commands(spec)) => vec![Arc::new(spec.commands(directory))],
            Some(HooksSpec::Plugin(name)) => {
                let names = std::slice::from_ref(name);
                self.named("set of hooks", "hooks", names, self.plugins.hook_sets())
            }
        }
    }
}
