//! The words, stored records and plugin contracts of Assize.
//!
//! A plugin author depends on this crate alone: the types below are what goes over the wire and onto
//! disk (JSON names exactly as specified), the traits are the eight places where Assize can be extended:
//! [`SessionProvider`], [`Scorer`], [`Collector`], [`Analyzer`], [`ModeResolver`], [`RunHooks`],
//! [`Runner`] and [`Evaluator`]. No IO and no runtime in here.
//!
//! One rule runs through all records: a number that was not measured is `None` (JSON `null`), never 0.

#![warn(missing_docs)]

mod causes;
mod config_error;
mod metric;
mod number;
mod timestamp;
mod tokens;

mod placeholder;
mod prompt;
mod sandbox;
mod scenario;
mod trace;

mod analysis;
mod caution;
mod cell_key;
mod design;
mod reading;
mod row;
mod void_cause;

mod run_record;
mod score_record;
mod task;

mod analyzer;
mod collector;
mod evaluator;
mod hooks;
mod mode_resolver;
mod model_use;
mod provider;
mod runner;
mod scorer;

#[doc(hidden)]
pub mod fuzzing;
mod plugins;
#[cfg(feature = "schema")]
pub mod schema;
pub mod testing;

pub use async_trait::async_trait;

pub use analysis::{AnalysisFinding, AnalysisResult, SessionAnalysisBundle};
pub use analyzer::Analyzer;
pub use causes::with_causes;
pub use caution::{Caution, CautionCode};
pub use cell_key::CellKey;
pub use collector::{Collector, CustomMetric, MetricValue};
pub use config_error::ConfigError;
pub use design::{
    Budget, DecidedRecord, FactorRecord, FactorialMode, FactorialRecord, LookRecord, Spent,
    StoppedRecord, StoppingMethod, UntilSpec,
};
pub use evaluator::{Evaluator, PartialScores};
pub use hooks::{AfterScenarioContext, BeforeScenarioContext, HookEvent, RunContext, RunHooks};
pub use metric::{AtLimit, Better, Catalog, Metric, MetricKind, RowField, SUCCESS, Typical};
pub use mode_resolver::{ModeConfig, ModeResolver};
pub use model_use::{ModelUse, Wire, last_words};
pub use number::{Millis, Number, Usd};
pub use placeholder::{TemplatePiece, fill_template, split_template};
pub use plugins::{
    EvaluatorSetup, EvaluatorSource, Plugins, ProviderSource, RunnerSetup, RunnerSource,
};
pub use prompt::{
    CompletionReason, CostBreakdown, ProgramUse, PromptMetrics, PromptResult, TimingBreakdown,
    TimingSegment, ToolCallRecord,
};
pub use provider::{
    Concurrency, CreateSessionParams, Fault, LONG_CALL_LIMIT, Nature, PermissionConfig,
    ProviderConfig, ProviderError, ProviderScope, QUICK_CALL_LIMIT, SessionHandle, SessionProvider,
};
pub use reading::{
    AnalysisSpec, GateForModes, GateSpec, MarginSpec, Reading, ScopeName, StatisticName,
    StatisticSpec,
};
pub use row::{
    Attempt, CostReadings, CostSource, Outcome, PluginError, ProfileRow, ToolCallSummary,
};
pub use run_record::{
    Provenance, RunError, RunMetrics, RunRecord, RunStatus, StepStatus, StepSummary, TaskEvent,
    TaskEventLevel, TaskKind,
};
pub use runner::{RunSetting, Runner};
pub use sandbox::{
    Container, ContainerEngine, ContainerHandle, ContainerNetwork, Guard, GuardNetwork,
    Healthcheck, ModelDoor, Sandbox, SandboxPlaces, Sandboxing, SessionSandbox, WallRecord,
};
pub use scenario::{
    BaseScenario, DEFAULT_TIMEOUT_MS, GitSource, WorkspaceMethod, WorkspaceSpec, as_text,
};
pub use score_record::{Evidence, ScoreRecord, ScoreTarget, ScoreValue};
pub use scorer::{Scorer, ScorerCheckResult, ScorerContext, ScorerResult, WorkspaceChange};
pub use task::{AtomicTask, InputMapping, ScenarioTask, Task, TaskMetadata};
pub use timestamp::{Timestamp, let_clock_jump, unix_ms_now};
pub use tokens::{TokenBreakdown, TokenSum};
pub use trace::{
    CallEnding, EventContext, EventPlace, ModelCall, SessionTrace, SkillLoad, SkillSighting,
    TraceEvent, TraceSummary, Turn, UserTurn,
};
pub use void_cause::VoidCause;

/// A JSON object, as the free-form parts of records hold it.
pub type JsonMap = serde_json::Map<String, serde_json::Value>;

/// The error of a contract method: any error, or a message (`"no such file".into()`).
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The version of all stored records. Raised only when a reader of the old form would misread the new; records of earlier
/// versions stay readable.
///
/// Version 2 (Assize 0.2) changed what some numbers mean: `agentTurns` are model answers of the main agent, and failed
/// tool calls follow one rule for all agents.
pub const SCHEMA_VERSION: u32 = 2;
