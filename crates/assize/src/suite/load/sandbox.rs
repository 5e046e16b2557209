//! The wall around agents: which one counts for a mode, what it hides, and what cannot be asked of it.

use super::capture::Proxied;
use super::containers::{self, SuiteSide};
use super::scenarios::files_matching;
use super::{Loader, directory_of};
use crate::suite::document::Document;
use crate::suite::file::{ModeSpec, RunnerSpec, SuiteFile};
use crate::suite::file_error::FileError;
use crate::suite::scenario::LoadedScenario;
use assize_contracts::{
    ContainerNetwork, Guard, GuardNetwork, Sandbox, SandboxPlaces, Sandboxing, WallRecord,
    WorkspaceSpec,
};
use assize_engine::{Mode, ProfileSuite};
use assize_process::GuardVersion;
use assize_process::guard::resolved;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Loader<'_> {
    /// The wall of a mode: its own, else the suite's, else `guard`.
    pub(super) fn sandbox_of(
        &mut self,
        file: &SuiteFile,
        name: &str,
        spec: &ModeSpec,
    ) -> Arc<Sandbox> {
        let keys: &[&str] = match spec.sandbox {
            Some(_) => &["modes", name, "sandbox"],
            None => &["sandbox"],
        };
        let sandbox = spec.sandbox.clone().or_else(|| file.sandbox.clone());
        let sandbox = sandbox.unwrap_or_default();
        let has_own_images = file
            .scenarios
            .as_ref()
            .is_some_and(|scenarios| !scenarios.harbor.is_empty());
        let directory = directory_of(self.document.path());
        let side = SuiteSide {
            directory: &directory,
            has_own_images,
        };
        if let Some(error) = refusal(&self.document, keys, &sandbox, &side) {
            self.add(error);
        }
        Arc::new(sandbox)
    }

    /// Refuses what no wall can do: to show what trials are judged by, and to reach a model that is not captured.
    pub(super) fn check_sandboxes(
        &mut self,
        modes: &[Mode],
        scenarios: &[LoadedScenario],
        places: &SandboxPlaces,
        proxy: Option<&Proxied>,
    ) {
        for mode in modes {
            let keys = self.keys_of_sandbox(mode);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let errors = [
                shown_answer(&self.document, &keys, &mode.sandbox, places),
                self.unreachable_model(mode, &mode.sandbox, &keys, proxy),
                self.named_answer(mode, places),
            ];
            errors
                .into_iter()
                .flatten()
                .for_each(|found| self.add(found));
        }
        let directory = directory_of(self.document.path());
        let side = SuiteSide {
            directory: &directory,
            has_own_images: false,
        };
        for LoadedScenario { scenario, document } in scenarios {
            let Some(own) = &scenario.sandbox else {
                continue;
            };
            let found = [
                refusal(document, &["sandbox"], own, &side),
                shown_answer(document, &["sandbox"], own, places),
            ];
            found
                .into_iter()
                .flatten()
                .for_each(|found| self.add(found));
            for mode in modes {
                if let Some(mut found) = self.unreachable_model(mode, own, &["sandbox"], proxy) {
                    found = document
                        .error(&["sandbox"], found.message)
                        .hint(found.hint.unwrap_or_default());
                    self.add(found);
                }
            }
        }
    }

    /// The place of a mode's sandbox in the suite.
    fn keys_of_sandbox(&self, mode: &Mode) -> Vec<String> {
        let own = ["modes", &mode.name, "sandbox"];
        let mut value = Some(self.document.value());
        for key in own {
            value = value.and_then(|value| value.get(key));
        }
        match value {
            Some(_) => own.map(str::to_owned).to_vec(),
            None => vec!["sandbox".to_owned()],
        }
    }

    /// With `network: model` there must be a proxy to reach the model by.
    fn unreachable_model(
        &self,
        mode: &Mode,
        sandbox: &Sandbox,
        keys: &[&str],
        proxy: Option<&Proxied>,
    ) -> Option<FileError> {
        let Sandbox::Guard(Guard {
            network: GuardNetwork::Model,
            ..
        }) = sandbox
        else {
            return None;
        };
        let source = self.provider_named(&mode.provider)?;
        let provider = source.instance();
        if provider.sandboxing() != Sandboxing::Kept || !provider.has_agent_program() {
            return None;
        }
        if !proxy.is_some_and(|proxy| proxy.is_capturable(&*provider)) {
            let message = format!(
                "`network: model` leaves mode `{}` only the capture proxy, which its provider `{}` does not go through",
                mode.name, mode.provider
            );
            let error = self.document.error(keys, message);
            return Some(error.hint("add `capture: { proxy: on }` to the suite"));
        }
        let url = distant_server(&mode.overrides)?;
        let message = format!(
            "`network: model` cannot let mode `{}` reach the MCP server `{url}`: only servers on this machine (127.0.0.1, \
             localhost) stay reachable",
            mode.name
        );
        Some(
            self.document
                .error(keys, message)
                .hint("use `network: open`, or a server on this machine"),
        )
    }

    /// An agent whose command names what it is judged by.
    fn named_answer(&self, mode: &Mode, places: &SandboxPlaces) -> Option<FileError> {
        if matches!(*mode.sandbox, Sandbox::None) {
            return None;
        }
        let suite = places.suite.to_string_lossy();
        let mut texts = Vec::new();
        mode.overrides
            .values()
            .for_each(|value| collect_texts(value, &mut texts));
        let answer = texts.into_iter().find(|text| {
            let path = places.suite.join(text.replace("{suite}", &suite));
            let path = resolved(&path);
            places.answers.contains(&path) && path.is_file()
        })?;
        let message = format!(
            "the agent of mode `{}` is given `{answer}`, by which its trials are judged",
            mode.name
        );
        let error = self.document.error(&["modes", &mode.name], message);
        Some(error.hint("give it another file; with `sandbox: none` it can read everything"))
    }

    /// The places that are hidden from agents, and those that are never shown.
    pub(super) fn places(
        &self,
        file: &SuiteFile,
        directory: &Path,
        scenarios: &[LoadedScenario],
    ) -> SandboxPlaces {
        let suite = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let results = match &self.selection.results_dir {
            Some(given) => given.clone(),
            None => file.results_dir(&suite),
        };
        let mut answers = self.judging_files(file, &suite, scenarios);
        answers.insert(results.clone());
        answers.insert(file.results_dir(&suite));
        let answers: Vec<PathBuf> = answers.iter().map(|path| resolved(path)).collect();
        let mut hidden: BTreeSet<PathBuf> = answers.iter().cloned().collect();
        match can_be_hidden(&suite) {
            true => drop(hidden.insert(suite.clone())),
            // Only its own files, and the directories that they have below it.
            false => {
                let directories = answers.iter().filter_map(|answer| answer.parent());
                let below = directories.filter(|directory| {
                    directory.starts_with(resolved(&suite)) && can_be_hidden(directory)
                });
                hidden.extend(below.map(Path::to_owned));
            }
        }
        hidden.extend(git_directory(&suite));
        let workspaces = scenarios
            .iter()
            .filter_map(|loaded| loaded.scenario.workspace.as_ref());
        hidden.extend(workspaces.flat_map(|workspace| history_of(workspace, &suite)));
        SandboxPlaces {
            shown: tools_in(&hidden, &answers),
            hidden: hidden.into_iter().collect(),
            answers,
            suite,
        }
    }

    /// Files that show how trials are judged.
    fn judging_files(
        &self,
        file: &SuiteFile,
        suite: &Path,
        scenarios: &[LoadedScenario],
    ) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::from([suite.join(self.document.path())]);
        files.extend(std::path::absolute(self.document.path()));
        let scenario_patterns = file.scenarios.iter().flat_map(|spec| &spec.paths);
        let task_patterns = file.tasks.iter().flat_map(|spec| &spec.paths);
        for pattern in scenario_patterns.chain(task_patterns) {
            let found = files_matching(suite, pattern).unwrap_or_default();
            files.extend(found);
        }
        let cassette = file
            .capture
            .as_ref()
            .and_then(|spec| spec.cassette.as_ref());
        files.extend(cassette.map(|cassette| cassette.settings(suite).file));
        // Programs and files of scorers and evaluators.
        let mut texts = Vec::new();
        let scorer = file.scorer.iter().flat_map(|settings| settings.values());
        let evaluators = file.evaluators.iter();
        texts.extend(evaluators.clone().map(|evaluator| evaluator.uses.as_str()));
        let settings = evaluators.flat_map(|evaluator| evaluator.config.values());
        let settings = scorer.chain(settings);
        settings.for_each(|value| collect_texts(value, &mut texts));
        let named = texts.into_iter().map(|text| suite.join(text));
        files.extend(named.filter(|path| path.is_file()));
        for LoadedScenario { scenario, document } in scenarios {
            files.extend(std::path::absolute(document.path()));
            for check in &scenario.checks {
                let mut body = check;
                while let Some(inner) = body.get("not") {
                    body = inner;
                }
                let placed = body.pointer("/command/files").and_then(Value::as_object);
                let sources = placed
                    .into_iter()
                    .flatten()
                    .filter_map(|(_, source)| source.as_str());
                files.extend(sources.map(|source| suite.join(source)));
            }
            // Those of answers lie beside the scenario, those of checks are named from the suite.
            for schema in schema_files(document.value()) {
                files.insert(document.path().with_file_name(schema));
                files.insert(suite.join(schema));
            }
        }
        files
    }

    /// The walls that will be in effect, for the manifest.
    pub(super) fn walls(&self, file: &SuiteFile, profile: &ProfileSuite) -> Vec<WallRecord> {
        let machine = GuardVersion::of_this_machine();
        let mut records = Vec::new();
        for mode in &profile.modes {
            let Some((provider, sandboxing)) = self.sandboxing(file, mode) else {
                continue;
            };
            let mut record = |scenario: Option<&str>, sandbox: &Sandbox| {
                let wall = standing(sandbox, sandboxing, provider, &machine);
                records.push(WallRecord {
                    mode: mode.name.clone(),
                    scenario: scenario.map(str::to_owned),
                    ..wall
                });
            };
            // Tasks of others each have a container of their own.
            let own = profile.scenarios.iter().map(|scenario| &scenario.sandbox);
            let mut own = own.map(|own| own.as_ref().filter(|own| **own != *mode.sandbox));
            let is_used = profile.scenarios.is_empty() || own.any(|own| own.is_none());
            if is_used {
                record(None, &mode.sandbox);
            }
            for scenario in &profile.scenarios {
                if let Some(own) = scenario
                    .sandbox
                    .as_ref()
                    .filter(|own| **own != *mode.sandbox)
                {
                    record(Some(&scenario.id), own);
                }
            }
        }
        records
    }

    /// The extent to which a sandbox surrounds the agents of a mode. Absent where there is no agent that could do anything.
    fn sandboxing<'a>(&self, file: &'a SuiteFile, mode: &'a Mode) -> Option<(&'a str, Sandboxing)> {
        let is_used = |runner: &&RunnerSpec| mode.runners.values().any(|used| used.id == runner.id);
        let runners = file.runners.iter().filter(is_used);
        let of_runners = runners.filter_map(|runner| {
            let provider = runner
                .config
                .get("provider")
                .filter(|_| runner.uses == "agent")?;
            provider.as_str().or_else(|| provider.get("uses")?.as_str())
        });
        let providers = of_runners.chain([mode.provider.as_str()]);
        let found = providers.filter_map(|name| {
            let provider = self.provider_named(name)?.instance();
            Some((name, provider.sandboxing()))
        });
        let mut found: Vec<_> = found
            .filter(|(_, kind)| *kind != Sandboxing::NoProcess)
            .collect();
        // The weakest wall is what counts.
        found.sort_by_key(|(_, kind)| *kind == Sandboxing::Kept);
        found.first().copied()
    }
}

/// The reason why a sandbox cannot be used, at its place in the file.
fn refusal(
    document: &Document,
    keys: &[&str],
    sandbox: &Sandbox,
    side: &SuiteSide<'_>,
) -> Option<FileError> {
    match sandbox {
        Sandbox::Container(container) => containers::refusal(document, keys, container, side),
        Sandbox::Guard(guard) if guard.hide.iter().any(|path| path == Path::new("/")) => {
            let error = document.error(keys, "`hide` names `/`, without which nothing can run");
            Some(error.hint("name the directories that agents must not read"))
        }
        // Taken as a directory of that name, it would hide nothing.
        Sandbox::Guard(guard) => {
            let is_home = |path: &&PathBuf| path.starts_with("~");
            let path = guard.hide.iter().chain(&guard.show).find(is_home)?;
            let message = format!(
                "found `{}`, expected a path: `~` is no home directory in suites",
                path.display()
            );
            let written = path.strip_prefix("~").unwrap_or(path).display();
            Some(
                document
                    .error(keys, message)
                    .hint(format!("write `${{env:HOME}}/{written}`")),
            )
        }
        _ => None,
    }
}

/// Names of files with schemas in a scenario, which are part of its checks once it is loaded.
fn schema_files(scenario: &Value) -> impl Iterator<Item = &str> {
    let own = ["output_schema", "outputSchema"].into_iter();
    let own = own.filter_map(|key| scenario.get(key));
    let checks = scenario.get("checks").and_then(Value::as_array);
    let of_checks = checks.into_iter().flatten().flat_map(|check| {
        let mut body = check;
        while let Some(inner) = body.get("not") {
            body = inner;
        }
        let kinds = ["/output/schema", "/file/schema"].into_iter();
        kinds.filter_map(|kind| body.pointer(kind))
    });
    own.chain(of_checks).filter_map(Value::as_str)
}

/// A path that a suite shows must exist, and must not be one by which trials are judged.
fn shown_answer(
    document: &Document,
    keys: &[&str],
    sandbox: &Sandbox,
    places: &SandboxPlaces,
) -> Option<FileError> {
    let Sandbox::Guard(guard) = sandbox else {
        return None;
    };
    guard.show.iter().find_map(|shown| {
        let path = resolved(&places.suite.join(shown));
        let name = shown.display();
        if !path.exists() {
            let error = document.error(keys, format!("`show` names `{name}`, which is not there"));
            return Some(error.hint("paths are relative to the suite file"));
        }
        let is_touched =
            |answer: &&PathBuf| answer.starts_with(&path) || path.starts_with(answer);
        let answer = places.answers.iter().find(is_touched)?;
        let answer = answer.strip_prefix(resolved(&places.suite)).unwrap_or(answer);
        let message = format!(
            "`show` names `{name}`, which would show agents `{}`: what trials are judged by stays hidden",
            answer.display()
        );
        let error = document.error(keys, message);
        Some(error.hint("show single files or directories without scenarios, checks and runs"))
    })
}

/// The wall that is in effect, in words, and what weakens it.
fn standing(
    sandbox: &Sandbox,
    sandboxing: Sandboxing,
    provider: &str,
    machine: &Result<GuardVersion, String>,
) -> WallRecord {
    const OPEN: &str = "they could read the checks, the answers and other trials";
    let without = |why: String| WallRecord {
        sandbox: "none".to_owned(),
        words: "none".to_owned(),
        caution: Some(format!("Agents ran without a sandbox, {why}: {OPEN}.")),
        ..WallRecord::default()
    };
    match (sandbox, sandboxing, machine) {
        (Sandbox::None, _, _) => without("as the suite says (`sandbox: none`)".to_owned()),
        (_, Sandboxing::OutOfReach, _) => without(format!(
            "because the provider `{provider}` starts them by itself"
        )),
        (Sandbox::Guard(_), _, Err(reason)) => without(format!("because {reason}")),
        (Sandbox::Guard(guard), _, Ok(version)) => {
            let is_limited = guard.network == GuardNetwork::Model && version.limits_ports();
            let mut missing = version.missing();
            missing.retain(|words| guard.network == GuardNetwork::Model || !words.contains("TCP"));
            WallRecord {
                sandbox: "guard".to_owned(),
                words: match is_limited {
                    true => "guard, TCP limited to the proxy's port".to_owned(),
                    false => "guard".to_owned(),
                },
                version: Some(version.0),
                caution: (!missing.is_empty()).then(|| {
                    let missing = missing.join("; ");
                    format!("The sandbox around agents is not whole on this kernel: {missing}.")
                }),
                ..WallRecord::default()
            }
        }
        (other, _, _) => WallRecord {
            sandbox: other.name().to_owned(),
            words: match other {
                Sandbox::Container(container) => in_container(container.network).to_owned(),
                _ => other.name().to_owned(),
            },
            ..WallRecord::default()
        },
    }
}

fn in_container(network: ContainerNetwork) -> &'static str {
    match network {
        ContainerNetwork::Open => "container",
        ContainerNetwork::Model => "container, no network but the model",
        ContainerNetwork::None => "container, no network",
    }
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

/// An MCP server elsewhere, by its URL without what may be secret in it.
fn distant_server(overrides: &serde_json::Map<String, Value>) -> Option<String> {
    let servers = overrides.get("mcp_servers");
    let servers = servers
        .or_else(|| overrides.get("mcpServers"))?
        .as_object()?;
    let mut urls = servers
        .values()
        .filter_map(|server| server.get("url")?.as_str());
    urls.find_map(|url| {
        let host = url.split_once("://")?.1.split(['/', '?']).next()?;
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let is_near = ["127.", "localhost", "[::1]"]
            .iter()
            .any(|near| host.starts_with(near));
        (!is_near).then(|| host.to_owned())
    })
}

fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute())?;
    Some(resolved(&home))
}

/// The user's home and the whole system hold tools as well, so they cannot be hidden.
fn can_be_hidden(directory: &Path) -> bool {
    let directory = resolved(directory);
    directory != Path::new("/") && home().is_none_or(|home| home != directory)
}

/// The directory in which git keeps the history of a directory: files hidden in the latter lie there, too.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let directory = resolved(directory);
    let found = directory.ancestors().map(|parent| parent.join(".git"));
    let git = found.into_iter().find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    // A work tree: the file says `gitdir: /path/of/.git/worktrees/NAME`.
    let text = std::fs::read_to_string(&git).ok()?;
    let kept = directory.join(text.trim().strip_prefix("gitdir:")?.trim());
    let mut parents = kept.ancestors();
    let whole = parents.find(|parent| parent.ends_with(".git"));
    Some(whole.map_or_else(|| kept.clone(), Path::to_owned))
}

/// Repositories that workspaces come from: later commits and the work tree may hold the solution.
fn history_of(workspace: &WorkspaceSpec, suite: &Path) -> Vec<PathBuf> {
    let Some(git) = &workspace.git else {
        return Vec::new();
    };
    let repository = suite.join(&git.repo);
    let mut hidden = Vec::from_iter(git_directory(&repository));
    if can_be_hidden(&repository) {
        hidden.push(repository);
    }
    hidden
}

/// The user's home and directories of `PATH` inside hidden ones, each with what its programs need beside them: a Python
/// environment inside the suite, for example.
fn tools_in(hidden: &BTreeSet<PathBuf>, answers: &[PathBuf]) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let hidden: Vec<PathBuf> = hidden.iter().map(|path| resolved(path)).collect();
    let holds_answers = |path: &Path| answers.iter().any(|answer| answer.starts_with(path));
    let is_hidden = |path: &Path| hidden.iter().any(|hidden| path.starts_with(hidden));
    // A home below the suite is still the user's.
    let mut tools: Vec<PathBuf> = home()
        .filter(|home| is_hidden(home) && !holds_answers(home))
        .into_iter()
        .collect();
    for entry in std::env::split_paths(&path).filter(|entry| entry.is_absolute()) {
        let entry = resolved(&entry);
        let around = entry.parent().filter(|around| is_hidden(around));
        let around = around.filter(|around| !hidden.iter().any(|hidden| hidden == around));
        let shown = around.unwrap_or(&entry);
        if is_hidden(&entry) && entry.is_dir() && !holds_answers(shown) {
            tools.push(shown.to_owned());
        }
    }
    tools
}

/// Paths that a suite hides and that are not there, which may be mistakes of writing.
pub(super) fn hidden_in_vain(profile: &ProfileSuite, suite: &Path) -> Vec<String> {
    let of_modes = profile.modes.iter().map(|mode| &*mode.sandbox);
    let of_scenarios = profile.scenarios.iter();
    let of_scenarios = of_scenarios.filter_map(|scenario| scenario.sandbox.as_ref());
    let hidden = of_modes
        .chain(of_scenarios)
        .flat_map(|sandbox| match sandbox {
            Sandbox::Guard(guard) => guard.hide.as_slice(),
            _ => &[],
        });
    let missing = hidden.filter(|path| !suite.join(path).exists());
    let missing: BTreeSet<&PathBuf> = missing.collect();
    let in_words = |path: &PathBuf| {
        format!(
            "`hide` names `{}`, which is not there; paths are relative to the suite",
            path.display()
        )
    };
    missing.into_iter().map(in_words).collect()
}

/// Weaknesses of the sandboxes, printed before anything runs. Modes that share one are named together.
pub(super) fn remarks(walls: &[WallRecord]) -> Vec<String> {
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    for wall in walls {
        let Some(caution) = &wall.caution else {
            continue;
        };
        let text = caution
            .replace("ran without", "run without")
            .replace("could read", "can read");
        match remarks.iter_mut().find(|(known, _)| *known == text) {
            Some((_, modes)) => modes.push(&wall.mode),
            None => remarks.push((text, vec![&wall.mode])),
        }
    }
    let in_words = |(text, mut modes): (String, Vec<&str>)| {
        modes.dedup();
        let mut text = text.trim_end_matches('.').to_owned();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let modes: Vec<String> = modes.iter().map(|mode| format!("`{mode}`")).collect();
        format!("{text} ({})", modes.join(", "))
    };
    remarks.into_iter().map(in_words).collect()
}
