//! The probable cost of a run, judging by the last one of the same suite.

use crate::suite::LoadedSuite;
use anyhow::Result;
use assize_contracts::ProfileRow;
use assize_engine::store::{RunDirectory, list};
use assize_engine::{Cell, Plan};
use assize_report::money;
use std::collections::HashMap;

/// The cost of the planned trials, as far as trials like them were seen before.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    usd: f64,
    known: usize,
    unknown: usize,
    run_id: String,
}

/// The last of these runs that belongs to a suite of that name and has rows.
pub(crate) fn last_run_like(name: &str, runs: &[RunDirectory]) -> Option<RunDirectory> {
    let same = runs.iter().rev().filter(|run| run.manifest().name == name);
    let mut with_rows = same.filter(|run| run.counts().is_ok_and(|counts| counts.rows > 0));
    RunDirectory::open(with_rows.next()?.path()).ok()
}

impl Estimate {
    pub(crate) fn of(suite: &LoadedSuite) -> Result<Self> {
        let plan = suite.profile.plan()?;
        let runs = list(&suite.results_dir).unwrap_or_default();
        let is_same = |name: &str| name == suite.profile.name;
        for run in runs
            .iter()
            .rev()
            .filter(|run| is_same(&run.manifest().name))
        {
            let rows = run.rows()?.filter_map(Result::ok);
            let id_of = |cell: &Cell| suite.profile.id_of(&plan, cell).unwrap_or_default();
            let found = Self::from_rows(&plan, id_of, rows, run.id());
            if found.known > 0 {
                return Ok(found);
            }
        }
        Ok(Self::default())
    }

    fn from_rows(
        plan: &Plan,
        id_of: impl Fn(&Cell) -> String,
        rows: impl Iterator<Item = ProfileRow>,
        run_id: &str,
    ) -> Self {
        let mut seen: HashMap<[String; 3], (f64, u32)> = HashMap::new();
        for row in rows {
            if let Some(cost) = row.cost.total_usd {
                let (sum, count) = seen
                    .entry([row.scenario_id, row.mode, row.model])
                    .or_default();
                *sum += cost.value();
                *count += 1;
            }
        }
        let mut estimate = Self {
            run_id: run_id.to_owned(),
            ..Self::default()
        };
        for cell in plan.cells() {
            let arm = plan.arm(&cell);
            let key = [id_of(&cell), arm.mode.clone(), arm.model.clone()];
            match seen.get(&key) {
                Some((sum, count)) => {
                    estimate.usd += sum / f64::from(*count);
                    estimate.known += 1;
                }
                None => estimate.unknown += 1,
            }
        }
        estimate
    }

    /// The sentence before the question.
    pub(crate) fn sentence(&self) -> String {
        let Self {
            known,
            unknown,
            run_id,
            ..
        } = self;
        let cost = money(self.usd);
        match (known, unknown) {
            (0, _) => "how much is not known".to_owned(),
            (_, 0) => format!("about {cost}, judging by run {run_id}"),
            _ => format!(
                "about {cost} for {known} of them, judging by run {run_id}, and an unknown amount for the other {unknown}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_engine::{Arm, Order};
    use serde_json::{Value, json};

    fn row(scenario: &str, cost: Value) -> ProfileRow {
        let row = json!({
            "runId": "r", "scenarioId": scenario, "mode": "m", "model": "x", "iteration": 0,
            "startedAt": "2026-01-01T00:00:00Z", "completedAt": "2026-01-01T00:00:01Z",
            "tokens": {}, "timing": {}, "cost": {"totalUsd": cost}, "success": true,
            "toolCalls": {"total": null, "byCategory": {}, "failed": null, "retried": null, "errorRate": null, "records": []},
            "checkpointsPassed": 0, "checkpointsTotal": 0, "checkpointDetails": [], "outputValid": true,
            "provider": "p", "sessionId": null, "agentTurns": null, "completionReason": null, "extensions": {},
        });
        serde_json::from_value(row).unwrap()
    }

    fn check(scenarios: &[&str], rows: Vec<ProfileRow>, expected: &str) {
        let arm = Arm {
            mode: "m".into(),
            model: "x".into(),
        };
        let scenarios = scenarios.iter().map(|id| id.to_string()).collect();
        let plan = Plan::new(scenarios, vec![arm], 10, Order::Blocked, 1).unwrap();
        let estimate = Estimate::from_rows(
            &plan,
            |cell| plan.scenarios[cell.scenario as usize].clone(),
            rows.into_iter(),
            "r-1",
        );
        assert_eq!(estimate.sentence(), expected);
    }

    #[test]
    fn a_run_costs_what_the_last_one_did() {
        let rows = vec![
            row("a", json!(0.1)),
            row("a", json!(0.3)),
            row("a", json!(null)),
        ];
        check(&["a"], rows.clone(), "about $2.00, judging by run r-1");
        check(
            &["a", "b"],
            rows,
            "about $2.00 for 10 of them, judging by run r-1, and an unknown amount for the other 10",
        );
        check(&["a"], vec![row("a", json!(null))], "how much is not known");
    }
}
