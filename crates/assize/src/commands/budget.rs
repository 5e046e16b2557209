//! The budget of a run: refused where it cannot be kept, and the message when it ended the run.

use crate::commands::UsageError;
use crate::suite::LoadedSuite;
use anyhow::Result;
use assize_contracts::{Budget, ProfileRow, TokenBreakdown};
use assize_engine::store::{RunDirectory, list};
use assize_engine::{Amounts, BudgetStop, Mode, ProfileSuite, dearest_block};
use assize_report::{duration, money, quantity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Agents that report the cost of their sessions.
const REPORT_COST: [&str; 1] = ["claude-code"];

/// Refuses a limit on dollars where they will be unknown, and finds the cost of earlier blocks like these.
pub(super) fn prepare(suite: &mut LoadedSuite) -> Result<()> {
    let budget = suite.profile.execution.budget;
    if budget.is_unlimited() {
        return Ok(());
    }
    if let Some(reason) = suite.profile.sequential_because() {
        return Err(UsageError {
            message: format!("a budget cannot stop at whole blocks here, because {reason}"),
            hint: Some("limit the run by `--repetitions` and `--scenario` instead".to_owned()),
        }
        .into());
    }
    let earlier = earlier_rows(suite)?;
    if budget.usd.is_some() {
        refuse_unknown_cost(&suite.profile, &earlier)?;
    }
    suite.profile.execution.expected_block = expected(&suite.profile, &earlier);
    Ok(())
}

/// The trials of the newest run of the same suite, without those of modes that are not run now.
fn earlier_rows(suite: &LoadedSuite) -> Result<Vec<ProfileRow>> {
    let modes: BTreeSet<&str> = suite
        .profile
        .modes
        .iter()
        .map(|mode| mode.name.as_str())
        .collect();
    let runs = list(&suite.results_dir).unwrap_or_default();
    let is_same = |run: &&RunDirectory| run.manifest().name == suite.profile.name;
    for run in runs.iter().rev().filter(is_same) {
        let rows = run.rows()?.filter_map(Result::ok);
        let rows: Vec<ProfileRow> = rows
            .filter(|row| modes.contains(row.mode.as_str()))
            .collect();
        if !rows.is_empty() {
            return Ok(rows);
        }
    }
    Ok(Vec::new())
}

/// The dearest block of the earlier run, if it had all modes of this one.
fn expected(profile: &ProfileSuite, earlier: &[ProfileRow]) -> Option<Amounts> {
    let seen: BTreeSet<&str> = earlier.iter().map(|row| row.mode.as_str()).collect();
    let has_all = profile
        .modes
        .iter()
        .all(|mode| seen.contains(mode.name.as_str()));
    dearest_block(earlier, &profile.execution.budget).filter(|_| has_all)
}

fn refuse_unknown_cost(profile: &ProfileSuite, earlier: &[ProfileRow]) -> Result<(), UsageError> {
    let is_seen = |mode: &Mode| {
        let mut trials = earlier
            .iter()
            .filter(|row| row.mode == mode.name)
            .peekable();
        trials.peek().is_some() && trials.all(|row| row.spent().usd.is_some())
    };
    let one = TokenBreakdown {
        input: Some(1000),
        output: Some(1000),
        total: Some(2000),
        ..TokenBreakdown::default()
    };
    let has_price = |model: &str| {
        let prices = profile.prices.as_ref();
        prices.is_some_and(|prices| prices.of_totals(model, &one).is_some())
    };
    let is_known = |mode: &Mode| {
        let is_set = mode
            .overrides
            .get("cost_usd")
            .is_some_and(|cost| !cost.is_null());
        let own = mode.overrides.get("model").and_then(Value::as_str);
        let of_runners = mode.runners.values().filter_map(|used| used.runner.model());
        let mut models: Vec<&str> = profile.models.iter().map(String::as_str).collect();
        if models.is_empty() {
            models.extend(own.into_iter().chain(of_runners));
        }
        let is_simulated = mode.provider == "simulated";
        is_set
            || is_seen(mode)
            || (REPORT_COST.contains(&mode.provider.as_str()))
            || (!is_simulated && !models.is_empty() && models.iter().all(|model| has_price(model)))
    };
    match profile.modes.iter().find(|mode| !is_known(mode)) {
        None => Ok(()),
        Some(mode) => Err(UsageError {
            message: format!(
                "the cost of mode `{}` is not known before the run, so a limit on dollars cannot be kept",
                mode.name
            ),
            hint: Some(
                "limit tokens or minutes instead (`--max-tokens`, `--max-time`), or give the model a price (`prices` in the suite)"
                    .to_owned(),
            ),
        }),
    }
}

/// The key of a run's provenance that keeps the limits of its command line.
const FLAGS: &str = "budgetFlags";

/// Keeps the limits of the command line, so that resuming the run keeps to them.
pub(super) fn record(profile: &mut ProfileSuite, flags: Budget) {
    if !flags.is_unlimited() {
        profile.provenance.insert(FLAGS.to_owned(), json!(flags));
    }
}

/// The limits of a resumed run: those of its command line, else those it was started with. The suite's are known from the suite.
pub(super) fn of_resumed(flags: Budget, run: &RunDirectory) -> Budget {
    if !flags.is_unlimited() {
        return flags;
    }
    let recorded = run.manifest().provenance.get(FLAGS).cloned();
    let recorded = recorded.and_then(|limits| serde_json::from_value(limits).ok());
    recorded.unwrap_or_default()
}

/// The flags of a budget that is likely to finish the run: ` --max-cost 24`. Only what is too small gets larger.
pub(super) fn larger(stop: &BudgetStop, done: u64, open: u64) -> String {
    let BudgetStop::Reached {
        budget,
        spent,
        dearest,
    } = stop
    else {
        return String::new();
    };
    let all = (done + open) as f64 / done.max(1) as f64;
    let limits = [
        ("--max-cost", budget.usd, spent.usd, dearest.usd),
        (
            "--max-tokens",
            budget.tokens.map(|tokens| tokens as f64),
            spent.tokens,
            dearest.tokens,
        ),
        (
            "--max-time",
            budget.minutes,
            spent.ms / 60_000.0,
            dearest.ms / 60_000.0,
        ),
    ];
    let flag = |(flag, limit, spent, dearest): (&str, Option<f64>, f64, f64)| {
        let limit = limit?;
        let is_binding = limit - spent <= dearest;
        let needed = match is_binding {
            // One block is kept in reserve.
            true => rounded_up((spent * all).max(limit) + dearest),
            false => limit.to_string(),
        };
        Some(format!(" {flag} {needed}"))
    };
    limits.into_iter().filter_map(flag).collect()
}

/// Two digits, never less than the number.
fn rounded_up(number: f64) -> String {
    let number = number.max(1e-6);
    let place = number.log10().floor() - 1.0;
    let unit = 10_f64.powf(place);
    let digits = (-place).max(0.0) as usize;
    format!("{:.digits$}", (number / unit).ceil() * unit)
}

/// Why the budget ended the run, and what to do. Only what is limited is known for certain.
pub(super) fn words(stop: &BudgetStop) -> String {
    match stop {
        BudgetStop::Reached {
            budget,
            spent,
            dearest,
        } => {
            let used = |limit: Option<String>, spent: String, next: String| {
                let limit = limit?;
                Some(format!(
                    "{spent} of {limit} spent, and another block may take {next}"
                ))
            };
            let tokens = |tokens: f64| format!("{} tokens", quantity(tokens));
            let parts = [
                used(budget.usd.map(money), money(spent.usd), money(dearest.usd)),
                used(
                    budget.tokens.map(|limit| tokens(limit as f64)),
                    tokens(spent.tokens),
                    tokens(dearest.tokens),
                ),
                used(
                    budget.minutes.map(|minutes| duration(60_000.0 * minutes)),
                    duration(spent.ms),
                    duration(dearest.ms),
                ),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!(
                "the budget is used up: {}; a larger one continues the run",
                parts.join("; ")
            )
        }
        BudgetStop::Unknown { what } => format!(
            "a trial did not report its {what}, so the budget could not be kept; limit {} instead",
            match *what {
                "cost" => "tokens or minutes",
                _ => "minutes",
            }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_budget_covers_what_is_open() {
        let stop = BudgetStop::Reached {
            budget: Budget {
                usd: Some(1.0),
                tokens: Some(5_000_000),
                minutes: None,
            },
            spent: Amounts {
                usd: 0.95,
                tokens: 400_000.0,
                ms: 100.0,
            },
            dearest: Amounts {
                usd: 0.1,
                tokens: 50_000.0,
                ms: 20.0,
            },
        };
        assert_eq!(
            larger(&stop, 18, 62),
            " --max-cost 4.4 --max-tokens 5000000"
        );
        assert_eq!(larger(&BudgetStop::Unknown { what: "cost" }, 1, 1), "");
        assert_eq!(
            [0.00123, 9.91, 1234.0].map(rounded_up),
            ["0.0013", "10.0", "1300"]
        );
    }
}
