//! The tables of the specification for planning and stopping: exact power, the best split of a budget, boundaries.

use assize_stats::{
    Components, Level, Question, Spending, SplitCost, Statistic, best_split, boundaries,
    detectable_in_errors, ideal_repetitions, t_e_value,
};
use serde_json::Value;

fn tables() -> Value {
    serde_json::from_str(include_str!("golden/design.json")).expect("the tables are JSON")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {key} in {value}"))
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    assert!(
        (found - expected).abs() <= relative * expected.abs().max(1e-300),
        "found {found}, expected {expected}"
    );
}

#[test]
fn detectable_differences_are_exact() {
    for case in tables()["power"].as_array().unwrap() {
        let level = |key| Level::new(number(case, key)).unwrap();
        let scenarios = number(case, "scenarios") as u64;
        let found = detectable_in_errors(scenarios, level("alpha"), level("power")).unwrap();
        close(found, number(case, "exactK"), 1e-5);
    }
}

#[test]
fn budgets_are_split_for_the_most_power() {
    for case in tables()["allocation"].as_array().unwrap() {
        let within2 = number(case, "sigmaA2") + number(case, "sigmaB2");
        let components = Components {
            scenarios: 10,
            repetitions: 1.0,
            spread2: 0.0,
            omega2: number(case, "omega2"),
            within2,
            statistic: Statistic::Mean,
            success_rate: None,
        };
        let cost = SplitCost {
            scenario: number(case, "costScenario"),
            round: number(case, "costRound"),
        };
        let question = Question {
            delta: number(case, "delta"),
            alpha: Level::ALPHA_05,
            power: Level::POWER_80,
        };
        close(
            ideal_repetitions(&components, &cost),
            number(case, "rStar"),
            1e-8,
        );
        let found = best_split(&components, &cost, number(case, "budget"), &question).unwrap();
        let best = &case["best"];
        assert_eq!(found.repetitions, best["R"].as_u64().unwrap(), "{case}");
        assert_eq!(found.scenarios, best["G"].as_u64().unwrap(), "{case}");
        close(found.power, number(best, "power"), 1e-3);
        close(
            found.min_detectable_effect.unwrap(),
            number(best, "mde"),
            1e-3,
        );
    }
}

#[test]
fn boundaries_are_those_of_lan_and_demets() {
    let tables = &tables()["sequential"];
    let equal =
        |looks: usize| -> Vec<f64> { (1..=looks).map(|look| look as f64 / looks as f64).collect() };
    let check = |spending, expected: &Value| {
        let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
        let found = boundaries(spending, &equal(expected.len()), Level::ALPHA_05);
        for (found, expected) in found.iter().zip(&expected) {
            close(*found, *expected, 1e-3);
        }
        assert_eq!(found.len(), expected.len());
    };
    for (_, expected) in tables["ldObrienFlemingTwoSided05"].as_object().unwrap() {
        check(Spending::ObrienFleming, expected);
    }
    check(Spending::Pocock, &tables["ldPocock5"]);
}

#[test]
fn e_values_of_t_are_exact() {
    for case in tables()["sequential"]["rightHaarTEValue"]
        .as_array()
        .unwrap()
    {
        let found = t_e_value(number(case, "t"), number(case, "n"), number(case, "c2"));
        close(found, number(case, "e"), 1e-8);
    }
}
