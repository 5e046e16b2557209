//! What trials come to, per mode and model. Rows are taken one at a time; only the numbers are kept.

use assize_contracts::{Outcome, ProfileRow};

/// The trials of a run, counted and measured.
#[derive(Debug, Default)]
pub struct RunSummary {
    arms: Vec<ArmSummary>,
}

/// The trials of one mode with one model.
#[derive(Debug, Default)]
pub struct ArmSummary {
    /// The mode.
    pub mode: String,
    /// The model.
    pub model: String,
    /// Trials that reached the goal.
    pub passed: u64,
    /// Trials that did not.
    pub failed: u64,
    /// Trials that taught nothing; they are in no other number.
    pub void: u64,
    /// Trials that ran out of time; their numbers are lower bounds.
    pub censored: u64,
    /// Trials made up by the `simulated` provider.
    pub simulated: u64,
    /// Trials played back from recordings.
    pub replayed: u64,
    /// Wall times in milliseconds.
    pub wall_ms: Values,
    /// Tokens, all kinds together.
    pub tokens_total: Values,
    /// Cost in US dollars.
    pub cost_usd: Values,
    /// Tool calls.
    pub tool_calls: Values,
}

/// Measurements of one metric. Trials in which nobody measured it are not in here.
#[derive(Debug, Default)]
pub struct Values(Vec<f64>);

impl RunSummary {
    /// Counts one trial.
    pub fn add(&mut self, row: &ProfileRow) {
        let arm = self.arm(&row.mode, &row.model);
        arm.simulated += u64::from(row.simulated);
        arm.replayed += u64::from(row.replayed);
        match row.outcome {
            Some(Outcome::Void) => {
                arm.void += 1;
                return;
            }
            Some(Outcome::Pass) => arm.passed += 1,
            Some(Outcome::Fail) => arm.failed += 1,
            None if row.success => arm.passed += 1,
            None => arm.failed += 1,
        }
        arm.censored += u64::from(row.censored);
        arm.wall_ms
            .push(row.timing.wall_ms.map(|wall| wall.value()));
        arm.tokens_total
            .push(row.tokens.total.map(|total| total as f64));
        arm.cost_usd
            .push(row.cost.total_usd.map(|cost| cost.value()));
        arm.tool_calls
            .push(row.tool_calls.total.map(|total| total as f64));
    }

    /// Modes and models in the order of their names.
    pub fn arms(&self) -> &[ArmSummary] {
        &self.arms
    }

    /// Whether the model must be said to tell the lines apart.
    pub fn has_several_models(&self) -> bool {
        self.arms
            .windows(2)
            .any(|pair| pair[0].model != pair[1].model)
    }

    /// What a reader must know to take the numbers for what they are.
    pub fn remarks(&self) -> Vec<String> {
        let sum = |count: fn(&ArmSummary) -> u64| self.arms.iter().map(count).sum::<u64>();
        let mut remarks = Vec::new();
        if sum(|arm| arm.simulated) > 0 {
            remarks.push(
                "simulated: these numbers are made up by a stand-in, not measured on an agent"
                    .to_owned(),
            );
        }
        if sum(|arm| arm.replayed) > 0 {
            remarks.push("replayed: these numbers come from recordings".to_owned());
        }
        let void = sum(|arm| arm.void);
        if void > 0 {
            remarks.push(format!(
                "{void} void trials taught nothing about the agent and are in no number; `--resume ID --only void` runs them again"
            ));
        }
        let censored = sum(|arm| arm.censored);
        if censored > 0 {
            remarks.push(format!(
                "{censored} trials ran out of time; their time, tokens and cost are lower bounds"
            ));
        }
        remarks
    }

    fn arm(&mut self, mode: &str, model: &str) -> &mut ArmSummary {
        let place = self
            .arms
            .binary_search_by(|arm| (arm.mode.as_str(), arm.model.as_str()).cmp(&(mode, model)));
        let place = place.unwrap_or_else(|place| {
            let arm = ArmSummary {
                mode: mode.to_owned(),
                model: model.to_owned(),
                ..ArmSummary::default()
            };
            self.arms.insert(place, arm);
            place
        });
        &mut self.arms[place]
    }
}

impl Values {
    fn push(&mut self, value: Option<f64>) {
        self.0.extend(value.filter(|value| value.is_finite()));
    }

    /// Half of the trials lie below. Absent without any measurement.
    pub fn median(&self) -> Option<f64> {
        self.percentile(0.5)
    }

    /// The value below which this share of the trials lies, between neighbours interpolated.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = share * (sorted.len().checked_sub(1)?) as f64;
        let (low, high) = (
            sorted[place.floor() as usize],
            sorted[place.ceil() as usize],
        );
        Some(low + (high - low) * place.fract())
    }
}
