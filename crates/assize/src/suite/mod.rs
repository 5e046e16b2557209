//! Suite and scenario files: from text on disk to the experiment that the engine runs.
//!
//! `document` reads YAML, TOML and JSON alike and remembers the place of everything; `file` lists the keys;
//! `load` resolves files, variables and names into a [`LoadedSuite`]; errors carry file, line and column.

mod ablation;
mod agents;
mod capture;
mod data_set;
mod document;
mod environment;
mod factors;
mod file;
mod file_error;
pub(crate) mod harbor;
mod hooks;
mod load;
mod places;
mod plugin_programs;
mod scenario;
mod selection;

pub use crate::diagnostics::LogLevel;
pub(crate) use agents::{Agent, agents_of, is_path, read_recipe};
pub use capture::{CaptureSpec, CassetteSpec, ProxySpec, UpstreamSpec};
pub(crate) use data_set::read_every_task;
pub use document::Document;
pub use factors::{FactorialDetails, FactorialName, FactorialSpec};
pub use file::{
    ColumnKind, ColumnSpec, EvaluatorSpec, RunnerSpec, SampleSpec, SuiteFile, TasksSpec,
    TypedColumn,
};
pub use file_error::{FileError, Place, SuiteError};
pub(crate) use file_error::{nearest, suggestion as suggest};
pub use hooks::{HookCommandsSpec, HooksSpec};
pub(crate) use load::{FILE_NAMES, UnwrittenSuite, judges};
pub use load::{LoadedSuite, load};
pub(crate) use load::{
    configured_results_dir, find, has_layers, is_meant, names_programs, start_programs,
};
pub use plugin_programs::PluginEntry;
pub use scenario::{ScenarioFile, WorkspaceFile};
pub use selection::{Selection, TaskSelection};

/// The name of the second of two equal modes of an A/A run ends in this.
pub(crate) const AGAIN: &str = " (again)";
