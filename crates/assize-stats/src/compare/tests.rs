//! Behaviour of whole comparisons.

use super::*;
use crate::verdict::Verdict;
use crate::warning::Warning;

/// Runs of two modes on scenarios whose levels differ widely; A takes `ratio` of what B takes.
fn runs(scenarios: usize, repetitions: usize, ratio: f64) -> Vec<(String, Vec<f64>, Vec<f64>)> {
    let noise = |seed: usize| 1.0 + 0.02 * ((seed * 7919 % 101) as f64 / 50.0 - 1.0);
    (0..scenarios)
        .map(|scenario| {
            let level = 100.0 * (scenario + 1) as f64;
            let of = |factor: f64, offset: usize| {
                (0..repetitions)
                    .map(|run| level * factor * noise(scenario * 31 + run * 7 + offset))
                    .collect()
            };
            (format!("s{scenario}"), of(ratio, 1), of(1.0, 5))
        })
        .collect()
}

fn metric<'a>(
    runs: &'a [(String, Vec<f64>, Vec<f64>)],
    direction: Option<Direction>,
) -> Metric<'a> {
    let group = |mode, scenario: &'a str, values| Group {
        mode,
        scenario: Some(scenario),
        values,
        cut: &[],
    };
    let groups = runs
        .iter()
        .flat_map(|(name, a, b)| [group("a", name, a), group("b", name, b)]);
    Metric {
        name: "tokens",
        direction,
        statistic: Statistic::Median,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: groups.collect(),
    }
}

fn compare_one(metric: Metric<'_>, options: &CompareOptions<'_>) -> MetricComparison {
    let options = CompareOptions {
        baseline: Some("b"),
        resamples: 500,
        permutations: 500,
        ..*options
    };
    compare_groups(&[metric], &[], &options)
        .unwrap()
        .metrics
        .remove(0)
}

fn verdict(ratio: f64, direction: Option<Direction>, margin: Option<f64>) -> Verdict {
    let options = CompareOptions {
        equivalence_margin: margin,
        ..Default::default()
    };
    compare_one(metric(&runs(8, 5, ratio), direction), &options).verdict
}

#[test]
fn a_clear_reduction_is_better_or_worse_by_direction() {
    assert_eq!(verdict(0.7, Some(Direction::Lower), None), Verdict::Better);
    assert_eq!(verdict(0.7, Some(Direction::Higher), None), Verdict::Worse);
    assert_eq!(verdict(1.4, Some(Direction::Lower), None), Verdict::Worse);
    assert_eq!(verdict(0.7, None, None), Verdict::NotComparable);
}

#[test]
fn no_difference_is_equivalent_only_with_a_margin() {
    assert_eq!(
        verdict(1.0, Some(Direction::Lower), Some(0.05)),
        Verdict::Equivalent
    );
    assert_eq!(
        verdict(1.0, Some(Direction::Lower), None),
        Verdict::Inconclusive
    );
}

#[test]
fn scenarios_of_one_mode_are_left_out_and_named() {
    let runs = runs(6, 5, 0.7);
    let mut metric = metric(&runs, Some(Direction::Lower));
    metric
        .groups
        .retain(|group| group.mode == "a" || group.scenario != Some("s2"));
    let comparison = compare_one(metric, &CompareOptions::default());
    assert_eq!(comparison.unmatched_scenarios, ["s2"]);
    assert_eq!((comparison.scenarios, comparison.n.a), (5, 25));
    assert!(comparison.warnings.contains(Warning::UnmatchedScenarios));
}

#[test]
fn one_scenario_is_judged_as_exactly_this_task() {
    let comparison = compare_one(
        metric(&runs(1, 8, 0.5), Some(Direction::Lower)),
        &CompareOptions::default(),
    );
    assert_eq!(comparison.scope, Scope::Suite);
    assert_eq!(comparison.paired, None);
    assert_eq!(comparison.ci_method, CiMethod::Percentile);
    assert_eq!(comparison.p_method, PMethod::PermutationExact);
    assert_eq!(comparison.verdict, Verdict::Better);
    assert!(comparison.warnings.contains(Warning::SingleScenario));
}

#[test]
fn modes_without_a_common_scenario_are_not_comparable() {
    let runs = runs(4, 5, 0.5);
    let mut metric = metric(&runs, Some(Direction::Lower));
    metric
        .groups
        .retain(|group| (group.mode == "a") == (group.scenario < Some("s2")));
    let comparison = compare_one(metric, &CompareOptions::default());
    assert_eq!(comparison.verdict, Verdict::NotComparable);
    assert_eq!(comparison.reason, Some("no scenario was run by both modes"));
    assert_eq!(comparison.p_adjusted, None);
}

#[test]
fn values_at_or_below_zero_are_compared_by_difference() {
    let mut runs = runs(6, 5, 0.5);
    runs[0].1.fill(0.0);
    let comparison = compare_one(
        metric(&runs, Some(Direction::Lower)),
        &CompareOptions::default(),
    );
    let paired = comparison.paired.unwrap();
    assert_eq!(paired.reduction_pct, None);
    assert!(paired.difference.unwrap() < 0.0);
    assert_eq!(comparison.verdict, Verdict::Better);
}

#[test]
fn an_inconclusive_comparison_says_what_it_would_take() {
    let mut runs = runs(5, 3, 1.0);
    for (scenario, factor) in [(0, 1.5), (1, 0.6), (2, 1.3), (3, 0.7)] {
        runs[scenario]
            .1
            .iter_mut()
            .for_each(|value| *value *= factor);
    }
    let comparison = compare_one(
        metric(&runs, Some(Direction::Lower)),
        &CompareOptions::default(),
    );
    assert_eq!(comparison.verdict, Verdict::Inconclusive);
    let plan = comparison.plan.unwrap();
    assert!(plan.scenarios_needed.unwrap() > 5);
    assert_eq!(plan.repetitions_needed, None);
}

#[test]
fn the_declared_family_is_adjusted_together_with_success() {
    let runs = runs(8, 5, 0.7);
    let cell = |mode, scenario, passed| SuccessCell {
        mode,
        scenario: Some(scenario),
        passed,
        failed: 5 - passed,
        void: 0,
        void_unrelated: 0,
    };
    let success: Vec<SuccessCell<'_>> = runs
        .iter()
        .flat_map(|(name, ..)| [cell("a", name, 5), cell("b", name, 1)])
        .collect();
    let options = CompareOptions {
        baseline: Some("b"),
        success_is_primary: true,
        resamples: 200,
        permutations: 200,
        ..Default::default()
    };
    let exploratory = Metric {
        kind: MetricKind::Amount,
        is_primary: false,
        name: "turns",
        ..metric(&runs, Some(Direction::Lower))
    };
    let metrics = [metric(&runs, Some(Direction::Lower)), exploratory];
    let comparisons = compare_groups(&metrics, &success, &options).unwrap();
    assert_eq!(comparisons.metrics[0].family_size, 2);
    assert!(comparisons.metrics[1].exploratory);
    assert_eq!(comparisons.metrics[1].family_size, 1);
    assert_eq!(comparisons.success[0].verdict, Verdict::Better);
    assert_eq!(comparisons.success[0].difference_pp, Some(80.0));
}

#[test]
fn unjudged_trials_widen_the_possible_difference() {
    let cell = |mode, passed, failed, void| SuccessCell {
        mode,
        scenario: Some("s"),
        passed,
        failed,
        void,
        void_unrelated: 0,
    };
    let cells = [cell("a", 8, 0, 2), cell("b", 5, 5, 0)];
    let comparisons = compare_groups(
        &[],
        &cells,
        &CompareOptions {
            baseline: Some("b"),
            ..Default::default()
        },
    );
    let success = comparisons.unwrap().success.remove(0);
    assert_eq!(success.coverage_a, Some(0.8));
    let [lower, upper] = success.void_bounds.unwrap();
    assert!((lower - 30.0).abs() < 1e-9 && (upper - 50.0).abs() < 1e-9);
    assert!(success.warnings.contains(Warning::ManyVoid));
}

#[test]
fn single_trials_add_mcnemars_test() {
    let names: Vec<String> = (0..10).map(|scenario| format!("s{scenario}")).collect();
    let cells: Vec<SuccessCell<'_>> = names
        .iter()
        .flat_map(|name| {
            let cell = |mode, passed| SuccessCell {
                mode,
                scenario: Some(name),
                passed,
                failed: 1 - passed,
                void: 0,
                void_unrelated: 0,
            };
            [cell("a", 1), cell("b", 0)]
        })
        .collect();
    let comparisons = compare_groups(
        &[],
        &cells,
        &CompareOptions {
            baseline: Some("b"),
            ..Default::default()
        },
    );
    let mcnemar = comparisons.unwrap().success[0].mcnemar_p.unwrap();
    assert!((mcnemar - 2.0 / 1024.0).abs() < 1e-12);
}

#[test]
fn without_a_baseline_later_modes_meet_earlier_ones() {
    let group = |mode| Group {
        mode,
        scenario: None,
        values: &[1.0, 2.0, 3.0],
        cut: &[],
    };
    let metric = Metric {
        name: "m",
        direction: None,
        statistic: Statistic::Mean,
        kind: MetricKind::Amount,
        is_primary: false,
        groups: vec![group("x"), group("y"), group("z")],
    };
    let comparisons = compare_groups(&[metric], &[], &CompareOptions::default()).unwrap();
    let pairs: Vec<(&str, &str)> = comparisons
        .metrics
        .iter()
        .map(|comparison| (comparison.mode_a.as_str(), comparison.mode_b.as_str()))
        .collect();
    assert_eq!(pairs, [("y", "x"), ("z", "x"), ("z", "y")]);
}

#[test]
fn the_json_has_the_documented_names() {
    let comparison = compare_one(
        metric(&runs(3, 2, 0.7), Some(Direction::Lower)),
        &CompareOptions::default(),
    );
    let json = serde_json::to_value(&comparison).unwrap();
    for name in [
        "modeA",
        "modeB",
        "metric",
        "reductionPct",
        "ci95",
        "effectSize",
        "effectMagnitude",
        "pValue",
        "reductionDefined",
        "effectDefined",
        "n",
        "scenarios",
        "repetitions",
        "unmatchedScenarios",
        "design",
        "scope",
        "statistic",
        "ciMethod",
        "pMethod",
        "paired",
        "suite",
        "hedgesG",
        "cliffsDelta",
        "probSuperiority",
        "probBetter",
        "pAdjusted",
        "adjustMethod",
        "familySize",
        "verdict",
        "plan",
        "warnings",
    ] {
        assert!(json.get(name).is_some(), "{name}");
    }
    for name in [
        "reductionPct",
        "ci95",
        "pValue",
        "signFlipP",
        "scenariosLower",
        "scenariosHigher",
    ] {
        assert!(json["paired"].get(name).is_some(), "{name}");
    }
    assert_eq!(json["ciMethod"], "cluster-expanded");
    assert_eq!(json["pMethod"], "stratified-exact");
    assert_eq!(json["design"], "paired");
}

#[test]
fn without_relabelings_an_exploratory_metric_keeps_verdict_and_numbers() {
    let compared = |is_primary, relabel_exploratory| {
        let runs = runs(8, 5, 0.7);
        let metric = Metric {
            is_primary,
            ..metric(&runs, Some(Direction::Lower))
        };
        let options = CompareOptions {
            relabel_exploratory,
            ..Default::default()
        };
        compare_one(metric, &options)
    };
    let (with, without) = (compared(false, true), compared(false, false));
    assert_eq!(without.p_method, PMethod::ClosedForm);
    assert_eq!(
        Some(without.p_value),
        without.paired.as_ref().and_then(|paired| paired.p_value)
    );
    let rest = MetricComparison {
        p_value: with.p_value,
        p_method: with.p_method,
        mc_error: with.mc_error,
        ..without
    };
    assert_eq!(rest, with);
    // Deciding metrics are always tested.
    assert_eq!(compared(true, false), compared(true, true));
}
