//! From a suite file to the experiment that the engine runs. Everything that can be wrong is found here.

mod capture;
mod containers;
mod description;
mod design;
mod foresight;
mod gates;
mod judge;
mod modes;
mod plugins;
mod recipes;
mod sandbox;
mod scenarios;
mod secrets;
mod surroundings;
mod tasks;

use super::document::Document;
use super::environment::interpolate;
use super::factors::{self, Expanded, with_modes};
use super::file::{LATER, Modes, SuiteFile};
use super::file_error::{FileError, SuiteError, listed, nearest, suggestion};
use super::hooks::HooksSpec;
use super::selection::Selection;
use crate::diagnostics::LogLevel;
use assize_contracts::{
    FactorialRecord, JsonMap, PermissionConfig, Plugins, ProviderSource, Reading, WallRecord,
    with_causes,
};
use assize_engine::{Execution, Mode, Output, ProfileSuite};
use assize_llm::{Api, Prices};
use assize_plugins::PluginHost;
use assize_report::{Analysis, Gate};
use assize_secrets::Secrets;
use description::describe;
pub(crate) use judge::judges;
pub(crate) use scenarios::is_meant;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The possible names of a directory's suite file.
pub(crate) const FILE_NAMES: [&str; 4] =
    ["assize.yaml", "assize.yml", "assize.toml", "assize.json"];

/// A suite that can be run.
pub struct LoadedSuite {
    /// The suite file.
    pub path: PathBuf,
    /// The directory of its runs.
    pub results_dir: PathBuf,
    /// The experiment.
    pub profile: ProfileSuite,
    /// Remarks to print before it runs.
    pub remarks: Vec<String>,
    /// The plugin programs that were started for it. Absent when it has none.
    pub programs: Option<PluginHost>,
    /// The amount that is logged, where the suite sets it.
    pub log_level: Option<LogLevel>,
}

/// Keys of a suite that hold keys and values.
const OBJECTS: [&str; 9] = [
    "scenarios",
    "execution",
    "output",
    "capture",
    "analysis",
    "judge",
    "permissions",
    "sandbox",
    "provider",
];

/// Files of a directory that are looked at for a suite that was meant.
const MOST_NEIGHBOURS: usize = 1000;

/// The time limit for trying things out before the first trial.
const PREFLIGHT: Duration = Duration::from_secs(60);

/// Loads a suite: a file, or a directory with an `assize.yaml` or the like.
pub fn load(
    path: &Path,
    selection: &Selection,
    plugins: &Plugins,
) -> Result<LoadedSuite, SuiteError> {
    let raw = read_suite(&find(path)?)?;
    load_document(raw, BTreeMap::new(), selection, plugins)
}

/// Reads a suite file, and knows what else people give in its place.
fn read_suite(path: &Path) -> Result<Document, FileError> {
    let document = Document::read(path)?;
    let has = |key: &str| document.value().get(key).is_some();
    if document.value().is_null() {
        return Err(FileError::new(
            path,
            "the file is empty, expected a suite with `modes` and `scenarios`",
        )
        .hint("`assize init DIR` writes one that runs at once"));
    }
    if document.value().is_array() {
        return Err(document
            .error(
                &[],
                "found a list, expected a suite with `modes` and `scenarios`",
            )
            .hint("`assize init DIR` writes one to look at"));
    }
    // A list could pass for keys and values by its order.
    for key in OBJECTS {
        if document.value().get(key).is_some_and(Value::is_array) {
            let message = format!("`{key}`: found a list, expected keys and values");
            let hint = match key {
                "scenarios" => {
                    "scenarios are in files of their own, which the suite names: `scenarios: { paths: [\"scenarios/*.yaml\"] }`"
                }
                _ => "write `{ key: value }`, or one indented line `key: value` for each",
            };
            return Err(document.error(&[key], message).hint(hint));
        }
    }
    if has("prompt") && !has("modes") {
        let id = document.value().get("id").and_then(Value::as_str);
        let only = id.map_or_else(String::new, |id| format!(" --scenario {id}"));
        return Err(FileError::new(path, "this is a scenario, not a suite")
            .at(document.place(&["prompt"]))
            .hint(format!(
                "run the suite that names it under `scenarios`: `assize run SUITE{only}`"
            )));
    }
    Ok(document)
}

/// A suite that is in no file, with the scenarios that its `scenarios.paths` name.
pub(crate) struct UnwrittenSuite {
    /// Relative paths start here.
    pub(crate) directory: PathBuf,
    pub(crate) suite: Value,
    /// By the path that the suite names.
    pub(crate) scenarios: BTreeMap<String, Value>,
}

impl UnwrittenSuite {
    /// Loads the suite as if it were read from files.
    pub(crate) fn load(
        self,
        selection: &Selection,
        plugins: &Plugins,
    ) -> Result<LoadedSuite, SuiteError> {
        let raw = Document::unwritten(self.directory.join(FILE_NAMES[0]), self.suite);
        load_document(raw, self.scenarios, selection, plugins)
    }
}

fn load_document(
    raw: Document,
    unwritten: BTreeMap<String, Value>,
    selection: &Selection,
    plugins: &Plugins,
) -> Result<LoadedSuite, SuiteError> {
    let Expanded {
        document: raw,
        factorial,
    } = factors::expand(raw)?;
    let file_as_written: Value = raw.value().clone();
    let (document, secrets) = interpolate(raw).map_err(SuiteError)?;
    let file: SuiteFile = document.read_as(LATER)?;
    let programs = plugins::start_programs(&document, &file)?;
    let served = programs.as_ref().map(PluginHost::plugins);
    let plugins = served.map_or_else(|| plugins.clone(), |served| plugins.clone().and(served));
    let mut loader = Loader {
        document,
        plugins: &plugins,
        selection,
        unwritten,
        recipes: BTreeMap::new(),
        recipe_keys: Vec::new(),
        has_tasks: file.tasks.is_some(),
        surroundings: BTreeMap::new(),
        factorial,
        errors: Vec::new(),
        remarks: Vec::new(),
    };
    let loaded = loader.load(file, &file_as_written, secrets);
    match loaded {
        Some(mut suite) if loader.errors.is_empty() => {
            if let Some(host) = &programs {
                let described = description::of_programs(host, &file_as_written);
                suite
                    .profile
                    .description
                    .insert("plugins".to_owned(), described);
            }
            Ok(LoadedSuite { programs, ..suite })
        }
        _ => Err(SuiteError(loader.errors)),
    }
}

/// Starts the plugin programs of a suite and nothing else of it.
pub(crate) fn start_programs(path: &Path) -> Result<Option<PluginHost>, SuiteError> {
    let document = with_modes(read_suite(&find(path)?)?);
    let (document, _) = interpolate(document).map_err(SuiteError)?;
    let file: SuiteFile = document.read_as(LATER)?;
    plugins::start_programs(&document, &file)
}

/// The suite has plugin programs, which loading it would start. A suite that cannot be read counts as one that has.
pub(crate) fn names_programs(path: &Path) -> bool {
    let read = || {
        let document = with_modes(Document::read(&find(path).ok()?).ok()?);
        let (document, _) = interpolate(document).ok()?;
        document.read_as::<SuiteFile>(LATER).ok()
    };
    read().is_none_or(|file| !file.plugins.is_empty())
}

/// The directory of a suite's runs, without loading what it names.
pub(crate) fn configured_results_dir(path: &Path) -> Result<PathBuf, SuiteError> {
    let path = find(path)?;
    let (document, _) = interpolate(with_modes(read_suite(&path)?)).map_err(SuiteError)?;
    let file: SuiteFile = document.read_as(LATER)?;
    Ok(file.results_dir(&directory_of(&path)))
}

/// True when a scenario of the suite has a workspace that may be made of layers. Nothing is checked: a suite that cannot be
/// read has none, and is refused when it is loaded.
pub(crate) fn has_layers(path: &Path) -> bool {
    let scenarios = || {
        let path = find(path).ok()?;
        let document = with_modes(Document::read(&path).ok()?);
        let (document, _) = interpolate(document).ok()?;
        let file: SuiteFile = document.read_as(LATER).ok()?;
        if containers::has_container(&file) {
            return None;
        }
        let patterns = file.scenarios.map(|scenarios| scenarios.paths)?;
        let directory = directory_of(&path);
        Some(scenarios::any_has_layers(&directory, &patterns))
    };
    scenarios().unwrap_or(false)
}

impl SuiteFile {
    fn results_dir(&self, directory: &Path) -> PathBuf {
        let configured = self.output.results_dir.as_deref();
        directory.join(configured.unwrap_or(Path::new(".assize/runs")))
    }
}

pub(crate) fn find(path: &Path) -> Result<PathBuf, FileError> {
    if !path.is_dir() {
        return match path.exists() {
            true => Ok(path.to_owned()),
            false => Err(FileError::new(path, "there is no such suite").hint(way_to_a_suite(path))),
        };
    }
    FILE_NAMES
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            FileError::new(
                path,
                format!(
                    "the directory has no suite, expected one of {}",
                    listed(&FILE_NAMES)
                ),
            )
            .hint(way_to_a_suite(path))
        })
}

/// The suite that was probably meant: one with nearly this name, the only one below, one above. Else how to write one.
fn way_to_a_suite(missing: &Path) -> String {
    let is_suite = |path: &Path| match path.is_dir() {
        true => FILE_NAMES.iter().any(|name| path.join(name).is_file()),
        false => path.file_stem().is_some_and(|stem| stem == "assize"),
    };
    let (directory, name) = match missing.is_dir() {
        true => (missing, None),
        false => {
            let parent = missing.parent().filter(|parent| parent.is_dir());
            let name = missing.file_name().and_then(|name| name.to_str());
            (parent.unwrap_or(Path::new("")), name)
        }
    };
    let here = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .take(MOST_NEIGHBOURS)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let is_near = |near: &str| {
        let ending = Path::new(near)
            .extension()
            .and_then(|ending| ending.to_str());
        let is_written =
            ending.is_some_and(|ending| ["yaml", "yml", "toml", "json"].contains(&ending));
        is_written || is_suite(&here.join(near))
    };
    let near = name.and_then(|name| nearest(name, names.iter().map(String::as_str)));
    if let Some(near) = near.filter(|near| is_near(near)) {
        return format!("did you mean `{}`?", directory.join(near).display());
    }
    let below: Vec<String> = names
        .iter()
        .map(|name| directory.join(name))
        .filter(|path| path.is_dir() && is_suite(path))
        .map(|path| path.display().to_string())
        .collect();
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    if let Some(first) = below.first() {
        let rest = if below.len() > 5 { ", …" } else { "" };
        let listed = listed(&below[..below.len().min(5)]);
        return format!("suites are in {listed}{rest}: name one, such as `{first}`");
    }
    let absolute = std::path::absolute(here).unwrap_or_default();
    let above = absolute.ancestors().skip(1).find(|path| is_suite(path));
    match above.filter(|_| name.is_none()) {
        Some(above) => format!(
            "there is a suite in `{}`; `assize init` writes one that runs at once",
            above.display()
        ),
        None => "`assize init` writes one that runs at once".to_owned(),
    }
}

struct Loader<'a> {
    document: Document,
    plugins: &'a Plugins,
    selection: &'a Selection,
    /// Scenarios that are in no file, by the path that the suite names.
    unwritten: BTreeMap<String, Value>,
    /// Agents of the suite's own, by the path of their recipe.
    recipes: BTreeMap<String, ProviderSource>,
    /// Variables with their credentials.
    recipe_keys: Vec<String>,
    has_tasks: bool,
    /// Skills, instructions and subagents by mode.
    surroundings: BTreeMap<String, surroundings::Surroundings>,
    /// The factors that the modes come from.
    factorial: Option<FactorialRecord>,
    errors: Vec<FileError>,
    /// Remarks from reading the files.
    remarks: Vec<String>,
}

impl Loader<'_> {
    /// Continues after an error where it can, so that people see all of them at once.
    fn load(
        &mut self,
        file: SuiteFile,
        as_written: &Value,
        secrets: Secrets,
    ) -> Option<LoadedSuite> {
        let directory = directory_of(self.document.path());
        self.check_form(&file);
        let file = self.with_ablation(file, &directory);
        let (mut profile, gates) = self.profile(&file, &directory, secrets)?;
        profile.description = describe(&profile, &file, as_written);
        let surroundings = self.described_surroundings(&profile);
        profile
            .description
            .extend(surroundings.map(|surroundings| ("surroundings".to_owned(), surroundings)));
        let plan = match profile.plan() {
            Ok(plan) => plan,
            Err(error) => {
                self.report(&[], error.to_string());
                return None;
            }
        };
        self.refuse_secret_ids(&profile);
        let walls = self.walls(&file, &profile);
        let mut remarks = self.all_remarks(&file, &profile, &walls);
        let analysis = Analysis::of(&file.analysis).unwrap_or_default();
        remarks.extend(self.gate_remarks(&gates, &analysis, &plan));
        if !walls.is_empty() {
            let walls = serde_json::json!(walls);
            profile.provenance.insert("sandbox".to_owned(), walls);
        }
        let results_dir = match &self.selection.results_dir {
            Some(given) => given.clone(),
            None => file.results_dir(&directory),
        };
        let revealing = containers::revealing_mounts(&profile, &results_dir);
        if !revealing.is_empty() {
            for message in revealing {
                self.report(&["sandbox"], message);
            }
            return None;
        }
        Some(LoadedSuite {
            path: self.document.path().to_owned(),
            results_dir,
            profile,
            remarks,
            programs: None,
            log_level: file.output.log_level,
        })
    }

    /// Checks what concerns the suite as a whole.
    fn check_form(&mut self, file: &SuiteFile) {
        if file.version != 1 {
            let message = format!("found version {}, expected 1", file.version);
            let error = self.document.error(&["version"], message);
            self.add(error.hint(
                "it is the version of the form of suites, not yours: write 1 or leave it out",
            ));
        }
        for duplicate in self.plugins.duplicates() {
            self.report(&[], duplicate.clone());
        }
    }

    /// The experiment and its gates. `None` after an error.
    fn profile(
        &mut self,
        file: &SuiteFile,
        directory: &Path,
        secrets: Secrets,
    ) -> Option<(ProfileSuite, Vec<Gate>)> {
        let mode_resolver = self.mode_resolver(file);
        let mut modes = self.modes(file);
        self.runner_recipes(file);
        secrets::note_written(self.document.value(), file, &secrets);
        keep_passed_secret(file, &modes, &secrets);
        self.keep_keys_secret(file, &modes, &secrets);
        let providers = self.providers(&modes);
        let scenarios = self.scenarios(file, directory);
        secrets::note_of_workspaces(&scenarios, &secrets);
        self.check_housing(file, &modes, &scenarios);
        let judge = self.judge(file, directory, &secrets);
        let scorer = self.scorer(file, judge.as_ref(), &scenarios, &secrets);
        let mut collectors = self.collectors(file, &modes);
        collectors.extend(self.skills_collector(&scenarios));
        self.look_beside_workspaces(&scenarios, directory);
        let analyzers = self.analyzers(file);
        let hooks = self.hooks(file, directory);
        let prices = self.prices(file, directory);
        let evaluators = self.evaluators(file, judge.as_ref(), directory, &secrets);
        let needs_proxy = containers::any_reaches_model_alone(file, &modes, &scenarios);
        let proxy = self.proxy(file, directory, &prices, &secrets);
        let proxy = proxy.map(|proxy| proxy.for_everybody_if(needs_proxy));
        let places = self.places(file, directory, &scenarios);
        self.check_sandboxes(&modes, &scenarios, &places, proxy.as_ref());
        let behind_proxy = |source| match &proxy {
            Some(proxy) => proxy.source(source),
            None => source,
        };
        let providers: BTreeMap<_, _> = providers
            .into_iter()
            .map(|(name, source)| (name, behind_proxy(source)))
            .collect();
        let for_runners = self
            .plugins
            .clone()
            .and_providers(self.recipes.clone())
            .map_providers(behind_proxy);
        let tasks = self.tasks(file, directory, &mut modes, &scenarios, &for_runners);
        self.limits(file, &providers);
        self.design(file);
        self.analysis(file);
        let gates = self.gates(file, &collectors);
        if !self.errors.is_empty() {
            return None;
        }
        let scenarios = scenarios.into_iter().map(|loaded| loaded.scenario);
        let profile = ProfileSuite {
            name: (file.name.clone()).unwrap_or_else(|| directory_name(directory)),
            models: chosen(&self.selection.models, &file.models),
            execution: self.execution(file),
            output: output(file),
            permissions: permissions(file),
            modes,
            scenarios: scenarios
                .map(|scenario| Arc::new(self.adjusted(scenario)))
                .collect(),
            tasks,
            evaluators,
            directory: directory.to_owned(),
            places: Arc::new(places),
            hidden: self.hidden(),
            providers,
            scorer: scorer?,
            collectors,
            analyzers,
            mode_resolver,
            hooks,
            steering: None,
            description: JsonMap::new(),
            reading: self.reading(file, &prices),
            provenance: self.aa_mark(),
            prices: Some(prices),
            secrets,
        };
        Some((profile, gates))
    }

    fn reading(&self, file: &SuiteFile, prices: &Prices) -> Reading {
        Reading {
            analysis: file.analysis.clone(),
            gates: file.gates.clone(),
            baseline: baseline_mode(file).map(str::to_owned),
            prices: vec![prices.version().to_owned()],
            primary: Analysis::planned_primary(&file.analysis),
            factorial: self.factorial.clone(),
            until: file.execution.until.clone().filter(|_| !self.selection.aa),
        }
    }

    /// The remarks on a suite that can run, but for those on its gates.
    fn all_remarks(
        &mut self,
        file: &SuiteFile,
        profile: &ProfileSuite,
        walls: &[WallRecord],
    ) -> Vec<String> {
        let mut remarks = std::mem::take(&mut self.remarks);
        remarks.extend(self.remarks(profile));
        remarks.extend(sandbox::remarks(walls));
        remarks.extend(sandbox::hidden_in_vain(
            profile,
            &directory_of(self.document.path()),
        ));
        remarks.extend(self.unused_concurrency(file, profile));
        remarks.extend(judge::ignored_checks(file, &profile.scenarios));
        remarks.extend(foresight::unfilled_names(&profile.scenarios));
        remarks.extend(foresight::unseen_tools(profile, file.capture.as_ref()));
        remarks.extend(self.surroundings_remarks(profile));
        remarks
    }

    fn prices(&mut self, file: &SuiteFile, directory: &Path) -> Prices {
        let Some(path) = &file.prices.file else {
            return Prices::default();
        };
        Prices::with_file(&directory.join(path)).unwrap_or_else(|error| {
            self.report(&["prices", "file"], with_causes(&error));
            Prices::default()
        })
    }

    /// The baseline may be any mode of the suite, also one that is not selected this time.
    fn analysis(&mut self, file: &SuiteFile) {
        if let Err(errors) = Analysis::of(&file.analysis) {
            for error in errors {
                self.report(&["analysis", error.key], error.message);
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
            self.report(&["analysis", "baseline"], message);
        }
    }

    fn report(&mut self, keys: &[&str], message: impl Into<String>) {
        let error = self.document.error(keys, message);
        self.add(error);
    }

    /// Modes, and scenarios made from one file by variables, may share an error; it is reported once.
    fn add(&mut self, error: FileError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn unknown(&mut self, keys: &[&str], kind: &str, name: &str, known: &[&str]) {
        let mut error = self
            .document
            .error(keys, format!("unknown {kind} `{name}`"));
        error.hint = suggestion(name, known);
        self.add(error);
    }

    fn execution(&self, file: &SuiteFile) -> Execution {
        let (spec, flags, default) = (&file.execution, self.selection, Execution::default());
        Execution {
            repetitions: flags
                .repetitions
                .or(spec.until.as_ref().and_then(|until| until.max_repetitions))
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
            stop_after_voids: spec.stop_after_voids.unwrap_or(default.stop_after_voids),
            preflight: spec.preflight.map_or(PREFLIGHT, Duration::from_secs),
            shard: None,
            after: None,
            budget: spec.budget.unwrap_or_default().overridden_by(&flags.budget),
            expected_block: None,
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
        remarks.extend(secrets::remarks(&profile.secrets));
        remarks
    }

    /// A remark when many sessions at once are asked of a provider that does not take them.
    fn unused_concurrency(&self, file: &SuiteFile, profile: &ProfileSuite) -> Vec<String> {
        let for_all = self.selection.concurrency.or(file.execution.concurrency);
        let too_much = |(name, source): (&String, &ProviderSource)| {
            let asked = file.execution.limits.get(name).copied().or(for_all)?;
            let most = source.instance().concurrency().most();
            (asked > most).then(|| {
                let sessions = match most {
                    1 => "one session at a time".to_owned(),
                    most => format!("at most {most} sessions at a time"),
                };
                format!(
                    "provider `{name}` declares {sessions} per instance, so a concurrency of {asked} is not used up"
                )
            })
        };
        profile.providers.iter().filter_map(too_much).collect()
    }
}

fn output(file: &SuiteFile) -> Output {
    Output {
        session_export: file.output.session_export.unwrap_or(true),
        store_traces: file.output.store_traces.unwrap_or(true),
        keep_workspace: file.output.keep_workspace.unwrap_or_default(),
    }
}

fn permissions(file: &SuiteFile) -> PermissionConfig {
    PermissionConfig {
        auto_approve: file.permissions.auto_approve,
        allowed_tools: file.permissions.allowed_tools.clone(),
    }
}

/// The mode that others are compared with, also when it is not selected this time.
fn baseline_mode(file: &SuiteFile) -> Option<&str> {
    let first = match &file.modes {
        Modes::Names(names) => names.first().map(String::as_str),
        Modes::Definitions(modes) => modes.first().map(|(name, _)| name.as_str()),
    };
    file.analysis.baseline.as_deref().or(first)
}

/// Values of variables that programs get passed must not reach any record either.
fn keep_passed_secret(file: &SuiteFile, modes: &[Mode], secrets: &Secrets) {
    let passed = modes.iter().flat_map(|mode| {
        let keys = ["pass_env", "passEnv"].into_iter();
        let lists = keys.filter_map(|key| mode.overrides.get(key)?.as_array());
        lists.flatten().filter_map(Value::as_str)
    });
    let to_hooks = match &file.hooks {
        Some(HooksSpec::Commands(spec)) => spec.pass_env.as_slice(),
        _ => &[],
    };
    let to_plugins = file.plugins.iter().flat_map(|plugin| &plugin.pass_env);
    for name in passed
        .chain(to_hooks.iter().chain(to_plugins).map(String::as_str))
        .chain(runner_variables(file))
    {
        if let Ok(value) = std::env::var(name) {
            secrets.add(name, value);
        }
    }
}

/// Variables that runners read: those they pass on, and those with keys.
fn runner_variables(file: &SuiteFile) -> impl Iterator<Item = &str> {
    let usual_keys = Api::ALL.map(Api::key_variable);
    let named = file.runners.iter().flat_map(|runner| {
        let passed = runner.config.get("pass_env").and_then(Value::as_array);
        let passed = passed.into_iter().flatten().filter_map(Value::as_str);
        let key = runner.config.get("key_env").and_then(Value::as_str);
        passed.chain(key)
    });
    let is_model = file.runners.iter().any(|runner| runner.uses == "llm");
    named.chain(usual_keys.into_iter().filter(move |_| is_model))
}

fn chosen(flags: &[String], file: &[String]) -> Vec<String> {
    if flags.is_empty() {
        file.to_vec()
    } else {
        flags.to_vec()
    }
}

pub(super) fn directory_of(file: &Path) -> PathBuf {
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
