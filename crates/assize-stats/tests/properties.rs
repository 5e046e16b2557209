//! Properties of all data: order does not matter, scale does not matter, threads do not matter, metrics do not
//! disturb each other, and no answer is ever NaN or infinite.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use assize_stats::*;
use proptest::prelude::*;
use serde_json::Value;

/// Runs of two modes on one scenario.
type Cell = (Vec<f64>, Vec<f64>);

fn cells(values: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = Vec<Cell>> {
    let runs = prop::collection::vec(values, 1..6);
    prop::collection::vec((runs.clone(), runs), 1..7)
}

fn tame() -> impl Strategy<Value = f64> + Clone {
    (1_u32..100_000).prop_map(|value| f64::from(value) / 16.0)
}

fn hostile() -> impl Strategy<Value = f64> + Clone {
    prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.5,
        1e300,
        -1e300,
        1e-300,
        -1e-300,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ])
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|scenario| format!("s{scenario}")).collect()
}

fn metric<'a>(
    name: &'a str,
    cells: &'a [Cell],
    names: &'a [String],
    statistic: Statistic,
) -> Metric<'a> {
    let group = |mode, scenario: &'a String, values| Group {
        mode,
        scenario: Some(scenario),
        values,
        cut: &[],
    };
    let groups = cells
        .iter()
        .zip(names)
        .flat_map(|((a, b), name)| [group("a", name, a), group("b", name, b)]);
    Metric {
        name,
        direction: Some(Direction::Lower),
        statistic,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: groups.collect(),
    }
}

const OPTIONS: CompareOptions<'static> = CompareOptions {
    baseline: Some("b"),
    scope: Scope::Population,
    confidence_level: Level::CONFIDENCE_95,
    resamples: 300,
    permutations: 300,
    seed: 7,
    equivalence_margin: Some(0.05),
    plan_effect: 0.2,
    success_is_primary: false,
    family: Family::Report,
    relabel_exploratory: true,
    looks: None,
};

fn compare(metrics: &[Metric<'_>]) -> Vec<Value> {
    let comparisons = compare_groups(metrics, &[], &OPTIONS).unwrap();
    comparisons
        .metrics
        .iter()
        .map(|comparison| serde_json::to_value(comparison).unwrap())
        .collect()
}

/// All numbers of an answer.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => vec![number.as_f64().unwrap()],
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

/// Looks at the debug text, since JSON would turn NaN into a harmless looking null.
fn assert_no_non_finite(answer: &impl std::fmt::Debug) {
    let text = format!("{answer:?}");
    let is_bad = |word: &str| matches!(word, "NaN" | "inf" | "-inf");
    let words =
        text.split(|letter: char| !(letter.is_alphanumeric() || letter == '-' || letter == '.'));
    assert!(!words.into_iter().any(is_bad), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_runs_and_scenarios_does_not_matter(cells in cells(tame()), shift in 0_usize..6) {
        let names = names(cells.len());
        let (mut turned, mut turned_names) = (cells.clone(), names.clone());
        let by = shift % cells.len();
        turned.rotate_left(by);
        turned_names.rotate_left(by);
        for (a, b) in &mut turned {
            a.reverse();
            b.reverse();
        }
        for statistic in [Statistic::Median, Statistic::Mean, Statistic::P95] {
            let before = compare(&[metric("m", &cells, &names, statistic)]);
            let after = compare(&[metric("m", &turned, &turned_names, statistic)]);
            prop_assert_eq!(before, after);
        }
        let groups = |cells: &[Cell]| -> Vec<Vec<f64>> { cells.iter().map(|cell| cell.0.clone()).collect() };
        let level = Level::CONFIDENCE_95;
        prop_assert_eq!(cluster_mean_ci(&groups(&cells), level), cluster_mean_ci(&groups(&turned), level));
        prop_assert_eq!(scenario_typical_ci(groups(&cells), level), scenario_typical_ci(groups(&turned), level));
        let options = BootstrapOptions { resamples: 300, ..BootstrapOptions::clustered() };
        prop_assert_eq!(cluster_bootstrap_ci(&groups(&cells), &options), cluster_bootstrap_ci(&groups(&turned), &options));
        let strata = |cells: &[Cell]| -> PermutationTest {
            let strata: Vec<Stratum<'_>> = cells.iter().map(|(a, b)| Stratum { a, b }).collect();
            stratified_permutation_test(&strata, &PermutationOptions { permutations: 300, ..Default::default() })
        };
        prop_assert_eq!(strata(&cells), strata(&turned));
    }

    #[test]
    fn scaling_scales_numbers_and_changes_no_p_value(cells in cells(tame()), factor in prop::sample::select(vec![0.001, 0.37, 3.0, 1e9])) {
        let names = names(cells.len());
        let scaled: Vec<Cell> = cells
            .iter()
            .map(|(a, b)| (a.iter().map(|value| value * factor).collect(), b.iter().map(|value| value * factor).collect()))
            .collect();
        let before = compare(&[metric("m", &cells, &names, Statistic::Median)]).remove(0);
        let after = compare(&[metric("m", &scaled, &names, Statistic::Median)]).remove(0);
        for field in ["pValue", "probBetter", "cliffsDelta", "verdict", "scenarios", "familySize"] {
            prop_assert_eq!(&before[field], &after[field], "{}", field);
        }
        prop_assert_eq!(&before["paired"]["signFlipP"], &after["paired"]["signFlipP"]);
        for (left, right) in numbers(&before["paired"]).iter().zip(numbers(&after["paired"])) {
            prop_assert!((left - right).abs() <= 1e-6 * (1.0 + left.abs()), "{left} {right}");
        }
        let mean = |cells: &[Cell]| {
            let groups: Vec<&[f64]> = cells.iter().map(|cell| cell.0.as_slice()).collect();
            cluster_mean_ci(&groups, Level::CONFIDENCE_95).map(|answer| [answer.mean, answer.se, answer.lower, answer.upper])
        };
        if let (Some(before), Some(after)) = (mean(&cells), mean(&scaled)) {
            for (left, right) in before.iter().zip(after) {
                prop_assert!((left * factor - right).abs() <= 1e-9 * factor * (1.0 + before[0].abs() + before[1].abs() * 100.0));
            }
        }
    }

    #[test]
    fn adding_a_metric_changes_no_other_number(cells in cells(tame()), others in cells(tame())) {
        let names = names(cells.len().max(others.len()));
        let alone = compare(&[metric("m", &cells, &names, Statistic::Median)]).remove(0);
        let together = compare(&[metric("other", &others, &names, Statistic::Mean), metric("m", &cells, &names, Statistic::Median)]).remove(1);
        for (field, value) in alone.as_object().unwrap() {
            // A larger family adjusts more and may so change the verdict; nothing else may move.
            if !["pAdjusted", "familySize", "verdict", "plan"].contains(&field.as_str()) {
                prop_assert_eq!(value, &together[field], "{}", field);
            }
        }
    }

    #[test]
    fn answers_are_finite_for_hostile_comparisons(cells in cells(hostile()), pick in 0_usize..3) {
        let names = names(cells.len());
        let statistic = [Statistic::Median, Statistic::Mean, Statistic::P90][pick];
        let comparisons = compare_groups(&[metric("m", &cells, &names, statistic)], &[], &OPTIONS).unwrap();
        assert_no_non_finite(&comparisons);
        let unlabelled: Vec<Group<'_>> = cells.iter().flat_map(|(a, b)| {
            [Group { mode: "a", scenario: None, values: a , cut: &[] }, Group { mode: "b", scenario: None, values: b , cut: &[] }]
        }).collect();
        let metric = Metric { name: "m", direction: Some(Direction::Higher), statistic, kind: MetricKind::Amount, is_primary: false, groups: unlabelled };
        assert_no_non_finite(&compare_groups(&[metric], &[], &OPTIONS).unwrap());
    }

    #[test]
    fn answers_are_finite_for_hostile_groups(cells in cells(hostile())) {
        let (a, b): (Vec<Vec<f64>>, Vec<Vec<f64>>) = cells.iter().cloned().unzip();
        let level = Level::CONFIDENCE_95;
        let resampling = BootstrapOptions { resamples: 200, ..BootstrapOptions::default() };
        assert_no_non_finite(&scenario_typical_ci(&a, level));
        assert_no_non_finite(&cluster_mean_ci(&a, level));
        assert_no_non_finite(&cluster_bootstrap_ci(&a, &BootstrapOptions { method: Method::Bca, ..resampling }));
        for scope in [Scope::Population, Scope::Suite] {
            let paired = PairedOptions { scope, ..PairedOptions::default() };
            assert_no_non_finite(&paired_log_ratio(&a, &b, &paired).unwrap());
            assert_no_non_finite(&paired_difference(&a, &b, &paired).unwrap());
            for margin in [Margin::Relative(0.05), Margin::Absolute(1.0)] {
                let gate = GateOptions { scope, ..GateOptions::new(margin) };
                assert_no_non_finite(&noninferiority_gate(&a, &b, &gate).unwrap());
            }
        }
        for statistic in [Statistic::Median, Statistic::Mean, Statistic::Max] {
            assert_no_non_finite(&suite_bounds(&a, statistic, Level::ALPHA_05, 1));
        }
        let flat: Vec<f64> = a.concat();
        assert_no_non_finite(&describe(&flat));
        assert_no_non_finite(&tukey_outliers(&flat));
        for method in [Method::Percentile, Method::Expanded, Method::Bca, Method::Auto] {
            for statistic in [Statistic::Median, Statistic::Mean] {
                assert_no_non_finite(&bootstrap_ci(&flat, &BootstrapOptions { method, statistic, ..resampling }));
            }
        }
        assert_no_non_finite(&bootstrap_reduction_ci(&flat, &b.concat(), &resampling));
        assert_no_non_finite(&cohens_d(&flat, &b.concat()));
        assert_no_non_finite(&sign_flip_test(&flat, &PermutationOptions::default()));
        assert_no_non_finite(&tost(&flat, -1.0, 1.0, Level::ALPHA_05).unwrap());
        let completed: Vec<bool> = (0..flat.len()).map(|run| run % 3 != 0).collect();
        assert_no_non_finite(&censored_median(&flat, &completed).unwrap());
        assert_no_non_finite(&cost_per_success(&flat, &completed).unwrap());
        assert_no_non_finite(&cohens_kappa(&flat, &flat, KappaWeights::Quadratic).unwrap());
        let ratings: Vec<Vec<Option<f64>>> = vec![flat.iter().copied().map(Some).collect(); 2];
        assert_no_non_finite(&krippendorff_alpha(&ratings, RatingLevel::Interval).unwrap());
    }

    #[test]
    fn rates_are_finite_and_ordered(counts in prop::collection::vec((0_u64..6, 0_u64..6, 0_u64..6, 0_u64..6), 0..7), k in 0_u64..7) {
        let tally = |passed: u64, failed: u64| Tally::new(passed, passed + failed).unwrap();
        let a: Vec<Tally> = counts.iter().map(|count| tally(count.0, count.1)).collect();
        let b: Vec<Tally> = counts.iter().map(|count| tally(count.2, count.3)).collect();
        let (level, alpha) = (Level::CONFIDENCE_95, Level::ALPHA_05);
        let rate = success_rate(&a, alpha);
        assert_no_non_finite(&rate);
        if let (Some(estimate), Some(lower), Some(upper)) = (rate.estimate, rate.lower, rate.upper) {
            prop_assert!(0.0 <= lower && lower <= estimate && estimate <= upper && upper <= 1.0);
        }
        let difference = success_difference(&a, &b, alpha).unwrap();
        assert_no_non_finite(&difference);
        if let (Some(estimate), Some(lower), Some(upper)) = (difference.estimate, difference.lower, difference.upper) {
            prop_assert!(lower <= estimate && estimate <= upper);
            prop_assert_eq!(difference.excludes_zero, difference.p_value.unwrap() < 0.05, "{:?}", difference);
            let mirrored = success_difference(&b, &a, alpha).unwrap();
            prop_assert!((mirrored.lower.unwrap() + upper).abs() < 1e-12);
            prop_assert!((mirrored.p_value.unwrap() - difference.p_value.unwrap()).abs() < 1e-12);
            let wider = success_difference(&a, &b, Level::new(0.01).unwrap()).unwrap();
            prop_assert!(wider.lower.unwrap() <= lower && upper <= wider.upper.unwrap());
        }
        let exact = suite_difference(&a, &b, alpha).unwrap();
        assert_no_non_finite(&exact);
        if let (Some(lower), Some(upper)) = (exact.lower, exact.upper) {
            let excludes = lower > 0.0 || upper < 0.0;
            prop_assert_eq!(excludes, exact.p_value.unwrap() < 0.05, "{:?}", exact);
        }
        assert_no_non_finite(&suite_rate(&a, alpha));
        let void: Vec<u64> = counts.iter().map(|count| count.0 % 3).collect();
        assert_no_non_finite(&void_check(&a, &b, &void, &void, alpha).unwrap());
        let suite = pass_k_suite(&a, k, level);
        assert_no_non_finite(&suite);
        for scope in [Scope::Population, Scope::Suite] {
            assert_no_non_finite(&success_margin(&a, &b, &SuccessMarginOptions { margin: 0.1, alpha, scope }).unwrap());
            assert_no_non_finite(&success_gate(&a, 0.9, alpha, scope));
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let mut state = 1_u64;
    let mut value = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        100.0 + (state >> 40) as f64 / 1e4
    };
    let cells: Vec<Cell> = (0..12)
        .map(|_| {
            (
                (0..15).map(|_| value()).collect(),
                (0..14).map(|_| value()).collect(),
            )
        })
        .collect();
    let names = names(cells.len());
    let texts: Vec<String> = [1, 2, 4]
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let metrics = [
                metric("first", &cells, &names, Statistic::Median),
                metric("second", &cells[..8], &names[..8], Statistic::Mean),
            ];
            let options = CompareOptions {
                resamples: 3_000,
                permutations: 3_000,
                ..OPTIONS
            };
            pool.install(|| {
                serde_json::to_string(&compare_groups(&metrics, &[], &options).unwrap()).unwrap()
            })
        })
        .into();
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

#[test]
fn no_values_at_all_give_an_answer() {
    let empty = Metric {
        name: "m",
        direction: None,
        statistic: Statistic::Median,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: Vec::new(),
    };
    assert!(
        compare_groups(&[empty], &[], &CompareOptions::default())
            .unwrap()
            .metrics
            .is_empty()
    );
    let nothing = [
        Group {
            mode: "a",
            scenario: None,
            values: &[],
            cut: &[],
        },
        Group {
            mode: "b",
            scenario: None,
            values: &[f64::NAN],
            cut: &[],
        },
    ];
    let metric = Metric {
        name: "m",
        direction: None,
        statistic: Statistic::Median,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: nothing.to_vec(),
    };
    let comparison = compare_groups(&[metric], &[], &CompareOptions::default())
        .unwrap()
        .metrics
        .remove(0);
    assert_eq!(comparison.verdict, Verdict::NotComparable);
    assert_eq!(comparison.non_finite, 1);
    assert!(comparison.warnings.contains(Warning::NonFiniteDropped));
}
