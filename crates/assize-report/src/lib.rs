//! From stored trials to what people read. No IO of its own, and never sees the engine.
//!
//! Rows go one at a time into a [`SummaryBuilder`], which keeps numbers only; the [`Summary`] it ends in is what the
//! terminal, the pages and the files are all made of.

mod error;
#[doc(hidden)]
pub mod fuzzing;
mod row;
mod rows;
mod scalar;

mod analysis;
mod arm;
mod builder;
mod caution;
mod classification;
mod comparison;
mod digest;
mod effects;
mod gate;
mod judge;
mod looks;
mod metric;
mod own_metrics;
mod planning;
mod reading;
mod reason;
mod scenario_change;
mod success;
mod summary;
mod triggers;
mod versions;

mod number;
mod wall;
mod words;

mod benchmark;
mod cells;
mod efficiency;
mod escape;
mod findings;
mod flat;
mod glossary;
mod html;
mod job_summary;
mod junit;
mod markdown;
mod skills;

pub use analysis::{Analysis, Unfinished};
pub use assize_contracts::{Caution, CautionCode, Nature};
pub use benchmark::render_benchmark;
pub use builder::{SeenCells, SummaryBuilder};
pub use cells::{comparison_cells, comparison_heading, metric_cell};
pub use classification::{Classification, LabelSummary};
pub use comparison::{BoundedBy, Comparison, Headline, MetricResult, headline};
pub use digest::RunDigest;
pub use effects::{EFFECTS_NOTE, FactorEffect, effect_sentence, factorial_of};
pub use error::ReportError;
pub use findings::FindingsPage;
pub use flat::{CsvWriter, JsonArrayWriter};
pub use gate::{
    Gate, GateContext, GateError, GateMeasure, GateResult, Planned, PlannedArm, Reference,
    Shortfall, gate_bounds_note, gates_note, judge_gates, worst,
};
pub use html::{AddedTrial, HtmlReport, PageLimits, WantedTrace};
pub use job_summary::render_job_summary;
pub use judge::JudgeSummary;
pub use junit::render_junit;
pub use looks::{DeclaredRule, LooksReading};
pub use markdown::render_markdown;
pub use metric::{AtLeast, MetricSummary, TypicalTask};
pub use number::{amount, duration, money, percent, quantity};
pub use own_metrics::TextCounts;
pub use planning::{
    Detect, DetectError, Estimates, ExperimentPlan, MetricPlan, PlanBudget, PlanDesign, PlanInput,
    Range, RepetitionsOnly, SplitPlan, TargetPlan, TasksForMargin,
};
pub use reading::{AnalysisError, statistic};
pub use reason::{Reason, TrialPlace};
pub use row::{Row, parse_json};
pub use rows::{RowBytes, read_rows};
pub use scenario_change::{ChangeKind, PassCount, ScenarioChange, scenario_changes};
pub use success::{Chances, SuccessSummary};
pub use summary::{ModeSummary, Named, ScenarioSummary, Summary};
pub use triggers::{TriggerRate, Triggers};
pub use versions::{changed_metrics, not_comparable};
pub use words::{
    EXPLORATORY, advice, clause, closing_line, p_value, scopes_note, sentence, verdict_line,
    verdict_word,
};
