//! From a suite file to the experiment that the engine runs. Everything that can be wrong is found here.

use super::document::Document;
use super::environment::interpolate;
use super::file::{LATER, ModeSpec, Modes, ProviderSpec, Scenarios, SuiteFile};
use super::hooks::HooksSpec;
use super::places;
use super::problem::{Problem, SuiteError, listed, suggestion};
use super::scenario::{self, Defaults, LoadedScenario};
use super::selection::Selection;
use assize_contracts::{
    JsonMap, OverrideProblem, PermissionConfig, Plugins, ProviderSource, Scorer,
};
use assize_engine::store::Secrets;
use assize_engine::{Execution, Mode, Output, ProfileSuite};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the suite file of a directory may be called.
pub(crate) const FILE_NAMES: [&str; 4] =
    ["assize.yaml", "assize.yml", "assize.toml", "assize.json"];
const DEFAULT_COLLECTORS: [&str; 4] = ["token", "latency", "cost", "tool_calls"];

/// A suite that can be run.
pub struct LoadedSuite {
    /// The suite file.
    pub path: PathBuf,
    /// Where its runs are kept.
    pub results_dir: PathBuf,
    /// The experiment.
    pub profile: ProfileSuite,
    /// What should be said before it runs.
    pub remarks: Vec<String>,
}

/// Loads a suite: a file, or a directory with an `assize.yaml` or the like.
pub fn load(
    path: &Path,
    selection: &Selection,
    plugins: &Plugins,
) -> Result<LoadedSuite, SuiteError> {
    let path = find(path)?;
    let raw = Document::read(&path)?;
    let file_as_written: Value = raw.value().clone();
    let (document, secrets) = interpolate(raw).map_err(SuiteError)?;
    let file: SuiteFile = document.read_as(LATER)?;
    let mut loader = Loader {
        document,
        plugins,
        selection,
        problems: Vec::new(),
    };
    let loaded = loader.load(file, &file_as_written, secrets);
    match loaded {
        Some(suite) if loader.problems.is_empty() => Ok(suite),
        _ => Err(SuiteError(loader.problems)),
    }
}

fn find(path: &Path) -> Result<PathBuf, Problem> {
    if !path.is_dir() {
        return match path.exists() {
            true => Ok(path.to_owned()),
            false => Err(Problem::new(path, "there is no such suite")
                .hint("`assize init` writes one that runs at once")),
        };
    }
    FILE_NAMES
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            Problem::new(
                path,
                format!(
                    "the directory has no suite, expected one of {}",
                    listed(&FILE_NAMES)
                ),
            )
            .hint("`assize init` writes one that runs at once")
        })
}

struct Loader<'a> {
    document: Document,
    plugins: &'a Plugins,
    selection: &'a Selection,
    problems: Vec<Problem>,
}

impl Loader<'_> {
    /// Goes on after a problem where it can, so that people see all of them at once.
    fn load(
        &mut self,
        file: SuiteFile,
        as_written: &Value,
        mut secrets: Secrets,
    ) -> Option<LoadedSuite> {
        let directory = directory_of(self.document.path());
        if file.version != 1 {
            let message = format!("found version {}, expected 1", file.version);
            self.problem(&["version"], message);
        }
        for duplicate in self.plugins.duplicates() {
            self.problem(&[], duplicate.clone());
        }
        let resolver = self.mode_resolver(&file);
        let modes = self.modes(&file);
        keep_passed_secret(&file, &modes, &mut secrets);
        let providers = self.providers(&modes);
        let scenarios = self.scenarios(&file, &directory);
        let scorer = self.scorer(&file, &scenarios);
        let collectors = self.collectors(&file, &modes);
        let analyzers = self.analyzers(&file);
        let hooks = self.hooks(&file, &directory);
        self.limits(&file, &providers);
        self.analysis(&file);
        if !self.problems.is_empty() {
            return None;
        }
        let scenarios: Vec<_> = scenarios
            .into_iter()
            .map(|loaded| Arc::new(self.adjusted(loaded.scenario)))
            .collect();
        let name = file
            .name
            .clone()
            .unwrap_or_else(|| directory_name(&directory));
        let mut profile = ProfileSuite {
            name,
            models: chosen(&self.selection.models, &file.models),
            execution: self.execution(&file),
            output: Output {
                session_export: file.output.session_export.unwrap_or(true),
                store_traces: file.output.store_traces.unwrap_or(true),
                keep_workspace: file.output.keep_workspace.unwrap_or_default(),
            },
            permissions: PermissionConfig {
                auto_approve: file.permissions.auto_approve,
                allowed_tools: file.permissions.allowed_tools.clone(),
            },
            modes,
            scenarios,
            directory: directory.clone(),
            providers,
            scorer: scorer?,
            collectors,
            analyzers,
            mode_resolver: resolver,
            hooks,
            description: JsonMap::new(),
            provenance: JsonMap::from_iter([("analysis".to_owned(), json!(file.analysis))]),
            secrets,
        };
        profile.description = describe(&profile, &file, as_written);
        if let Err(error) = profile.plan() {
            self.problem(&[], error.to_string());
            return None;
        }
        let remarks = self.remarks(&profile);
        let results_dir = match &self.selection.results_dir {
            Some(given) => given.clone(),
            None => directory.join(
                file.output
                    .results_dir
                    .as_deref()
                    .unwrap_or(Path::new(".assize/runs")),
            ),
        };
        Some(LoadedSuite {
            path: self.document.path().to_owned(),
            results_dir,
            profile,
            remarks,
        })
    }

    /// The baseline may be any mode of the suite, also one that is not selected this time.
    fn analysis(&mut self, file: &SuiteFile) {
        if let Err(misfits) = file.analysis.resolve() {
            for misfit in misfits {
                self.problem(&["analysis", misfit.key], misfit.message);
            }
        }
        let known: Vec<&str> = match &file.modes {
            Modes::Names(names) => names.iter().map(String::as_str).collect(),
            Modes::Definitions(modes) => modes.iter().map(|(name, _)| name.as_str()).collect(),
        };
        if let Some(baseline) = &file.analysis.baseline
            && !known.contains(&baseline.as_str())
        {
            let message = format!(
                "unknown mode `{baseline}` (known modes: {})",
                listed(&known)
            );
            self.problem(&["analysis", "baseline"], message);
        }
    }

    fn problem(&mut self, keys: &[&str], message: impl Into<String>) {
        let problem = self.document.problem(keys, message);
        self.problems.push(problem);
    }

    fn unknown(&mut self, keys: &[&str], kind: &str, name: &str, known: &[&str]) {
        let mut problem = self
            .document
            .problem(keys, format!("unknown {kind} `{name}`"));
        problem.hint = suggestion(name, known);
        self.problems.push(problem);
    }

    fn mode_resolver(
        &mut self,
        file: &SuiteFile,
    ) -> Option<Arc<dyn assize_contracts::ModeResolver>> {
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
                self.problem(&["mode_resolver"], message);
            }
            (None, Modes::Names(_)) => {
                let problem = self.document.problem(
                    &["modes"],
                    "modes that are only names need a `mode_resolver`",
                );
                self.problems.push(
                    problem.hint("define them instead: `modes: { plain: {}, other: { … } }`"),
                );
            }
            (None, Modes::Definitions(_)) => {}
        }
        None
    }

    fn modes(&mut self, file: &SuiteFile) -> Vec<Mode> {
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
                let mut problem = self
                    .document
                    .problem(&["modes"], format!("unknown mode `{name}`"));
                problem.hint = suggestion(name, &names);
                self.problems.push(problem);
            }
        }
        for (number, name) in names.iter().enumerate() {
            if name.trim().is_empty() || name.chars().any(char::is_control) {
                self.problem(
                    &["modes", name],
                    format!("found the mode name {name:?}, expected visible text"),
                );
            }
            if names[..number].contains(name) {
                self.problem(&["modes"], format!("the mode `{name}` stands there twice"));
            }
        }
        let is_chosen =
            |name: &String| self.selection.modes.is_empty() || self.selection.modes.contains(name);
        let chosen: Vec<(String, ModeSpec)> = defined
            .into_iter()
            .filter(|(name, _)| is_chosen(name))
            .collect();
        chosen
            .into_iter()
            .filter_map(|(name, spec)| self.mode(file, name, spec))
            .collect()
    }

    fn mode(&mut self, file: &SuiteFile, name: String, spec: ModeSpec) -> Option<Mode> {
        let has_own = spec.provider.is_some();
        let Some(provider) = spec.provider.or_else(|| file.provider.clone()) else {
            let problem = self
                .document
                .problem(&["modes", &name], format!("mode `{name}` has no provider"));
            self.problems
                .push(problem.hint("name one for all modes: `provider: { uses: simulated }`"));
            return None;
        };
        let keys: Vec<&str> = if has_own {
            vec!["modes", &name, "provider"]
        } else {
            vec!["provider"]
        };
        let overrides = self.overrides(&keys, &name, &provider, spec.provider_overrides);
        Some(Mode {
            provider: provider.uses,
            overrides: Arc::new(overrides),
            environment: Arc::new(spec.environment),
            system_instructions: spec.system_instructions,
            name,
        })
    }

    /// The provider's settings with the mode's on top, looked at by the provider itself.
    fn overrides(
        &mut self,
        keys: &[&str],
        mode: &str,
        provider: &ProviderSpec,
        on_top: JsonMap,
    ) -> JsonMap {
        let mut overrides = provider.overrides.clone();
        let own_keys: Vec<String> = on_top.keys().cloned().collect();
        overrides.extend(on_top);
        let sources = self.plugins.providers();
        let Some(source) = sources.get(&provider.uses) else {
            let known: Vec<&str> = sources.keys().map(String::as_str).collect();
            let keys: Vec<&str> = keys.iter().copied().chain(["uses"]).collect();
            self.unknown(&keys, "provider", &provider.uses, &known);
            return overrides;
        };
        if let Err(found) = source.instance().check_overrides(&overrides) {
            let from_mode = found.path.first().is_some_and(|key| own_keys.contains(key));
            let keys = if from_mode {
                vec!["modes", mode, "provider_overrides"]
            } else {
                keys.to_vec()
            };
            self.plugin_problem(&keys, found);
        }
        overrides
    }

    fn plugin_problem(&mut self, keys: &[&str], found: OverrideProblem) {
        let all: Vec<String> = keys
            .iter()
            .map(|key| (*key).to_owned())
            .chain(found.path)
            .collect();
        let problem = self.document.explain(&all, &found.message, &[]);
        // Several modes may share what is wrong.
        let problem = match found.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn providers(&self, modes: &[Mode]) -> BTreeMap<String, ProviderSource> {
        let used = |name: &String| modes.iter().any(|mode| mode.provider == *name);
        let sources = self.plugins.providers().iter();
        sources
            .filter(|(name, _)| used(name))
            .map(|(name, source)| (name.clone(), source.clone()))
            .collect()
    }

    fn scenarios(&mut self, file: &SuiteFile, directory: &Path) -> Vec<LoadedScenario> {
        let Some(spec) = &file.scenarios else {
            let problem = self.document.problem(&[], "missing key `scenarios`");
            self.problems.push(
                problem.hint("name the files: `scenarios: { paths: [\"scenarios/*.yaml\"] }`"),
            );
            return Vec::new();
        };
        let defaults = Defaults {
            timeout_ms: file.execution.timeout_default_ms,
            allowed_retries: file.execution.allowed_retries,
        };
        let mut loaded: Vec<LoadedScenario> = Vec::new();
        for (number, pattern) in spec.paths.iter().enumerate() {
            match files_matching(directory, pattern) {
                Ok(paths) => {
                    for path in paths {
                        match scenario::load(&path, &defaults) {
                            Ok(scenarios) => loaded.extend(scenarios),
                            Err(problem) => self.problems.push(problem),
                        }
                    }
                }
                Err(message) => self.problem(&["scenarios", "paths", &number.to_string()], message),
            }
        }
        self.refuse_duplicates(&loaded);
        let mut chosen = self.choose(spec, loaded);
        for scenario in &mut chosen {
            // Scenarios made from one file by variables may share what is wrong.
            if let Err(problem) = places::resolve(scenario, directory)
                && !self.problems.contains(&problem)
            {
                self.problems.push(problem);
            }
        }
        chosen
    }

    fn refuse_duplicates(&mut self, loaded: &[LoadedScenario]) {
        let mut first: BTreeMap<&str, &LoadedScenario> = BTreeMap::new();
        for scenario in loaded {
            if let Some(other) = first.insert(&scenario.scenario.id, scenario) {
                let message = format!(
                    "the id `{}` is already taken by {}",
                    scenario.scenario.id,
                    other.document.path().display()
                );
                self.problems
                    .push(scenario.document.problem(&["id"], message));
            }
        }
    }

    fn choose(&mut self, spec: &Scenarios, loaded: Vec<LoadedScenario>) -> Vec<LoadedScenario> {
        let ids: Vec<String> = loaded
            .iter()
            .map(|loaded| loaded.scenario.id.clone())
            .collect();
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut wanted: Vec<Vec<String>> = Vec::new();
        if let Some(ids) = &spec.ids {
            wanted.push(ids.clone());
        }
        if let Some(set) = self.selection.scenario_set.as_ref().or(spec.set.as_ref()) {
            match spec.sets.get(set) {
                Some(ids) => wanted.push(ids.clone()),
                None => {
                    let sets: Vec<&str> = spec.sets.keys().map(String::as_str).collect();
                    self.unknown(&["scenarios", "set"], "set of scenarios", set, &sets);
                }
            }
        }
        if !self.selection.scenarios.is_empty() {
            wanted.push(self.selection.scenarios.clone());
        }
        for id in wanted.iter().flatten().chain(spec.sets.values().flatten()) {
            // `fix-bug` also means all of `fix-bug[lang=…]`.
            if !loaded.is_empty() && !ids.iter().any(|known| is_meant(id, known)) {
                self.unknown(&["scenarios"], "scenario", id, &known);
            }
        }
        let tags = &self.selection.tags;
        let is_chosen = |loaded: &LoadedScenario| {
            let scenario = &loaded.scenario;
            let named = wanted
                .iter()
                .all(|ids| ids.iter().any(|id| is_meant(id, &scenario.id)));
            named && (tags.is_empty() || scenario.tags.iter().any(|tag| tags.contains(tag)))
        };
        loaded.into_iter().filter(is_chosen).collect()
    }

    fn scorer(
        &mut self,
        file: &SuiteFile,
        scenarios: &[LoadedScenario],
    ) -> Option<Arc<dyn Scorer>> {
        let (name, config) = match &file.scorer {
            Some(spec) => (spec.uses.as_str(), spec.config.clone()),
            None => ("checks", JsonMap::new()),
        };
        let makers = self.plugins.scorers();
        let Some(make) = makers.get(name) else {
            let known: Vec<&str> = makers.keys().map(String::as_str).collect();
            self.unknown(&["scorer", "uses"], "scorer", name, &known);
            return None;
        };
        let scorer = match make(&config) {
            Ok(scorer) => scorer,
            Err(error) => {
                self.problem(&["scorer"], error.to_string());
                return None;
            }
        };
        for LoadedScenario { scenario, document } in scenarios {
            if let Err(found) = scorer.check_scenario(scenario) {
                let problem = document.explain(&found.path, &found.message, LATER);
                let problem = match found.hint {
                    Some(hint) => problem.hint(hint),
                    None => problem,
                };
                // Scenarios made from one file by variables share their checks.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
        Some(scorer)
    }

    fn collectors(
        &mut self,
        file: &SuiteFile,
        modes: &[Mode],
    ) -> Vec<Arc<dyn assize_contracts::Collector>> {
        let runs_programs = modes.iter().any(|mode| mode.provider == "command");
        let usual = DEFAULT_COLLECTORS
            .into_iter()
            .chain(runs_programs.then_some("program"));
        let names = match &file.collectors {
            Some(names) => names.clone(),
            None => usual.map(str::to_owned).collect(),
        };
        self.named("collector", "collectors", &names, self.plugins.collectors())
    }

    fn analyzers(&mut self, file: &SuiteFile) -> Vec<Arc<dyn assize_contracts::Analyzer>> {
        self.named(
            "analyzer",
            "analyzers",
            &file.analyzers,
            self.plugins.analyzers(),
        )
    }

    fn named<T: ?Sized>(
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

    fn hooks(
        &mut self,
        file: &SuiteFile,
        directory: &Path,
    ) -> Vec<Arc<dyn assize_contracts::RunHooks>> {
        match &file.hooks {
            None => Vec::new(),
            Some(HooksSpec::Commands(spec)) => vec![Arc::new(spec.commands(directory))],
            Some(HooksSpec::Plugin(name)) => {
                let names = std::slice::from_ref(name);
                self.named("set of hooks", "hooks", names, self.plugins.hook_sets())
            }
        }
    }

    fn limits(&mut self, file: &SuiteFile, providers: &BTreeMap<String, ProviderSource>) {
        let known: Vec<&str> = providers.keys().map(String::as_str).collect();
        for (name, limit) in &file.execution.limits {
            if !providers.contains_key(name) && self.selection.modes.is_empty() {
                self.unknown(&["execution", "limits", name], "provider", name, &known);
            }
            if *limit == 0 {
                self.problem(
                    &["execution", "limits", name],
                    "found 0, expected at least 1",
                );
            }
        }
        if self.selection.concurrency.or(file.execution.concurrency) == Some(0) {
            self.problem(
                &["execution", "concurrency"],
                "found 0, expected at least 1",
            );
        }
        if file.execution.timeout_default_ms == Some(0) {
            self.problem(
                &["execution", "timeout_default_ms"],
                "found 0, expected at least 1 ms",
            );
        }
    }

    fn execution(&self, file: &SuiteFile) -> Execution {
        let (spec, flags, default) = (&file.execution, self.selection, Execution::default());
        Execution {
            repetitions: flags
                .repetitions
                .or(spec.repetitions)
                .unwrap_or(default.repetitions),
            order: flags.order.or(spec.order).unwrap_or(default.order),
            seed: flags.seed.or(spec.seed).unwrap_or(default.seed),
            concurrency: flags
                .concurrency
                .or(spec.concurrency)
                .unwrap_or(default.concurrency),
            limits: spec.limits.clone(),
            warmup: !flags.skip_warmup && spec.warmup.unwrap_or(default.warmup),
            retry_fails: spec.retry_fails,
            fail_fast: flags.fail_fast,
        }
    }

    fn adjusted(
        &self,
        mut scenario: assize_contracts::BaseScenario,
    ) -> assize_contracts::BaseScenario {
        scenario.timeout_ms = self.selection.timeout_ms.unwrap_or(scenario.timeout_ms);
        scenario.allowed_retries = self.selection.retries.unwrap_or(scenario.allowed_retries);
        scenario
    }

    fn remarks(&self, profile: &ProfileSuite) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(reason) = profile.sequential_because() {
            remarks.push(format!("modes run one after another, because {reason}"));
        }
        for name in profile.secrets.too_short() {
            remarks.push(format!(
                "the value of `{name}` is too short to be recognized in records and kept out of them"
            ));
        }
        remarks
    }
}

/// Values of variables that programs get passed must not reach any record either.
fn keep_passed_secret(file: &SuiteFile, modes: &[Mode], secrets: &mut Secrets) {
    let passed = modes.iter().flat_map(|mode| {
        let keys = ["pass_env", "passEnv"].into_iter();
        let lists = keys.filter_map(|key| mode.overrides.get(key)?.as_array());
        lists.flatten().filter_map(Value::as_str)
    });
    let to_hooks = match &file.hooks {
        Some(HooksSpec::Commands(spec)) => spec.pass_env.as_slice(),
        _ => &[],
    };
    for name in passed.chain(to_hooks.iter().map(String::as_str)) {
        if let Ok(value) = std::env::var(name) {
            secrets.add(name, value);
        }
    }
}

/// What makes trials of this suite comparable with each other. Values from the environment stay as they were written.
fn describe(profile: &ProfileSuite, file: &SuiteFile, as_written: &Value) -> JsonMap {
    let written = |keys: &[&str]| {
        keys.iter()
            .try_fold(as_written, |value, key| value.get(key))
            .cloned()
    };
    let mode = |mode: &Mode| {
        let own = written(&["modes", &mode.name]).unwrap_or(Value::Null);
        let provider = own
            .get("provider")
            .cloned()
            .or_else(|| written(&["provider"]));
        let mut settings = own.as_object().cloned().unwrap_or_default();
        settings.insert("provider".to_owned(), provider.unwrap_or(Value::Null));
        (mode.name.clone(), Value::Object(settings))
    };
    let scenarios = profile.scenarios.iter().map(|scenario| {
        let mut content = serde_json::to_value(scenario).unwrap_or(Value::Null);
        if let Some(map) = content.as_object_mut() {
            map.remove("id");
            if let Some(checks) = map.get_mut("checks") {
                places::forget_directory(checks, &profile.directory);
            }
        }
        (scenario.id.clone(), content)
    });
    let scorer = written(&["scorer"]).unwrap_or_else(|| json!({"uses": "checks"}));
    let collectors: Vec<&str> = profile
        .collectors
        .iter()
        .map(|collector| collector.id())
        .collect();
    let description = json!({
        "modes": profile.modes.iter().map(mode).collect::<JsonMap>(),
        "scenarios": scenarios.collect::<JsonMap>(),
        "scorer": scorer,
        "collectors": collectors,
        "permissions": {
            "autoApprove": profile.permissions.auto_approve,
            "allowedTools": profile.permissions.allowed_tools,
        },
        "retryFails": profile.execution.retry_fails,
        "modeResolver": file.mode_resolver,
        "extensions": file.extensions,
    });
    match description {
        Value::Object(map) => map,
        _ => JsonMap::new(),
    }
}

/// A name means the scenario itself and everything its variables make of it.
fn is_meant(name: &str, id: &str) -> bool {
    id.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

fn chosen(flags: &[String], file: &[String]) -> Vec<String> {
    if flags.is_empty() {
        file.to_vec()
    } else {
        flags.to_vec()
    }
}

fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn directory_name(directory: &Path) -> String {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let absolute = absolute.canonicalize().unwrap_or(absolute);
    absolute.file_name().map_or_else(
        || "suite".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The files a pattern stands for, sorted. A plain path must exist; a pattern must match something.
fn files_matching(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    if !pattern.contains(['*', '?', '[', '{']) {
        let path = directory.join(pattern);
        return if path.is_file() {
            Ok(vec![path])
        } else {
            Err(format!("there is no file `{pattern}`"))
        };
    }
    let glob = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| format!("`{pattern}` is not a pattern: {}", error.kind()))?
        .compile_matcher();
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| {
            !part
                .as_os_str()
                .to_string_lossy()
                .contains(['*', '?', '[', '{'])
        })
        .collect();
    let mut found = Vec::new();
    walk(directory, &fixed, &mut |relative| {
        if glob.is_match(relative) {
            found.push(directory.join(relative));
        }
    });
    found.sort();
    if found.is_empty() {
        Err(format!("no file matches `{pattern}`"))
    } else {
        Ok(found)
    }
}

fn walk(root: &Path, relative: &Path, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(root.join(relative)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = relative.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, visit),
            Ok(_) => visit(&path),
            Err(_) => {}
        }
    }
}
