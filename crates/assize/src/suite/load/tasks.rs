//! Tasks, the runners that execute them and the evaluators that score them.

use super::Loader;
use super::scenarios::files_matching;
use crate::suite::data_set::{DataSet, Reading};
use crate::suite::file::{EvaluatorSpec, RunnerSpec, SuiteFile, TasksSpec};
use crate::suite::file_error::{listed, suggestion};
use crate::suite::scenario::LoadedScenario;
use assize_contracts::{
    ConfigError, DEFAULT_TIMEOUT_MS, Evaluator, EvaluatorSetup, JsonMap, Plugins, RunnerSetup, Task,
};
use assize_engine::store::TaskPlan;
use assize_engine::{
    Condition, DeclaredSchemas, Mode, TaskSet, UsedEvaluator, UsedRunner, check_flow,
};
use assize_measures::{SchemaCheck, ScorerEvaluator, make_scorer};
use assize_secrets::Secrets;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reporting stops at this number: more errors would not help.
const MOST_ERRORS: usize = 20;

/// A runner that could be made.
struct Declared {
    used: Arc<UsedRunner>,
    task_type: String,
    input: Option<Schema>,
    output: Option<Schema>,
}

struct Schema {
    value: Value,
    check: SchemaCheck,
}

impl Loader<'_> {
    pub(super) fn evaluators(
        &mut self,
        file: &SuiteFile,
        judge: Option<&JsonMap>,
        directory: &Path,
        secrets: &Secrets,
    ) -> Vec<UsedEvaluator> {
        let mut made = Vec::new();
        for (number, spec) in file.evaluators.iter().enumerate() {
            let number = number.to_string();
            if file
                .evaluators
                .iter()
                .filter(|other| other.id == spec.id)
                .count()
                > 1
            {
                let message = format!("the evaluator id `{}` is given twice", spec.id);
                self.report(&["evaluators", &number, "id"], message);
            }
            if let Some(evaluator) = self.evaluator((spec, &number), judge, directory, secrets) {
                made.push(UsedEvaluator {
                    id: spec.id.clone(),
                    evaluator,
                    types: spec.types.clone(),
                });
            }
        }
        made
    }

    /// An evaluator, or a scorer in the place of one.
    fn evaluator(
        &mut self,
        (spec, number): (&EvaluatorSpec, &str),
        judge: Option<&JsonMap>,
        directory: &Path,
        secrets: &Secrets,
    ) -> Option<Arc<dyn Evaluator>> {
        let setup = EvaluatorSetup {
            id: &spec.id,
            config: &spec.config,
            directory,
            plugins: self.plugins,
        };
        let made = match self.plugins.evaluators().get(&spec.uses) {
            Some(source) => source.make(&setup),
            None if self.plugins.scorers().contains_key(&spec.uses) => {
                let mut settings = spec.config.clone();
                // The default expectation belongs to the evaluator; the rest is the scorer's.
                let criteria = ["checks", "rubric", "outputSchema"];
                let criteria = criteria
                    .into_iter()
                    .filter_map(|key| settings.remove_entry(key));
                let criteria: JsonMap = criteria.collect();
                settings.insert("uses".to_owned(), spec.uses.clone().into());
                self.complete_judge(&mut settings, judge, secrets);
                let scorer = make_scorer(self.plugins, &settings);
                scorer.map(|scorer| ScorerEvaluator::shared(&spec.id, scorer, criteria))
            }
            None => {
                let evaluators = self.plugins.evaluators().keys();
                let known = evaluators.chain(self.plugins.scorers().keys());
                let known: Vec<&str> = known.map(String::as_str).collect();
                self.unknown(
                    &["evaluators", number, "uses"],
                    "evaluator",
                    &spec.uses,
                    &known,
                );
                return None;
            }
        };
        let place = ["evaluators", number, "config"];
        made.map_err(|found| self.report_plugin_error(&place, found))
            .ok()
    }

    /// The tasks, with every mode given the runners that it needs for them.
    pub(super) fn tasks(
        &mut self,
        file: &SuiteFile,
        directory: &Path,
        modes: &mut [Mode],
        scenarios: &[LoadedScenario],
        plugins: &Plugins,
    ) -> Option<TaskSet> {
        let declared = self.runners(file, directory, plugins);
        let Some(spec) = &file.tasks else {
            self.refuse_without_tasks(file);
            return None;
        };
        let pass = self.conditions(spec);
        let choices = self.choices(file, modes, &declared);
        let chosen = self.selection.of_tasks();
        let reading = Reading {
            spec,
            chosen: &chosen,
            taken: scenarios
                .iter()
                .map(|loaded| &*loaded.scenario.id)
                .collect(),
            seed: self.selection.seed.or(file.execution.seed).unwrap_or(42),
            only_type: only_type(&file.runners),
        };
        let files = self.task_files(spec, directory);
        let examined = Examination {
            declared: &declared,
            choices: &choices,
        };
        let read = DataSet::read(&files, &reading, |task| examined.of(task));
        let set = match read {
            Ok(set) => set,
            Err(errors) => {
                self.errors.extend(errors.into_iter().take(MOST_ERRORS));
                return None;
            }
        };
        for (mode, choices) in modes.iter_mut().zip(choices) {
            let usable = choices
                .into_iter()
                .filter_map(|(kind, choice)| Some((kind, choice.ok()?)));
            mode.runners = Arc::new(usable.collect());
        }
        Some(TaskSet {
            record: TaskPlan {
                count: set.count(),
                hash: set.hash().to_owned(),
                ids: chosen.ids,
                tags: chosen.tags,
            },
            source: Arc::new(set),
            pass,
            timeout_ms: self
                .selection
                .timeout_ms
                .or(file.execution.timeout_default_ms)
                .unwrap_or(DEFAULT_TIMEOUT_MS),
            allowed_retries: self
                .selection
                .retries
                .or(file.execution.allowed_retries)
                .unwrap_or(0),
        })
    }

    fn refuse_without_tasks(&mut self, file: &SuiteFile) {
        for (key, is_there) in [
            ("runners", !file.runners.is_empty()),
            ("evaluators", !file.evaluators.is_empty()),
        ] {
            if is_there {
                let message = format!("`{key}` are for tasks, but the suite has no `tasks`");
                self.report(&[key], message);
            }
        }
    }

    fn task_files(&mut self, spec: &TasksSpec, directory: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for (number, pattern) in spec.paths.iter().enumerate() {
            match files_matching(directory, pattern) {
                Ok(found) => files.extend(found),
                Err(message) => self.report(&["tasks", "paths", &number.to_string()], message),
            }
        }
        if spec.paths.is_empty() {
            self.report(&["tasks"], "found no `paths`, expected files with tasks");
        }
        files
    }

    fn conditions(&mut self, spec: &TasksSpec) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (number, text) in spec.pass.iter().enumerate() {
            match text.parse() {
                Ok(condition) => conditions.push(condition),
                Err(message) => self.report(&["tasks", "pass", &number.to_string()], message),
            }
        }
        conditions
    }

    fn runners(&mut self, file: &SuiteFile, directory: &Path, plugins: &Plugins) -> Vec<Declared> {
        let mut declared = Vec::new();
        let prices = file.prices.file.as_ref().map(|path| directory.join(path));
        for (number, spec) in file.runners.iter().enumerate() {
            let number = number.to_string();
            if file
                .runners
                .iter()
                .filter(|other| other.id == spec.id)
                .count()
                > 1
            {
                let message = format!("the runner id `{}` is given twice", spec.id);
                self.report(&["runners", &number, "id"], message);
            }
            let setup = RunnerSetup {
                id: &spec.id,
                task_type: &spec.r#type,
                config: &spec.config,
                directory,
                prices_file: prices.as_deref(),
                plugins,
            };
            let used = self.runner(spec, &number, &setup);
            let input = self.schema(
                spec.input_schema.as_ref(),
                &number,
                "input_schema",
                directory,
            );
            let output = self.schema(
                spec.output_schema.as_ref(),
                &number,
                "output_schema",
                directory,
            );
            declared.extend(used.map(|used| Declared {
                used: Arc::new(used),
                task_type: spec.r#type.clone(),
                input,
                output,
            }));
        }
        declared
    }

    fn runner(
        &mut self,
        spec: &RunnerSpec,
        number: &str,
        setup: &RunnerSetup<'_>,
    ) -> Option<UsedRunner> {
        let Some(source) = self.plugins.runners().get(&spec.uses) else {
            let known: Vec<&str> = self.plugins.runners().keys().map(String::as_str).collect();
            self.unknown(&["runners", number, "uses"], "runner", &spec.uses, &known);
            return None;
        };
        if let Some(serves) = source.task_type().filter(|serves| *serves != spec.r#type) {
            let message = format!(
                "`{}` serves the type `{serves}`, found `{}`",
                spec.uses, spec.r#type
            );
            self.report(&["runners", number, "type"], message);
            return None;
        }
        match source.make(setup) {
            Ok(runner) => Some(UsedRunner::new(
                &spec.id,
                runner,
                Value::Object(spec.config.clone()),
            )),
            Err(found) => {
                self.report_plugin_error(&["runners", number, "config"], found);
                None
            }
        }
    }

    /// A schema in the suite, or in a file of its own.
    fn schema(
        &mut self,
        given: Option<&Value>,
        number: &str,
        key: &str,
        directory: &Path,
    ) -> Option<Schema> {
        let value = match given? {
            Value::String(name) => {
                let read = std::fs::read(directory.join(name)).map_err(|error| error.to_string());
                let parsed = read.and_then(|text| {
                    serde_json::from_slice(&text).map_err(|error| error.to_string())
                });
                match parsed {
                    Ok(value) => value,
                    Err(reason) => {
                        let message = format!("the schema `{name}` cannot be read: {reason}");
                        self.report(&["runners", number, key], message);
                        return None;
                    }
                }
            }
            inline => inline.clone(),
        };
        match SchemaCheck::new(&value) {
            Ok(check) => Some(Schema { value, check }),
            Err(found) => {
                self.report(&["runners", number, key], found.message);
                None
            }
        }
    }

    /// For each mode, which runner serves a type; or why none can be said to.
    fn choices(
        &mut self,
        file: &SuiteFile,
        modes: &[Mode],
        declared: &[Declared],
    ) -> Vec<BTreeMap<String, Choice>> {
        modes
            .iter()
            .map(|mode| {
                let wishes = wishes(file, &mode.name);
                self.check_wishes(&mode.name, &wishes, declared);
                let types = declared.iter().map(|runner| &runner.task_type);
                let choice = |kind: &String| {
                    let choice = choose(&mode.name, kind, wishes.get(kind), declared);
                    (kind.clone(), choice)
                };
                types.map(choice).collect()
            })
            .collect()
    }

    fn check_wishes(
        &mut self,
        mode: &str,
        wishes: &BTreeMap<String, String>,
        declared: &[Declared],
    ) {
        for (kind, wish) in wishes {
            let keys = ["modes", mode, "runners", kind];
            match declared.iter().find(|runner| runner.used.id == *wish) {
                Some(runner) if runner.task_type == *kind => {}
                Some(runner) => {
                    let message = format!(
                        "the runner `{wish}` serves the type `{}`, not `{kind}`",
                        runner.task_type
                    );
                    self.report(&keys, message);
                }
                None => {
                    let known: Vec<&str> = declared.iter().map(|runner| &*runner.used.id).collect();
                    self.unknown(&keys, "runner", wish, &known);
                }
            }
        }
    }
}

type Choice = Result<Arc<UsedRunner>, String>;

fn wishes(file: &SuiteFile, mode: &str) -> BTreeMap<String, String> {
    match &file.modes {
        crate::suite::file::Modes::Names(_) => BTreeMap::new(),
        crate::suite::file::Modes::Definitions(modes) => modes
            .iter()
            .find(|(name, _)| name == mode)
            .map(|(_, spec)| spec.runners.clone())
            .unwrap_or_default(),
    }
}

fn choose(mode: &str, kind: &str, wish: Option<&String>, declared: &[Declared]) -> Choice {
    let serving: Vec<&Declared> = declared
        .iter()
        .filter(|runner| runner.task_type == kind)
        .filter(|runner| wish.is_none_or(|wish| runner.used.id == *wish))
        .collect();
    match &serving[..] {
        [one] => Ok(Arc::clone(&one.used)),
        several => {
            let ids: Vec<&str> = several.iter().map(|runner| &*runner.used.id).collect();
            Err(format!(
                "{} serve the type `{kind}`, and the mode `{mode}` does not choose (`runners: {{ {kind}: … }}`)",
                listed(&ids)
            ))
        }
    }
}

/// The type of all runners, for tasks that name none.
fn only_type(runners: &[RunnerSpec]) -> Option<&str> {
    let first = &*runners.first()?.r#type;
    runners
        .iter()
        .all(|runner| runner.r#type == first)
        .then_some(first)
}

/// Looks at a task before anything runs.
struct Examination<'a> {
    declared: &'a [Declared],
    choices: &'a [BTreeMap<String, Choice>],
}

impl DeclaredSchemas for Examination<'_> {
    fn input(&self, task_type: &str) -> Option<&Value> {
        let mut runners = self
            .declared
            .iter()
            .filter(|runner| runner.task_type == task_type);
        runners.find_map(|runner| Some(&runner.input.as_ref()?.value))
    }

    fn output(&self, task_type: &str) -> Option<&Value> {
        let mut runners = self
            .declared
            .iter()
            .filter(|runner| runner.task_type == task_type);
        runners.find_map(|runner| Some(&runner.output.as_ref()?.value))
    }
}

impl Examination<'_> {
    fn of(&self, task: &Task) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (number, text) in task.pass().iter().enumerate() {
            if let Err(message) = text.parse::<Condition>() {
                errors.push(ConfigError::at(["pass", &number.to_string()], message));
            }
        }
        for (number, atom) in task.atoms().iter().enumerate() {
            let number = number.to_string();
            let place = |key: &'static str| match task {
                Task::Atomic(_) => vec![key.to_owned()],
                Task::Scenario(_) => vec!["steps".to_owned(), number.clone(), key.to_owned()],
            };
            let lack = self.lacks_runner(&atom.r#type);
            errors.extend(lack.map(|message| ConfigError::at(place("type"), message)));
            let is_filled_in = matches!(task, Task::Scenario(chain) if !chain.input_map.is_empty());
            let complaint = (!is_filled_in).then(|| self.complaint(&atom.r#type, &atom.input));
            let complaint = complaint.flatten();
            errors.extend(complaint.map(|message| ConfigError::at(place("input"), message)));
        }
        if let Task::Scenario(chain) = task {
            errors.extend(check_flow(chain, self));
        }
        errors
    }

    fn lacks_runner(&self, task_type: &str) -> Option<String> {
        let mut choices = self.choices.iter();
        choices.find_map(|choices| match choices.get(task_type) {
            Some(Ok(_)) => None,
            Some(Err(reason)) => Some(reason.clone()),
            None => {
                let known: Vec<&str> = choices.keys().map(String::as_str).collect();
                let hint = suggestion(task_type, &known).map(|hint| format!(" ({hint})"));
                let hint = hint.unwrap_or_default();
                Some(format!("no runner serves the type `{task_type}`{hint}"))
            }
        })
    }

    /// The error of the declared input schema about an input.
    fn complaint(&self, task_type: &str, input: &Value) -> Option<String> {
        let mut runners = self
            .declared
            .iter()
            .filter(|runner| runner.task_type == task_type);
        runners.find_map(|runner| {
            let complaint = runner.input.as_ref()?.check.complaint(input)?;
            Some(format!(
                "does not fit the input schema of `{}`: {complaint}",
                runner.used.id
            ))
        })
    }
}
