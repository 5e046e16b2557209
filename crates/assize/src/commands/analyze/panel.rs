//! The analyzers that were asked for: our own, and those of plugins.

use crate::commands::{UsageError, plugin_programs};
use crate::suite::suggest;
use anyhow::{Context, Result};
use assize_contracts::{AnalysisResult, Analyzer, BaseScenario, Plugins, SessionTrace};
use assize_measures::analyzers::{ALL, FIVE, TraceAnalyzer};
use assize_plugins::PluginHost;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

pub(super) struct Panel {
    /// Called directly, because gigabytes of sessions leave no time for more.
    own: Vec<TraceAnalyzer>,
    plugged: Option<Plugged>,
}

/// Analyzers of plugins, and what they live by.
struct Plugged {
    analyzers: Vec<Arc<dyn Analyzer>>,
    runtime: Runtime,
    _programs: Option<PluginHost>,
}

/// The findings of every analyzer, and the errors of those that failed.
#[derive(Default)]
pub(super) struct Explained {
    pub(super) results: BTreeMap<String, AnalysisResult>,
    pub(super) errors: Vec<String>,
}

impl Panel {
    /// The analyzers with these names, or the usual five. Plugins are started only where one of them is needed.
    pub(super) fn new(names: &[String], plugins: &Plugins, suite: Option<&Path>) -> Result<Self> {
        if names.is_empty() {
            return Ok(Self {
                own: FIVE.to_vec(),
                plugged: None,
            });
        }
        Self::of_names(names, plugins, suite)
    }

    /// The same for logs of agents: without names, everything there is.
    pub(super) fn for_logs(
        names: &[String],
        plugins: &Plugins,
        suite: Option<&Path>,
    ) -> Result<Self> {
        match names.is_empty() {
            true => Ok(Self {
                own: ALL.to_vec(),
                plugged: None,
            }),
            false => Self::of_names(names, plugins, suite),
        }
    }

    fn of_names(names: &[String], plugins: &Plugins, suite: Option<&Path>) -> Result<Self> {
        let find_own = |name: &&String| ALL.iter().find(|own| own.name() == *name).copied();
        let others: Vec<&String> = names
            .iter()
            .filter(|name| find_own(name).is_none())
            .collect();
        Ok(Self {
            own: names.iter().filter_map(|name| find_own(&name)).collect(),
            plugged: match others.is_empty() {
                true => None,
                false => Some(Plugged::new(&others, plugins, suite)?),
            },
        })
    }

    pub(super) fn explain(
        &self,
        trace: &SessionTrace,
        scenario: &BaseScenario,
        mode: &str,
    ) -> Explained {
        let mut explained = Explained::default();
        for analyzer in &self.own {
            let result = analyzer.find(trace);
            explained.results.insert(analyzer.name().to_owned(), result);
        }
        let Some(plugged) = &self.plugged else {
            return explained;
        };
        for analyzer in &plugged.analyzers {
            let name = analyzer.name().to_owned();
            let found = analyzer.analyze(trace, scenario, mode);
            match plugged.runtime.block_on(found) {
                Ok(result) => {
                    explained.results.insert(name, result);
                }
                Err(error) => explained.errors.push(format!("analyzer `{name}`: {error}")),
            }
        }
        explained
    }
}

impl Plugged {
    fn new(names: &[&String], plugins: &Plugins, suite: Option<&Path>) -> Result<Self> {
        let compiled_in = |name: &&&String| plugins.analyzers().contains_key(**name);
        let programs = match names.iter().all(|name| compiled_in(&name)) {
            true => None,
            false => plugin_programs(suite)?,
        };
        let served = programs
            .as_ref()
            .map(PluginHost::plugins)
            .unwrap_or_default();
        let find = |name: &&String| {
            let known = plugins.analyzers().get(*name);
            known
                .or_else(|| served.analyzers().get(*name))
                .cloned()
                .ok_or_else(|| {
                    let all = plugins.analyzers().keys().chain(served.analyzers().keys());
                    let all: Vec<&str> = all.map(String::as_str).collect();
                    UsageError {
                        message: format!("unknown analyzer `{name}`"),
                        hint: suggest(name, &all),
                    }
                })
        };
        Ok(Self {
            analyzers: names.iter().map(find).collect::<Result<_, _>>()?,
            runtime: Runtime::new().context("cannot start the runtime")?,
            _programs: programs,
        })
    }
}
