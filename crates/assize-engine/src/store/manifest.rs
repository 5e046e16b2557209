//! The manifest: what was run, kept beside the results so that they can be understood and continued.

use super::RunFile;
use super::error::{StoreError, io};
use super::files;
use crate::plan::{Arm, Order, Plan};
use crate::shard::{Round, Shard};
use assize_contracts::{Catalog, JsonMap, Metric, Reading, SCHEMA_VERSION, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const FORMAT: &str = "assize-run";
const FILE: &str = RunFile::Manifest.name();

/// The head of a run directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always `assize-run`.
    pub format: String,
    /// Version of the directory's form.
    pub schema_version: u32,
    /// Sorts by time.
    pub run_id: String,
    /// The suite's name.
    pub name: String,
    /// Time of the first start.
    pub created_at: Timestamp,
    /// The state: running, or complete.
    pub state: RunState,
    /// Version of Assize that started the run.
    pub assize_version: String,
    /// Hash of everything that could change a trial's result. Equal suites have equal fingerprints.
    pub fingerprint: String,
    /// The plan, the whole of it also in a shard.
    pub plan: PlanRecord,
    /// The part of the plan that this run does. Absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRecord>,
    /// The resolved suite, which makes trials comparable. Environment values are only referred to.
    pub suite: JsonMap,
    /// Environment values the suite uses: names and hashes, never values.
    pub environment: BTreeMap<String, String>,
    /// The metrics seen so far: unit, direction, words. Runs of 0.1 have none; [`Manifest::catalog`] reads both.
    #[serde(default, skip_serializing_if = "Catalog::is_empty")]
    pub metrics: Catalog,
    /// Units of the metrics seen so far, by name. All that runs of 0.1 stored about metrics.
    #[serde(default)]
    pub metric_units: BTreeMap<String, String>,
    /// The reading of trials as evidence; typed by [`Manifest::reading`]. Runs of 0.1 keep it in `provenance`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    reading: Value,
    /// Facts: versions, git state, paths.
    #[serde(default)]
    pub provenance: JsonMap,
}

/// The parts of a reading. Runs of 0.1 have them in `provenance`.
const READING: [&str; 7] = [
    "analysis",
    "gates",
    "baseline",
    "prices",
    "primary",
    "factorial",
    "until",
];

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Running, or ended by a crash.
    Running,
    /// Ended with cells open.
    Incomplete,
    /// All cells are done.
    Complete,
}

/// The input of a plan; the cells follow from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRecord {
    /// Scenario ids.
    pub scenarios: Vec<String>,
    /// The tasks after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskPlan>,
    /// Conditions.
    pub arms: Vec<Arm>,
    pub repetitions: u32,
    pub order: Order,
    pub seed: u64,
}

/// The tasks of a run. They may be many, so that not their ids but what they follow from is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPlan {
    /// Their number.
    pub count: u32,
    /// Hash of their content, in order.
    pub hash: String,
    /// Only these were chosen. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Only those with one of these tags were chosen. Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// The part of a plan that a run does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardRecord {
    /// Its place among all parts.
    #[serde(flatten)]
    pub shard: Shard,
    /// The number of its trials.
    pub cells: u64,
    /// Equal for shards of the same plan and suite; [`Manifest::plan_fingerprint`].
    pub plan_fingerprint: String,
    /// Equal for shards of the same division of that plan.
    pub division: String,
    /// The round that the trials are of, where the run is looked at between rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
}

impl ShardRecord {
    /// The end of the ids of its runs.
    pub(crate) fn suffix(&self) -> String {
        self.shard.suffix(self.round.as_ref())
    }
}

impl From<&Plan> for PlanRecord {
    fn from(plan: &Plan) -> Self {
        Self {
            scenarios: plan.scenarios.clone(),
            tasks: None,
            arms: plan.arms.clone(),
            repetitions: plan.repetitions,
            order: plan.order,
            seed: plan.seed,
        }
    }
}

impl PlanRecord {
    /// The number of trials planned.
    pub fn cells(&self) -> u64 {
        let tasks = self
            .tasks
            .as_ref()
            .map_or(0, |tasks| u64::from(tasks.count));
        let subjects = self.scenarios.len() as u64 + tasks;
        subjects * self.arms.len() as u64 * u64::from(self.repetitions)
    }
}

impl Manifest {
    /// The head of a new run.
    pub(crate) fn new(
        run_id: String,
        name: String,
        created_at: Timestamp,
        plan: &Plan,
        suite: JsonMap,
        environment: BTreeMap<String, String>,
    ) -> Self {
        let fingerprint = fingerprint(&suite, &environment);
        Self {
            format: FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            run_id,
            name,
            created_at,
            state: RunState::Running,
            assize_version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint,
            plan: plan.into(),
            shard: None,
            suite,
            environment,
            metrics: Catalog::default(),
            metric_units: BTreeMap::new(),
            reading: Value::Null,
            provenance: JsonMap::new(),
        }
    }

    /// The number of trials that this run does: those of the plan, or of its shard.
    pub fn planned(&self) -> u64 {
        let of_shard = self.shard.as_ref().map(|shard| shard.cells);
        of_shard.unwrap_or_else(|| self.plan.cells())
    }

    /// Hash of everything that decides the cells and could change their results. Runs in which it is equal are parts of one run.
    pub fn plan_fingerprint(&self) -> String {
        let text = serde_json::to_vec(&(&self.fingerprint, &self.plan));
        let text = text.expect("a plan is plain data");
        blake3::hash(&text).to_hex()[..32].to_owned()
    }

    /// The metrics of the run. Those of 0.1 are the built-in ones, and others by their stored unit.
    pub fn catalog(&self) -> Catalog {
        let mut catalog = self.metrics.clone();
        for (name, unit) in &self.metric_units {
            if !catalog.contains(name) {
                let mut metric = Metric::named(name);
                if !metric.is_built_in() {
                    metric.unit = unit.clone().into();
                }
                catalog.insert(metric);
            }
        }
        catalog
    }

    /// The reading of the run's trials as evidence. A part that cannot be read is an error: without it verdicts would differ.
    pub fn reading(&self) -> Result<Reading, StoreError> {
        if let Value::Object(reading) = &self.reading
            && let Some(key) = reading.keys().find(|key| !READING.contains(&key.as_str()))
        {
            let reason = format!("unknown key, expected one of {}", READING.join(", "));
            return Err(self.unreadable(key, reason));
        }
        let [analysis, gates, baseline, prices, primary, factorial, until] = READING;
        Ok(Reading {
            analysis: self.reading_part(analysis)?,
            gates: self.reading_part(gates)?,
            baseline: self.reading_part(baseline)?,
            prices: self.reading_part(prices)?,
            primary: self.reading_part(primary)?,
            factorial: self.reading_part(factorial)?,
            until: self.reading_part(until)?,
        })
    }

    pub(crate) fn set_reading(&mut self, reading: &Reading) {
        self.reading = serde_json::to_value(reading).expect("a reading is plain data");
        for part in READING {
            self.provenance.shift_remove(part);
        }
    }

    /// Takes over another reading. All tables of prices that trials were priced by stay named.
    pub(super) fn read_as(&mut self, mut now: Reading) -> Result<(), StoreError> {
        let [.., prices, _, _, _] = READING;
        let mut named: Vec<String> = self.reading_part(prices)?;
        now.prices.retain(|version| !named.contains(version));
        named.append(&mut now.prices);
        now.prices = named;
        self.set_reading(&now);
        Ok(())
    }

    fn reading_part<T: DeserializeOwned + Default>(&self, part: &str) -> Result<T, StoreError> {
        let parts = self.reading.as_object().unwrap_or(&self.provenance);
        match parts.get(part) {
            None | Some(Value::Null) => Ok(T::default()),
            Some(stored) => {
                T::deserialize(stored).map_err(|error| self.unreadable(part, error.to_string()))
            }
        }
    }

    fn unreadable(&self, part: &str, reason: String) -> StoreError {
        let place = match self.reading.is_object() {
            true => "reading",
            false => "provenance",
        };
        StoreError::Reading {
            id: self.run_id.clone(),
            place: format!("{place}.{part}"),
            reason,
        }
    }

    pub(crate) fn set_metrics(&mut self, metrics: Catalog) {
        let unit = |metric: &Metric| (metric.name.to_string(), metric.unit.to_string());
        self.metric_units = metrics.iter().map(unit).collect();
        self.metrics = metrics;
    }

    /// Reads the head of a run directory; refuses what is not one or is from the future.
    pub(crate) fn read(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(FILE);
        let foreign = |reason: String| StoreError::Foreign {
            path: directory.to_owned(),
            reason,
        };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(foreign(format!("it has no `{FILE}`")));
            }
            Err(error) => return Err(io("read", &path)(error)),
        };
        let value: Value = serde_json::from_slice(&text)
            .map_err(|error| foreign(format!("its `{FILE}` is not JSON ({error})")))?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(foreign(format!(
                "its `{FILE}` does not say `\"format\": \"{FORMAT}\"`"
            )));
        }
        let found = value
            .get("schemaVersion")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        if found > u64::from(SCHEMA_VERSION) {
            return Err(StoreError::Newer {
                path,
                found,
                supported: SCHEMA_VERSION,
            });
        }
        serde_json::from_value(value)
            .map_err(|error| foreign(format!("its `{FILE}` cannot be understood ({error})")))
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
        text.push(b'\n');
        files::replace(&directory.join(FILE), &text)
    }

    /// Takes over the scoring of a suite. The description of what was run stays unchanged.
    pub(crate) fn score_by(&mut self, now: &JsonMap, tasks: Option<&TaskPlan>) {
        if let (Some(plan), Some(now)) = (&mut self.plan.tasks, tasks) {
            plan.hash.clone_from(&now.hash);
        }
        let of_tasks: &[&str] = if tasks.is_some() { &["tasks"] } else { &[] };
        for &key in ["scorer", "judge", "evaluators"].iter().chain(of_tasks) {
            match now.get(key) {
                Some(value) => drop(self.suite.insert(key.to_owned(), value.clone())),
                None => drop(self.suite.shift_remove(key)),
            }
        }
        let scenarios = self
            .suite
            .get_mut("scenarios")
            .and_then(Value::as_object_mut);
        for (id, scenario) in scenarios.into_iter().flatten() {
            let same = now.get("scenarios").and_then(|all| all.get(id));
            if let Some(same) = same.filter(|same| same.get("prompt") == scenario.get("prompt")) {
                *scenario = same.clone();
            }
        }
        self.fingerprint = fingerprint(&self.suite, &self.environment);
    }

    /// The differences that make a suite's trials incomparable with this run's, in words. Empty: they are comparable.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let suites = (
            Value::Object(self.suite.clone()),
            Value::Object(other.suite.clone()),
        );
        compare("", &suites.0, &suites.1, &mut changes);
        for (name, hash) in &self.environment {
            if other
                .environment
                .get(name)
                .is_some_and(|other| other != hash)
            {
                changes.push(format!(
                    "the environment variable `{name}` has another value"
                ));
            }
        }
        let content = |manifest: &Self| manifest.plan.tasks.as_ref().map(|plan| plan.hash.clone());
        if content(self) != content(other) {
            changes.push("the tasks have another content".to_owned());
        }
        if self.plan.seed != other.plan.seed {
            changes.push(change(
                "execution.seed",
                &self.plan.seed.into(),
                &other.plan.seed.into(),
            ));
        }
        if self.plan.order != other.plan.order {
            let (old, new) = (self.plan.order.as_str(), other.plan.order.as_str());
            changes.push(change("execution.order", &old.into(), &new.into()));
        }
        for arm in self
            .plan
            .arms
            .iter()
            .filter(|arm| !other.plan.arms.contains(arm))
        {
            changes.push(format!(
                "mode `{}` with model `{}` is gone",
                arm.mode, arm.model
            ));
        }
        for arm in other
            .plan
            .arms
            .iter()
            .filter(|arm| !self.plan.arms.contains(arm))
        {
            changes.push(format!(
                "mode `{}` with model `{}` is new",
                arm.mode, arm.model
            ));
        }
        changes
    }

    /// The differences that keep two runs from being parts of one, in words. Never empty.
    pub(super) fn plan_differences(&self, other: &Self) -> Vec<String> {
        let mut changes = self.differences(other);
        let (one, two) = (&self.plan, &other.plan);
        if one.repetitions != two.repetitions {
            let (one, two) = (one.repetitions.into(), two.repetitions.into());
            changes.push(change("execution.repetitions", &one, &two));
        }
        if one.scenarios != two.scenarios && changes.is_empty() {
            changes.push("other scenarios were chosen".to_owned());
        }
        if changes.is_empty() {
            changes.push(match one == two {
                true => "they use different environment variables".to_owned(),
                false => "their plans differ".to_owned(),
            });
        }
        changes
    }
}

/// The id of a run that begins now: `2026-11-15T21:03:59.120Z` becomes `20261115-210359-1eb8`, which reads well and sorts by time even
/// within a second.
pub fn new_run_id(now: &Timestamp) -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since_1970.unwrap_or_default().subsec_nanos();
    let digits = now.as_str().chars().filter(char::is_ascii_digit);
    let digits: String = digits.take(14).collect();
    let fraction = (u64::from(nanoseconds) << 16) / 1_000_000_000;
    format!("{}-{}-{fraction:04x}", &digits[..8], &digits[8..])
}

fn fingerprint(suite: &JsonMap, environment: &BTreeMap<String, String>) -> String {
    let suite = sorted(&Value::Object(suite.clone()));
    let text = serde_json::to_vec(&(suite, environment)).expect("a suite is plain data");
    blake3::hash(&text).to_hex()[..32].to_owned()
}

/// The same value with all keys in order, so that equal content has equal text.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let by_key: BTreeMap<&String, Value> = map
                .iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            by_key
                .into_iter()
                .map(|(key, value)| (key.clone(), value))
                .collect()
        }
        other => other.clone(),
    }
}

fn compare(path: &str, old: &Value, new: &Value, changes: &mut Vec<String>) {
    let (Value::Object(old_map), Value::Object(new_map)) = (old, new) else {
        if old != new {
            changes.push(change(path, old, new));
        }
        return;
    };
    let inner = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    for (key, old) in old_map {
        match new_map.get(key) {
            Some(new) => compare(&inner(key), old, new, changes),
            None => changes.push(format!("`{}` is gone", inner(key))),
        }
    }
    for key in new_map.keys().filter(|key| !old_map.contains_key(*key)) {
        changes.push(format!("`{}` is new", inner(key)));
    }
}

fn change(path: &str, old: &Value, new: &Value) -> String {
    format!("`{path}` was {}, is {}", excerpt(old), excerpt(new))
}

fn excerpt(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
