//! The runs of each command one by one, for the exports.

use anyhow::Result;
use assize_contracts::{Outcome, ProfileRow};
use assize_engine::ProfileSuiteResult;
use assize_stats::{Description, describe};

pub(super) struct Measured {
    pub(super) commands: Vec<CommandRuns>,
}

/// The runs of one command. Void ones are only counted.
#[derive(Default)]
pub(super) struct CommandRuns {
    pub(super) name: String,
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) void: u64,
    pub(super) wall_ms: Vec<f64>,
    pub(super) tokens: Vec<f64>,
    pub(super) cost_usd: Vec<f64>,
}

impl Measured {
    pub(super) fn read(names: &[String], result: &ProfileSuiteResult) -> Result<Self> {
        let runs_of = |name: &String| CommandRuns {
            name: name.clone(),
            ..CommandRuns::default()
        };
        let mut commands: Vec<CommandRuns> = names.iter().map(runs_of).collect();
        for row in result.run()?.rows()? {
            let row = row?;
            if let Some(command) = commands.iter_mut().find(|command| command.name == row.mode) {
                command.add(&row);
            }
        }
        Ok(Self { commands })
    }
}

impl CommandRuns {
    fn add(&mut self, row: &ProfileRow) {
        let outcome = row.outcome.unwrap_or(Outcome::Void);
        match outcome {
            Outcome::Void => {
                self.void += 1;
                return;
            }
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
        }
        self.wall_ms
            .extend(row.timing.wall_ms.map(|wall| wall.value()));
        self.tokens
            .extend(row.tokens.total.map(|total| total as f64));
        self.cost_usd
            .extend(row.cost.total_usd.map(|cost| cost.value()));
    }

    pub(super) fn time(&self) -> Option<Description> {
        (!self.wall_ms.is_empty()).then(|| describe(&self.wall_ms))
    }
}
