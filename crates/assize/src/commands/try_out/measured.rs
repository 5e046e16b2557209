//! What the runs of each command came to.

use anyhow::Result;
use assize_contracts::{Outcome, ProfileRow};
use assize_engine::ProfileSuiteResult;
use assize_report::{duration, money, percent, quantity};
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
    pub(super) censored: u64,
    /// Why a run failed or taught nothing, the first one.
    pub(super) trouble: Option<String>,
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

    /// What makes the numbers weak.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for CommandRuns {
            name,
            censored,
            trouble,
            ..
        } in &self.commands
        {
            if *censored > 0 {
                remarks.push(format!(
                    "`{name}` ran out of time in {censored} runs; their numbers are lower bounds"
                ));
            }
            if let Some(trouble) = trouble {
                remarks.push(format!("`{name}` did not always succeed; first: {trouble}"));
            }
        }
        remarks
    }
}

impl CommandRuns {
    fn add(&mut self, row: &ProfileRow) {
        let outcome = row.outcome.unwrap_or(Outcome::Void);
        if outcome != Outcome::Pass && self.trouble.is_none() {
            let failed = row.checkpoint_details.iter().find(|check| !check.passed);
            let unmet =
                failed.map(|check| format!("the check {} does not hold", check.description));
            self.trouble = row.error.clone().or(unmet);
        }
        match outcome {
            Outcome::Void => {
                self.void += 1;
                return;
            }
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
        }
        self.censored += u64::from(row.censored);
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

    /// A line for every metric that somebody measured.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = [
            spread("time", &self.wall_ms, duration),
            spread("tokens", &self.tokens, quantity),
            spread("cost", &self.cost_usd, money),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.push(format!("success  {}", self.success()));
        lines
    }

    fn success(&self) -> String {
        let judged = self.passed + self.failed;
        let rate = match judged {
            0 => "unknown".to_owned(),
            _ => format!(
                "{} of {judged} ({})",
                self.passed,
                percent(self.passed as f64 / judged as f64)
            ),
        };
        match self.void {
            0 => rate,
            void => format!("{rate}, {void} void"),
        }
    }
}

/// `time     203 ms ± 1.2 ms    201 ms … 205 ms    10 runs`
fn spread(name: &str, values: &[f64], show: fn(f64) -> String) -> Option<String> {
    let of = describe(values);
    let deviation = match of.count {
        0 => return None,
        1 => String::new(),
        _ => format!(" ± {}", show(of.stddev)),
    };
    let mean = format!("{}{deviation}", show(of.mean));
    let range = format!("{} … {}", show(of.min), show(of.max));
    let runs = if of.count == 1 { "run" } else { "runs" };
    Some(format!(
        "{name:<8} {mean:<20} {range:<22} {} {runs}",
        of.count
    ))
}
