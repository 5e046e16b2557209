//! The keys of a suite file.

use super::capture::CaptureSpec;
use super::factors::FactorialSpec;
use super::hooks::HooksSpec;
use super::plugin_programs::PluginEntry;
use crate::diagnostics::LogLevel;
use assize_contracts::{AnalysisSpec, Budget, GateSpec, Sandbox, UntilSpec};
use assize_engine::{KeepWorkspace, Order};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Keys of capabilities that are not there yet.
pub(super) const LATER: &[&str] = &["log_level", "logLevel"];

/// A suite: the scenarios or tasks to run, the conditions, and the measurements.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SuiteFile {
    /// Version of the file's form: 1.
    #[serde(default = "one")]
    pub version: u32,
    /// For history and headings. Default: the directory's name.
    pub name: Option<String>,
    /// The provider of modes that name none.
    pub provider: Option<ProviderSpec>,
    /// Permissions of agents: what they may do without asking.
    #[serde(default)]
    pub permissions: Permissions,
    /// The wall around agents: `guard` (default), `none` or `{ container: { … } }`.
    pub sandbox: Option<Sandbox>,
    /// The conditions that are compared: definitions by name, or a list of names for a mode resolver. Not needed
    /// where `factors` or `with` make them.
    #[serde(default)]
    pub modes: Modes,
    /// Skills of modes that name none: directories with a `SKILL.md`, installed where each agent looks.
    pub skills: Option<Listed>,
    /// Skills beside those on trial, to see which one is chosen.
    pub neighbours: Option<Listed>,
    /// The instruction file of modes that name none: read as CLAUDE.md, AGENTS.md or whatever the agent looks for.
    pub instructions: Option<PathBuf>,
    /// Subagents of modes that name none: Markdown files with `name` and `description`.
    pub agents: Option<Listed>,
    /// MCP servers of every mode, by name.
    #[serde(default, alias = "mcpServers")]
    pub mcp_servers: Map<String, Value>,
    /// Settings by the name of the agent they are for, handed on as they are.
    #[serde(default)]
    pub settings: BTreeMap<String, Map<String, Value>>,
    /// An ablation in one line, instead of `modes`: what is given to one of two modes. A skill, an instruction file, a subagent, or
    /// what a mode can hold.
    pub with: Option<Ablated>,
    /// The same for something that the suite gives to its modes: `instructions`, or the name of a skill, a subagent or an MCP server.
    pub without: Option<Listed>,
    /// Switches, or factors with levels, that expand to modes: each says what it adds to a mode when it is on.
    pub factors: Option<Map<String, Value>>,
    /// The combinations of the factors that are run. Default: `full`.
    pub factorial: Option<FactorialSpec>,
    /// The models. Default: the provider's own.
    #[serde(default)]
    pub models: Vec<String>,
    /// A plugin that resolves modes which are only names.
    #[serde(alias = "modeResolver")]
    pub mode_resolver: Option<String>,
    /// The scenarios.
    pub scenarios: Option<Scenarios>,
    /// The tasks of the lab.
    pub tasks: Option<TasksSpec>,
    /// Runners that execute tasks.
    #[serde(default)]
    pub runners: Vec<RunnerSpec>,
    /// Evaluators that score tasks.
    #[serde(default)]
    pub evaluators: Vec<EvaluatorSpec>,
    /// Collectors that measure trials. Default: token, latency, cost, tool_calls.
    pub collectors: Option<Vec<String>>,
    /// Analyzers that explain sessions. Default: none.
    #[serde(default)]
    pub analyzers: Vec<String>,
    /// The scorer of trials: `uses` a built-in or a plugin, or `composite`, a list of several. Default: the scenarios' checks.
    pub scorer: Option<Map<String, Value>>,
    /// The model that scores rubrics: `api`, `base_url`, `model`, `key_env`, `votes`.
    pub judge: Option<JudgeSpec>,
    /// Hooks around runs, modes and trials: commands, or a plugin.
    pub hooks: Option<HooksSpec>,
    /// The proxy through which agents reach their LLM APIs, and which measures what passes.
    pub capture: Option<CaptureSpec>,
    /// Repetitions, order and concurrency.
    #[serde(default)]
    pub execution: ExecutionSpec,
    /// The reading of trials as evidence.
    #[serde(default)]
    pub analysis: AnalysisSpec,
    /// Conditions that runs must be shown to fulfil, such as `success >= 0.9` or `cost_total_usd <= baseline + 10%`.
    #[serde(default)]
    pub gates: Vec<GateSpec>,
    /// The prices of tokens.
    #[serde(default)]
    pub prices: PricesSpec,
    /// The records that are kept, and their directory.
    #[serde(default)]
    pub output: OutputSpec,
    /// Programs that serve providers, scorers, collectors and the like.
    #[serde(default)]
    pub plugins: Vec<PluginEntry>,
    /// Whatever a plugin needs.
    #[serde(default)]
    pub extensions: Map<String, Value>,
}

fn one() -> u32 {
    1
}

/// A provider and its settings; the name alone is enough where there are none.
#[derive(Debug, Clone)]
pub struct ProviderSpec {
    /// A built-in, a recipe or a plugin.
    pub uses: String,
    /// Its settings.
    pub overrides: Map<String, Value>,
}

/// A provider with settings, as it is written.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProviderSettings {
    /// A built-in, a recipe or a plugin.
    uses: String,
    /// Its settings.
    #[serde(flatten)]
    overrides: Map<String, Value>,
}

impl<'de> Deserialize<'de> for ProviderSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProviderVisitor)
    }
}

struct ProviderVisitor;

impl<'de> Visitor<'de> for ProviderVisitor {
    type Value = ProviderSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a provider such as `{ uses: claude-code }`")
    }

    fn visit_str<E>(self, name: &str) -> Result<ProviderSpec, E> {
        Ok(ProviderSpec {
            uses: name.to_owned(),
            overrides: Map::new(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<ProviderSpec, A::Error> {
        let items = serde::de::value::MapAccessDeserializer::new(items);
        let ProviderSettings { uses, overrides } = ProviderSettings::deserialize(items)?;
        Ok(ProviderSpec { uses, overrides })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ProviderSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProviderSpec".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let settings = generator.subschema_for::<ProviderSettings>();
        schemars::json_schema!({
            "description": "A provider and its settings; the name alone is enough where there are none.",
            "oneOf": [{ "type": "string" }, settings],
        })
    }
}

/// Permissions of agents: what they may do without asking.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Every tool call goes without confirmation.
    #[serde(alias = "autoApprove")]
    pub auto_approve: bool,
    /// These tools go without confirmation.
    #[serde(alias = "allowedTools")]
    pub allowed_tools: Vec<String>,
}

/// The conditions, in the order of the file.
#[derive(Debug)]
pub enum Modes {
    /// Names that a mode resolver knows.
    Names(Vec<String>),
    /// Definitions by name.
    Definitions(Vec<(String, ModeSpec)>),
}

/// The settings of a mode.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ModeSpec {
    /// Another provider than the suite's.
    pub provider: Option<ProviderSpec>,
    /// Variables for every process started for a session.
    pub environment: BTreeMap<String, EnvironmentValue>,
    /// System instructions for the agent.
    #[serde(alias = "systemInstructions")]
    pub system_instructions: String,
    /// Settings on top of the provider's.
    #[serde(alias = "providerOverrides")]
    pub provider_overrides: Map<String, Value>,
    /// The runner of a task type, where several serve it.
    pub runners: BTreeMap<String, String>,
    /// The wall around the agent, instead of the suite's.
    pub sandbox: Option<Sandbox>,
    /// Skills: directories with a `SKILL.md`, installed where the agent looks. Default: the suite's.
    pub skills: Option<Listed>,
    /// Skills beside those on trial, to see which one is chosen. Default: the suite's.
    pub neighbours: Option<Listed>,
    /// The instruction file, read as CLAUDE.md, AGENTS.md or whatever the agent looks for. Default: the suite's.
    pub instructions: Option<PathBuf>,
    /// Subagents: Markdown files with `name` and `description`. Default: the suite's.
    pub agents: Option<Listed>,
    /// MCP servers by name, besides those of the suite and the provider.
    #[serde(alias = "mcpServers")]
    pub mcp_servers: Map<String, Value>,
    /// Settings by the name of the agent they are for, besides those of the suite.
    pub settings: BTreeMap<String, Map<String, Value>>,
}

/// One text, or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "OneOrMany")]
pub struct Listed(pub Vec<String>);

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Listed {
    fn from(listed: OneOrMany) -> Self {
        match listed {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

/// The part that one of the two modes of an ablation has.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a path, a list of paths, or what a mode can hold"
)]
pub enum Ablated {
    /// A skill, an instruction file or a subagent.
    Path(String),
    /// Several of them.
    Paths(Vec<String>),
    /// Anything that a mode can hold.
    Mode(Box<ModeSpec>),
}

impl ModeSpec {
    /// The variables and their values.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let variables = self.environment.iter();
        variables
            .map(|(name, value)| (name.clone(), value.text().to_owned()))
            .collect()
    }
}

/// The value of a variable, and whether it is a secret.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected text, or `{ value: …, secret: true }`")]
pub enum EnvironmentValue {
    /// A secret if its name or its looks say so.
    Text(String),
    /// Declared to be one or not.
    Declared(DeclaredValue),
}

/// The value of a variable with a word about it.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeclaredValue {
    /// The value, usually `${env:NAME}`.
    pub value: String,
    /// True when it is removed from everything that agents write. Absent: its name and its looks decide.
    #[serde(default)]
    pub secret: Option<bool>,
}

impl EnvironmentValue {
    /// The value itself.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Declared(declared) => &declared.value,
        }
    }

    /// The suite's own declaration, if there is one.
    pub fn is_declared_secret(&self) -> Option<bool> {
        match self {
            Self::Text(_) => None,
            Self::Declared(declared) => declared.secret,
        }
    }
}

/// The scenarios of a suite.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Scenarios {
    /// Files, or patterns of files, relative to the suite.
    pub paths: Vec<String>,
    /// Directories of Harbor tasks, or directories with such below them, relative to the suite.
    pub harbor: Vec<String>,
    /// Only these.
    pub ids: Option<Vec<String>>,
    /// Only those of this set.
    pub set: Option<String>,
    /// Named sets of ids.
    pub sets: BTreeMap<String, Vec<String>>,
}

/// The tasks of a suite.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TasksSpec {
    /// Files, or patterns of files, relative to the suite: YAML, TOML, JSON, JSONL or CSV.
    pub paths: Vec<String>,
    /// Columns of CSV files by their field in a task, e.g. `input.text: body`.
    pub mapping: BTreeMap<String, ColumnSpec>,
    /// Fields for tasks that lack them, e.g. `type: intent`.
    pub defaults: Map<String, Value>,
    /// Only so many, drawn with a seed.
    pub sample: Option<SampleSpec>,
    /// The condition under which a task passes that states none, e.g. `accuracy >= 0.9`.
    pub pass: Vec<String>,
}

/// A column of a CSV file, and the type of its text.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ColumnSpec {
    /// The name of the column; its text is taken as it is.
    Name(String),
    /// The same with another reading of the text.
    Typed(TypedColumn),
}

/// A column and how its text is read.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TypedColumn {
    /// The name of the column.
    pub column: String,
    /// The type of its text.
    #[serde(rename = "as")]
    pub kind: ColumnKind,
}

/// The type of the text in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Itself.
    #[default]
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A JSON value.
    Json,
    /// A list, separated by commas.
    List,
}

/// A sample of the tasks. It depends on their ids and the seed alone.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// Their number.
    pub n: u32,
    /// The seed of the sample. Default: the seed of the execution.
    pub seed: Option<u64>,
}

/// A runner that executes tasks of a type.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunnerSpec {
    /// Unique in the suite.
    pub id: String,
    /// A built-in or a plugin.
    pub uses: String,
    /// The task type it serves.
    pub r#type: String,
    /// Its configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// JSON Schema of what it takes, or the name of its file.
    #[serde(alias = "inputSchema")]
    pub input_schema: Option<Value>,
    /// JSON Schema of what it gives, or the name of its file.
    #[serde(alias = "outputSchema")]
    pub output_schema: Option<Value>,
}

/// An evaluator that scores tasks.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvaluatorSpec {
    /// Unique in the suite.
    pub id: String,
    /// A built-in, a plugin, or any scorer.
    pub uses: String,
    /// The task types it scores; `scenario` are whole chains. Default: everything.
    #[serde(default)]
    pub types: Vec<String>,
    /// Its configuration.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// The execution of a suite.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionSpec {
    /// Trials of each scenario in each mode. Default: 5.
    pub repetitions: Option<u32>,
    /// `blocked` (default), `sequential` or `random`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub order: Option<Order>,
    /// The seed of all random choices. Default: 42.
    pub seed: Option<u64>,
    /// The number of trials at once. Default: 4.
    pub concurrency: Option<usize>,
    /// The number at once per provider, or per runner.
    pub limits: BTreeMap<String, usize>,
    /// One trial beforehand that counts for nothing. Default: true.
    pub warmup: Option<bool>,
    /// The time limit of scenarios that have none. Default: 120000.
    #[serde(alias = "timeoutDefaultMs")]
    pub timeout_default_ms: Option<u64>,
    /// Retries of void attempts in scenarios that set none. Default: 0.
    #[serde(alias = "allowedRetries")]
    pub allowed_retries: Option<u32>,
    /// Try failed attempts again, too. Success then means pass@k.
    #[serde(alias = "retryFails")]
    pub retry_fails: bool,
    /// The number of trials at the start of a mode that may be void for the same reason before no more of it are started. Default:
    /// 3; 0 for any number.
    #[serde(alias = "stopAfterVoids")]
    pub stop_after_voids: Option<u32>,
    /// The most seconds for trying out workspaces and MCP servers before the first trial. Default: 60; 0 tries none.
    pub preflight: Option<u64>,
    /// The rule that stops the run before its last repetition. Declared before the first trial.
    pub until: Option<UntilSpec>,
    /// The most that the run may spend: `usd`, `tokens`, `minutes`. It stops at whole blocks.
    pub budget: Option<Budget>,
}

/// The model that scores rubrics.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSpec {
    /// `anthropic`, `openai` (Chat Completions, which many services speak), `openai-responses` or `gemini`.
    pub api: Option<String>,
    /// Its address. Default: the API's own service.
    #[serde(alias = "baseUrl")]
    pub base_url: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The environment variable with the key.
    #[serde(alias = "keyEnv")]
    pub key_env: Option<String>,
    /// Votes on each trial. The majority counts, or the median of scores. Default: 1.
    pub votes: Option<u64>,
    /// The time for one answer. Default: 120000.
    #[serde(alias = "timeoutMs")]
    pub timeout_ms: Option<u64>,
    /// Retries at a busy endpoint. Default: 2.
    pub retries: Option<u64>,
    /// Randomness. Default: the service's own.
    pub temperature: Option<f64>,
    /// The most tokens of one answer. Default: the service's own.
    #[serde(alias = "maxOutputTokens")]
    pub max_output_tokens: Option<u64>,
}

/// The prices of tokens. The built-in table knows the usual models.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PricesSpec {
    /// A file that goes before the built-in table, relative to the suite: the form of LiteLLM or of models.dev.
    pub file: Option<PathBuf>,
}

/// The records of a run, and their directory.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OutputSpec {
    /// The directory of runs, relative to the suite. Default: `.assize/runs`.
    #[serde(alias = "resultsDir")]
    pub results_dir: Option<PathBuf>,
    /// Export sessions even when no analyzer needs them. Default: true.
    #[serde(alias = "sessionExport")]
    pub session_export: Option<bool>,
    /// Keep every exported trace. Default: true.
    #[serde(alias = "storeTraces")]
    pub store_traces: Option<bool>,
    /// The part of workspaces that is kept: `changed` (default), `all` or `none`.
    #[serde(alias = "keepWorkspace")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub keep_workspace: Option<KeepWorkspace>,
    /// The level of `log.jsonl`: `off` (default), `error`, `warn`, `info`, `debug` or `trace`.
    #[serde(alias = "logLevel")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub log_level: Option<LogLevel>,
}

impl Default for Modes {
    fn default() -> Self {
        Self::Definitions(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Modes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModesVisitor)
    }
}

struct ModesVisitor;

impl<'de> Visitor<'de> for ModesVisitor {
    type Value = Modes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("modes by name, or a list of names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Modes, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = items.next_element()? {
            names.push(name);
        }
        Ok(Modes::Names(names))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Modes, A::Error> {
        let mut definitions = Vec::new();
        // A name with nothing behind it is a mode that changes nothing.
        while let Some((name, mode)) = items.next_entry::<String, Option<ModeSpec>>()? {
            definitions.push((name, mode.unwrap_or_default()));
        }
        Ok(Modes::Definitions(definitions))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Modes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Modes".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mode = generator.subschema_for::<Option<ModeSpec>>();
        schemars::json_schema!({
            "description": "Definitions by name, or a list of names that a mode resolver knows.",
            "oneOf": [
                { "type": "object", "additionalProperties": mode, "minProperties": 1 },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 }
            ]
        })
    }
}
