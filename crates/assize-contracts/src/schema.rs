//! JSON Schemas of the records, by the names that `assize schema` knows.

use crate::{
    AtomicTask, BaseScenario, ModeConfig, ProfileRow, PromptResult, RunRecord, ScorerContext,
    ScorerResult, SessionAnalysisBundle, SessionTrace, Task,
};
use schemars::{Schema, schema_for};

/// A record's name and its schema.
pub struct NamedSchema {
    /// The name `assize schema` takes.
    pub name: &'static str,
    /// The JSON Schema.
    pub schema: Schema,
}

/// The schemas of all records and messages of the contracts.
pub fn all() -> Vec<NamedSchema> {
    let named = |name, schema| NamedSchema { name, schema };
    vec![
        named("base-scenario", schema_for!(BaseScenario)),
        named("task", schema_for!(Task)),
        named("atomic-task", schema_for!(AtomicTask)),
        named("row", schema_for!(ProfileRow)),
        named("trace", schema_for!(SessionTrace)),
        named("run-record", schema_for!(RunRecord)),
        named("score-record", schema_for!(crate::ScoreRecord)),
        named("bundle", schema_for!(SessionAnalysisBundle)),
        named("prompt-result", schema_for!(PromptResult)),
        named("scorer-context", schema_for!(ScorerContext)),
        named("scorer-result", schema_for!(ScorerResult)),
        named("mode-config", schema_for!(ModeConfig)),
    ]
}
