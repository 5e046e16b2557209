//! Simulated experiments for docs/planning.md: error rates over all looks, power against the plan's promise, trials
//! saved, and how often the
//! ranges of plans hold. `cargo run --release -p assize-stats --example stopping -- [EXPERIMENTS] [SEED]`. Fails when a rule gives more
//! false verdicts than 6 %, beyond twice the error of the simulation.

#![expect(clippy::print_stdout, reason = "the tables are the result")]

mod simulate;

use assize_stats::{Components, Level, Question, Statistic};
use simulate::{Rule, Setting, need_in_range, sequential};
use std::process::ExitCode;

/// The most false verdicts that a rule may give.
const MOST_FALSE: f64 = 0.06;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let experiments = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(4000);
    let seed = words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let base = Setting {
        scenarios: 8,
        looks: 5,
        most: 10,
        delta: 0.0,
        omega: 0.0,
        sigma: 0.4,
    };
    println!("{experiments} experiments of 8 scenarios, at most 10 rounds, seed {seed}");
    println!(
        "| rule | looks | spread of the effect | false verdicts | power at 20 % | promised | rounds run |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let simulation_error = (MOST_FALSE * (1.0 - MOST_FALSE) / f64::from(experiments)).sqrt();
    let mut holds = true;
    for (rule, name) in [
        (Rule::None, "none"),
        (Rule::ObrienFleming, "obrien-fleming"),
        (Rule::Anytime, "anytime"),
    ] {
        for (looks, omega) in [(1, 0.0), (5, 0.0), (5, 0.2), (10, 0.1)] {
            let setting = Setting {
                looks,
                omega,
                ..base
            };
            let real = Setting {
                delta: 0.2,
                ..setting
            };
            let same = sequential(&setting, rule, experiments, seed);
            let other = sequential(&real, rule, experiments, seed + 1);
            let pays = !matches!(rule, Rule::None);
            holds &= !pays || same.decided <= MOST_FALSE + 2.0 * simulation_error;
            println!(
                "| {name} | {looks} | {omega} | {:.1} % | {:.1} % | {:.1} % | {:.1} |",
                100.0 * same.decided,
                100.0 * other.decided,
                100.0 * promised_power(&real),
                other.mean_rounds
            );
        }
    }
    println!("\n| pilot | spread of the effect | ranges that hold the true need |");
    println!("| --- | --- | --- |");
    for scenarios in [5, 8, 12, 20] {
        for omega in [0.1, 0.2, 0.3] {
            let setting = Setting {
                scenarios,
                omega,
                ..base
            };
            let share = need_in_range(&setting, 0.22, 5, experiments, seed);
            println!(
                "| {scenarios} scenarios × 5 | {omega} | {:.0} % |",
                100.0 * share
            );
        }
    }
    match holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The chance that a fixed design finds the effect, as its plan promises.
fn promised_power(setting: &Setting) -> f64 {
    let components = Components {
        scenarios: setting.scenarios as u64,
        repetitions: f64::from(setting.most),
        spread2: 0.0,
        omega2: setting.omega * setting.omega,
        within2: 2.0 * setting.sigma * setting.sigma,
        statistic: Statistic::Mean,
        success_rate: None,
    };
    let question = Question {
        delta: setting.delta,
        alpha: Level::ALPHA_05,
        power: Level::POWER_80,
    };
    question.power_of(
        &components,
        setting.scenarios as u64,
        f64::from(setting.most),
    )
}
