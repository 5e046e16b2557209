//! The messages of the plugin protocol, each typed once. `docs/plugin-protocol.md` explains them; their JSON Schema is
//! checked in, and the kits' types are generated from it.

use assize_contracts::{
    AfterScenarioContext, AtomicTask, BaseScenario, BeforeScenarioContext, Concurrency,
    CreateSessionParams, Fault, HookEvent, JsonMap, PromptResult, ProviderConfig, RunContext,
    RunRecord, RunSetting, ScenarioTask, ScorerContext, SessionHandle, SessionTrace, VoidCause,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

#[cfg(feature = "schema")]
mod schema;
#[cfg(feature = "schema")]
pub use schema::{METHODS, Method, schema};

/// The version spoken here. Raised only for changes that a speaker of the old one would misunderstand.
pub const PROTOCOL_VERSION: u32 = 1;

/// No line is longer, in either direction.
pub const LONGEST_MESSAGE: usize = 16 << 20;

/// Codes of errors. The first three are JSON-RPC's own.
pub mod codes {
    /// The method is not known.
    pub const UNKNOWN_METHOD: i64 = -32601;
    /// The parameters are not what the method takes.
    pub const BAD_PARAMS: i64 = -32602;
    /// The plugin's own code broke.
    pub const INTERNAL: i64 = -32603;
    /// The request was cancelled.
    pub const CANCELLED: i64 = -32800;
    /// None of the versions is spoken; `data.supported` lists those that are.
    pub const VERSION: i64 = -32022;
    /// The plugin could not do what it was asked; `data` is [`FailureData`](super::FailureData).
    pub const FAILED: i64 = -32000;
}

/// The first request: the host, its version, and the suite's `options`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The highest version the host speaks.
    pub protocol_version: u32,
    /// The host.
    pub info: Info,
    /// Options that the suite gives to the plugin.
    #[serde(default)]
    pub options: JsonMap,
    /// Further abilities of the host; none yet.
    #[serde(default)]
    pub capabilities: JsonMap,
}

/// The answer to `initialize`: the version to speak and everything the plugin serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The host's version, or the highest the plugin speaks.
    pub protocol_version: u32,
    /// The plugin.
    pub info: Info,
    /// The contracts it serves.
    #[serde(default)]
    pub capabilities: Capabilities,
}

/// A program's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// The contracts that a plugin serves. Several of each contract may be offered; suites refer to them by id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// Ways to reach agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderOffer>,
    /// Judges of trials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scorers: Vec<ScorerOffer>,
    /// Sources of metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorOffer>,
    /// Explainers of sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyzers: Vec<AnalyzerOffer>,
    /// Present when the plugin resolves modes; suites use the plugin's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_resolver: Option<ModeResolverOffer>,
    /// Present when the plugin has hooks; suites use the plugin's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<HooksOffer>,
    /// Executors of tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<RunnerOffer>,
    /// Judges of tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evaluators: Vec<EvaluatorOffer>,
    /// The number of requests that may be under way at once. Absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
}

/// A provider that the plugin serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderOffer {
    /// The name under which suites use it.
    pub id: String,
    /// The extent that one instance can serve.
    #[serde(default)]
    pub scope: OfferedScope,
    /// The number of sessions that one instance can have at once. Absent: what the plugin says, else one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The model when the suite names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// True when sessions can cost real money. Absent: they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_cost: Option<bool>,
    /// The nature of its sessions.
    #[serde(default)]
    pub nature: OfferedNature,
    /// The time past a prompt's timeout that it may take to wind down and answer with what was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_grace_ms: Option<u64>,
}

/// The part of a run that one instance of a provider can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OfferedScope {
    /// Every session on its own: `createSession` carries mode, model and all settings.
    Session,
    /// One mode and model: a program of its own is started for each.
    #[default]
    Mode,
    /// One mode and model at a time, all in one program: modes run one after another.
    Single,
}

/// The nature of a provider's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OfferedNature {
    /// Real ones.
    #[default]
    Live,
    /// Played back from a recording.
    Replayed,
    /// Made up.
    Simulated,
}

/// A scorer that the plugin serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScorerOffer {
    /// The name under which suites use it.
    pub id: String,
}

/// A collector that the plugin serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectorOffer {
    /// The name under which suites use it.
    pub id: String,
}

/// An analyzer that the plugin serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnalyzerOffer {
    /// The name under which suites use it.
    pub name: String,
}

/// The plugin resolves modes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeResolverOffer {}

/// The hooks that the plugin has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HooksOffer {
    /// Only these are called.
    #[serde(default, deserialize_with = "known_events")]
    pub events: Vec<HookEvent>,
    /// True when several may be under way at once.
    #[serde(default)]
    pub concurrent: bool,
}

/// Hooks of a later version are never called, and so do no harm.
fn known_events<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HookEvent>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let known = |name: String| HookEvent::deserialize(Value::String(name)).ok();
    Ok(names.into_iter().filter_map(known).collect())
}

/// A runner that the plugin serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerOffer {
    /// The name under which suites use it.
    pub id: String,
    /// The task type it serves.
    pub r#type: String,
    /// Its version; part of every record's provenance.
    #[serde(default)]
    pub version: String,
}

/// An evaluator that the plugin serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluatorOffer {
    /// The name under which suites use it.
    pub id: String,
    /// The metrics it can give.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// `provider/init`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderInitParams<'a> {
    /// The provider's id.
    pub provider: Cow<'a, str>,
    /// The configuration that the instance is started with.
    pub config: Cow<'a, ProviderConfig>,
}

/// `provider/createSession`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderCreateSessionParams<'a> {
    /// The provider's id.
    pub provider: Cow<'a, str>,
    /// The parameters that the session is created with.
    pub params: Cow<'a, CreateSessionParams>,
}

/// `provider/prompt`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderPromptParams<'a> {
    /// The provider's id.
    pub provider: Cow<'a, str>,
    /// The session.
    pub handle: Cow<'a, SessionHandle>,
    /// The user's message.
    pub text: Cow<'a, str>,
    /// The rest of the trial's time.
    pub timeout_ms: u64,
}

/// `provider/exportSession` and `provider/destroySession`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderSessionParams<'a> {
    /// The provider's id.
    pub provider: Cow<'a, str>,
    /// The session.
    pub handle: Cow<'a, SessionHandle>,
}

/// `provider/shutdown`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderShutdownParams<'a> {
    /// The provider's id.
    pub provider: Cow<'a, str>,
}

/// `scorer/evaluate`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScorerEvaluateParams<'a> {
    /// The scorer's id.
    pub scorer: Cow<'a, str>,
    /// The scenario that the agent was given.
    pub scenario: Cow<'a, BaseScenario>,
    /// The result of the session.
    pub context: Cow<'a, ScorerContext>,
    /// The keys of the suite's `scorer` besides `uses`.
    #[serde(default, skip_serializing_if = "is_empty_map")]
    pub settings: Cow<'a, JsonMap>,
}

fn is_empty_map(map: &JsonMap) -> bool {
    map.is_empty()
}

/// `collector/collect`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectorCollectParams<'a> {
    /// The collector's id.
    pub collector: Cow<'a, str>,
    /// All turns merged; after a failure what is known.
    pub result: Cow<'a, PromptResult>,
    /// The scenario that the agent was given.
    pub scenario: Cow<'a, BaseScenario>,
    /// The mode.
    pub mode: Cow<'a, str>,
    /// The session. Null when export is off or failed.
    #[serde(default)]
    pub trace: Option<Cow<'a, SessionTrace>>,
}

/// `analyzer/analyze`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnalyzerAnalyzeParams<'a> {
    /// The analyzer's id.
    pub analyzer: Cow<'a, str>,
    /// The session.
    pub trace: Cow<'a, SessionTrace>,
    /// The scenario that the agent was given.
    pub scenario: Cow<'a, BaseScenario>,
    /// The mode.
    pub mode: Cow<'a, str>,
}

/// `modeResolver/resolve`, `hooks/beforeMode` and `hooks/afterMode`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeParams<'a> {
    /// The mode's name.
    pub mode: Cow<'a, str>,
}

/// `hooks/beforeScenario`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BeforeScenarioParams<'a> {
    /// The trial about to begin.
    pub context: Cow<'a, BeforeScenarioContext>,
}

/// `hooks/afterScenario`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterScenarioParams<'a> {
    /// The trial and its row as it stands.
    pub context: Cow<'a, AfterScenarioContext>,
}

/// `hooks/beforeRun` and `hooks/afterRun`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunParams<'a> {
    /// The run.
    pub context: Cow<'a, RunContext>,
}

/// `runner/execute`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerExecuteParams<'a> {
    /// The runner's id.
    pub runner: Cow<'a, str>,
    /// The task to execute.
    pub task: Cow<'a, AtomicTask>,
    /// The runner's configuration in the suite.
    #[serde(default)]
    pub config: Cow<'a, Value>,
    /// The cell of the experiment. Absent when there is no experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<ExecutionSetting<'a>>,
}

/// The condition under which a task is executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSetting<'a> {
    /// The mode.
    pub mode: Cow<'a, str>,
    /// The model that the suite asks for. Empty when it names none.
    pub model: Cow<'a, str>,
    /// The repetition; −1 for the warm-up.
    pub iteration: i64,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The step of a chain that is executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// The same for the same cell and attempt in every run with the same seed.
    pub seed: u64,
    /// Time limit of the execution.
    pub timeout_ms: u64,
    /// The mode's system instructions.
    pub system_instructions: Cow<'a, str>,
}

impl ExecutionSetting<'_> {
    /// The setting in the form that runners in Rust receive.
    pub(crate) fn into_setting(self) -> RunSetting {
        RunSetting {
            mode: self.mode.into_owned(),
            model: self.model.into_owned(),
            iteration: self.iteration,
            attempt: self.attempt,
            step: self.step.map(Cow::into_owned),
            seed: self.seed,
            timeout: Duration::from_millis(self.timeout_ms),
            system_instructions: self.system_instructions.into_owned(),
            ..RunSetting::default()
        }
    }
}

impl<'a> From<&'a RunSetting> for ExecutionSetting<'a> {
    fn from(setting: &'a RunSetting) -> Self {
        Self {
            mode: Cow::Borrowed(&setting.mode),
            model: Cow::Borrowed(&setting.model),
            iteration: setting.iteration,
            attempt: setting.attempt,
            step: setting.step.as_deref().map(Cow::Borrowed),
            seed: setting.seed,
            timeout_ms: u64::try_from(setting.timeout.as_millis()).unwrap_or(u64::MAX),
            system_instructions: Cow::Borrowed(&setting.system_instructions),
        }
    }
}

/// `evaluator/evaluate`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluatorEvaluateParams<'a> {
    /// The evaluator's id.
    pub evaluator: Cow<'a, str>,
    /// The execution.
    pub run: Cow<'a, RunRecord>,
    /// The executed task.
    pub task: Cow<'a, AtomicTask>,
    /// The evaluator's configuration in the suite.
    #[serde(default, skip_serializing_if = "is_empty_map")]
    pub config: Cow<'a, JsonMap>,
}

/// `evaluator/evaluateScenario`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluatorEvaluateScenarioParams<'a> {
    /// The evaluator's id.
    pub evaluator: Cow<'a, str>,
    /// The execution of the whole chain.
    pub run: Cow<'a, RunRecord>,
    /// The chain.
    pub task: Cow<'a, ScenarioTask>,
    /// The evaluator's configuration in the suite.
    #[serde(default, skip_serializing_if = "is_empty_map")]
    pub config: Cow<'a, JsonMap>,
}

/// `$/cancel`, in either direction: the answer to this request is not needed any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelParams {
    /// The request.
    pub id: u64,
}

/// `$/log`, from the plugin: a line for its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogParams {
    /// Its severity: `debug`, `info`, `warn`, `error`.
    #[serde(default = "info")]
    pub level: String,
    /// The message.
    pub message: String,
}

fn info() -> String {
    "info".to_owned()
}

/// `$/progress`, from the plugin: how far a request has come. Kept in the plugin's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressParams {
    /// The request's id.
    pub token: Value,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The amount that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// Of how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// The error of a failed request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RpcError {
    /// One of the codes of the protocol.
    pub code: i64,
    /// The error, for people.
    #[serde(default)]
    pub message: String,
    /// The error, for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// `error.data` of a provider's failure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FailureData {
    /// Whose fault it is. Absent: not the agent's, so the trial is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// A word for machines; becomes the row's `errorCode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Usage before the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<PromptResult>,
    /// The reason why the trial is void, where the provider knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void_cause: Option<VoidCause>,
}
