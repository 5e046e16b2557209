//! The worked examples of `docs/statistics.md` are what the library answers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use assize_stats::*;

const PAGE: &str = include_str!("../../../docs/statistics.md");
const LEVEL: Level = Level::CONFIDENCE_95;

/// Thousands of tokens: six scenarios, three runs each.
const FAST: [[f64; 3]; 6] = [
    [9.9, 8.4, 10.2],
    [21.0, 24.5, 19.8],
    [4.0, 3.6, 4.9],
    [75.2, 68.0, 82.3],
    [13.3, 12.1, 15.0],
    [30.5, 36.0, 28.4],
];
const DIRECT: [[f64; 3]; 6] = [
    [11.2, 10.1, 12.6],
    [26.0, 33.1, 29.9],
    [5.1, 6.0, 4.8],
    [70.4, 95.0, 88.1],
    [22.0, 18.3, 19.6],
    [41.0, 33.9, 47.2],
];

fn tallies(successes: &[u64], trials: u64) -> Vec<Tally> {
    successes
        .iter()
        .map(|&successes| Tally::new(successes, trials).unwrap())
        .collect()
}

fn strata() -> Vec<Stratum<'static>> {
    FAST.iter()
        .zip(&DIRECT)
        .map(|(a, b)| Stratum { a, b })
        .collect()
}

/// One line per example, as the page shows it.
fn lines() -> Vec<String> {
    [
        one_mode(),
        two_modes(),
        rates(),
        decisions(),
        special_cases(),
    ]
    .concat()
}

fn one_mode() -> Vec<String> {
    let values = [12.0, 14.0, 13.0, 15.0, 90.0];
    let summary = describe(&values);
    let median = bootstrap_ci(&values, &BootstrapOptions::default());
    let range = median_range(&values).unwrap();
    let outliers = tukey_outliers(&values).unwrap();
    let typical = scenario_typical_ci(DIRECT, LEVEL).unwrap();
    let mean = cluster_mean_ci(&DIRECT, LEVEL).unwrap();
    let p95 = BootstrapOptions {
        statistic: Statistic::P95,
        ..BootstrapOptions::clustered()
    };
    let p95 = cluster_bootstrap_ci(&DIRECT, &p95).unwrap();
    vec![
        format!(
            "describe: mean {}, median {}, p95 {:.1}, standard deviation {:.1}",
            summary.mean, summary.median, summary.p95, summary.stddev
        ),
        format!(
            "median_range: {} to {} holds the median with probability {}",
            range.min, range.max, range.level
        ),
        format!(
            "tukey_outliers: above {} or below {}: value number {}",
            outliers.high_fence,
            outliers.low_fence,
            outliers.positions[0] + 1
        ),
        format!(
            "bootstrap_ci: median {}, {} to {}",
            median.point_estimate, median.lower, median.upper
        ),
        format!(
            "expanded_tail: {:.4} for 6 scenarios, {:.4} for 30",
            expanded_tail(6, LEVEL).unwrap(),
            expanded_tail(30, LEVEL).unwrap()
        ),
        format!(
            "cluster_bootstrap_ci: p95 {:.1}, {:.1} to {:.1}",
            p95.point_estimate, p95.lower, p95.upper
        ),
        format!(
            "scenario_typical_ci: {:.1}, {:.1} to {:.1}",
            typical.point_estimate, typical.lower, typical.upper
        ),
        format!(
            "cluster_mean_ci: {:.1}, {:.1} to {:.1}",
            mean.mean, mean.lower, mean.upper
        ),
    ]
}

fn two_modes() -> Vec<String> {
    let population = paired_log_ratio(&FAST, &DIRECT, &PairedOptions::default()).unwrap();
    let suite = PairedOptions {
        scope: Scope::Suite,
        ..PairedOptions::default()
    };
    let suite = paired_log_ratio(&FAST, &DIRECT, &suite).unwrap();
    let errors = (
        [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]],
        [[3.0, 2.0], [2.0, 4.0], [1.0, 0.0]],
    );
    let errors = paired_difference(
        &errors.0,
        &errors.1,
        &PairedOptions {
            statistic: Statistic::Mean,
            ..PairedOptions::default()
        },
    )
    .unwrap();
    let pooled = bootstrap_reduction_ci(
        &FAST.concat(),
        &DIRECT.concat(),
        &BootstrapOptions::default(),
    )
    .interval;
    let plain = permutation_test(
        &FAST.concat(),
        &DIRECT.concat(),
        &PermutationOptions::default(),
    );
    let stratified = stratified_permutation_test(&strata(), &PermutationOptions::default());
    let small = permutation_test(
        &[1.0, 2.0, 3.0, 4.0, 5.0],
        &[6.0, 7.0, 8.0, 9.0, 10.0],
        &PermutationOptions::default(),
    );
    let flips = sign_flip_test(
        &[-1.2, -0.4, -2.2, -0.9, -1.5],
        &PermutationOptions::default(),
    );
    let d = cohens_d(&FAST.concat(), &DIRECT.concat());
    let delta = cliffs_delta(&FAST.concat(), &DIRECT.concat());
    vec![
        format!(
            "paired_log_ratio: {:.1} % fewer, {:.1} % to {:.1} %, p = {:.4}",
            population.reduction_pct.unwrap(),
            population.lower.unwrap(),
            population.upper.unwrap(),
            population.p_value.unwrap()
        ),
        format!(
            "paired_log_ratio, suite: {:.1} % fewer, {:.1} % to {:.1} %",
            suite.reduction_pct.unwrap(),
            suite.lower.unwrap(),
            suite.upper.unwrap()
        ),
        format!(
            "paired_difference: {:.2} errors, {:.2} to {:.2}",
            errors.difference.unwrap(),
            errors.lower.unwrap(),
            errors.upper.unwrap()
        ),
        format!(
            "bootstrap_reduction_ci: {:.1} % fewer, {:.1} % to {:.1} %",
            pooled.point_estimate, pooled.lower, pooled.upper
        ),
        format!(
            "permutation_test: p = {:.4}, {} of {} relabelings",
            small.p_value,
            (small.p_value * small.evaluated as f64).round(),
            small.evaluated
        ),
        format!(
            "permutation_test, pooled runs: p = {:.2}; stratified_permutation_test: p = {:.4}",
            plain.p_value, stratified.p_value
        ),
        format!(
            "sign_flip_test: p = {}, and no five scenarios can give less",
            flips.p_value
        ),
        format!(
            "cohens_d: {:.2} ({}), hedgesG {:.2}; cliffs_delta: {:.2}",
            d.d,
            serde_json::to_value(d.magnitude).unwrap().as_str().unwrap(),
            d.hedges_g.unwrap(),
            delta.cliffs_delta.unwrap()
        ),
    ]
}

fn rates() -> Vec<String> {
    let seven = Tally::new(7, 10).unwrap();
    let single = |method| proportion_ci(seven, method, LEVEL).unwrap();
    let (wilson, exact, jeffreys) = (
        single(ProportionMethod::Wilson),
        single(ProportionMethod::ClopperPearson),
        single(ProportionMethod::Jeffreys),
    );
    let difference = proportion_diff_ci(seven, Tally::new(3, 12).unwrap(), LEVEL).unwrap();
    let outcomes = PairedOutcomes {
        both: 36,
        only_a: 12,
        only_b: 2,
        neither: 0,
    };
    let paired = paired_proportion_diff_ci(outcomes, LEVEL).unwrap();
    let all_passed = success_rate(&tallies(&[3; 8], 3), Level::ALPHA_05);
    let (a, b) = (
        tallies(&[5, 4, 5, 3, 5, 4], 5),
        tallies(&[4, 3, 5, 1, 4, 2], 5),
    );
    let rate = success_rate(&b, Level::ALPHA_05);
    let success = success_difference(&a, &b, Level::ALPHA_05).unwrap();
    let suite_exact = suite_difference(&a, &b, Level::ALPHA_05).unwrap();
    let voids = void_check(&a, &b, &[1, 0, 0, 1, 0, 1], &[0; 6], Level::ALPHA_05).unwrap();
    let eight = pass_k(Tally::new(6, 8).unwrap(), 4);
    let suite = pass_k_suite(&tallies(&[5, 4, 5, 3, 5, 4, 5, 2], 5), 3, LEVEL);
    let [lower, upper] = suite.pass_hat_k_ci.unwrap();
    vec![
        format!(
            "proportion_ci: wilson {:.2} to {:.2}, clopper-pearson {:.2} to {:.2}, jeffreys {:.2} to {:.2}",
            wilson.lower, wilson.upper, exact.lower, exact.upper, jeffreys.lower, jeffreys.upper
        ),
        format!(
            "proportion_diff_ci: {:.2}, {:.2} to {:.2}",
            difference.point_estimate, difference.lower, difference.upper
        ),
        format!(
            "paired_proportion_diff_ci: {:.2}, {:.3} to {:.3}; mcnemar_exact: p = {:.3}",
            paired.point_estimate,
            paired.lower,
            paired.upper,
            mcnemar_exact(12, 2)
        ),
        format!(
            "success_rate: {:.2}, {:.2} to {:.2}",
            rate.estimate.unwrap(),
            rate.lower.unwrap(),
            rate.upper.unwrap()
        ),
        format!(
            "success_rate, 24 of 24: {:.3} to {:.2}",
            all_passed.lower.unwrap(),
            all_passed.upper.unwrap()
        ),
        format!(
            "success_difference: {:.1} points, {:.1} to {:.1}, p = {:.3}: {:?}",
            100.0 * success.estimate.unwrap(),
            100.0 * success.lower.unwrap(),
            100.0 * success.upper.unwrap(),
            success.p_value.unwrap(),
            success.verdict
        ),
        format!(
            "suite_difference: {:.1} points, {:.1} to {:.1}, p = {:.3}",
            100.0 * suite_exact.estimate.unwrap(),
            100.0 * suite_exact.lower.unwrap(),
            100.0 * suite_exact.upper.unwrap(),
            suite_exact.p_value.unwrap()
        ),
        format!(
            "void_check: observed {:?}, worst {:?}, best {:?}: {:?}",
            voids.observed, voids.worst, voids.best, voids.verdict
        ),
        format!(
            "pass_k: pass@4 {:.2}, pass^4 {:.2}",
            eight.pass_at_k.unwrap(),
            eight.pass_hat_k.unwrap()
        ),
        format!(
            "pass_k_suite: pass@3 {:.2}, pass^3 {:.2}, {lower:.2} to {upper:.2}",
            suite.pass_at_k.unwrap(),
            suite.pass_hat_k.unwrap()
        ),
    ]
}

fn decisions() -> Vec<String> {
    let p_values = [Some(0.01), Some(0.04), Some(0.03), Some(0.005)];
    let shown = |method| -> Vec<String> {
        adjust_p_values(&p_values, method)
            .iter()
            .map(|p| format!("{:.3}", p.unwrap()))
            .collect()
    };
    let inputs = PowerInputs {
        scenarios: 8,
        repetitions: 5.0,
        omega2: 0.02,
        sigma_a2: 0.15,
        sigma_b2: 0.15,
        delta: 0.2,
    };
    let plan = power_plan(&inputs, Level::ALPHA_05, Level::POWER_80).unwrap();
    let gate =
        noninferiority_gate(&FAST, &DIRECT, &GateOptions::new(Margin::Relative(0.05))).unwrap();
    let margin = success_margin(
        &tallies(&[46, 45], 50),
        &tallies(&[46, 46], 50),
        &SuccessMarginOptions {
            margin: 0.1,
            alpha: Level::ALPHA_05,
            scope: Scope::Suite,
        },
    )
    .unwrap();
    let limit = success_gate(&tallies(&[48, 47], 50), 0.9, Level::ALPHA_05, Scope::Suite);
    let tost = tost(
        &[0.01, -0.02, 0.03, 0.0, 0.015, -0.01],
        -0.05,
        0.05,
        Level::ALPHA_05,
    )
    .unwrap();
    vec![
        format!(
            "adjust_p_values: holm {}; bh {}",
            shown(AdjustMethod::Holm).join(" "),
            shown(AdjustMethod::Bh).join(" ")
        ),
        format!(
            "power_plan: sees {:.3}, needs {} repetitions or {} scenarios",
            plan.min_detectable_effect.unwrap(),
            plan.repetitions_needed.unwrap(),
            plan.scenarios_needed.unwrap()
        ),
        format!(
            "noninferiority_gate: ratio {:.2}, at most {:.2}, p = {:.4}: {:?}",
            gate.ratio.unwrap(),
            gate.upper_bound.unwrap(),
            gate.p_non_inferior.unwrap(),
            gate.verdict
        ),
        format!(
            "success_margin: {:.1} points, at least {:.1}: {:?}",
            100.0 * margin.estimate.unwrap(),
            100.0 * margin.lower.unwrap(),
            margin.non_inferior
        ),
        format!(
            "success_gate: {:.2}, at least {:.3}; success >= 0.9: {:?}",
            limit.estimate.unwrap(),
            limit.lower.unwrap(),
            limit.verdict
        ),
        format!(
            "tost: p = {:.4}, equivalent: {}",
            tost.p_value.unwrap(),
            tost.equivalent
        ),
    ]
}

fn special_cases() -> Vec<String> {
    let rounds = [
        1.0, 0.0, 1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0,
        1.0, 1.0,
    ];
    let betting = betting_cs(&rounds, &BettingOptions::default()).unwrap();
    let times = censored_median(
        &[10.0, 20.0, 30.0, 120.0, 120.0],
        &[true, true, true, false, false],
    )
    .unwrap();
    let cost = cost_per_success(&[0.1, 0.12, 0.5, 0.11], &[true, true, false, true]).unwrap();
    let cut = [false, false, true];
    let limited = |a: &'static [f64; 3], b: &'static [f64; 3]| LimitedRuns {
        a,
        b,
        cut_a: &cut,
        cut_b: &[false; 3],
    };
    let limited = limited_comparison(
        &[
            limited(&[70.0, 95.0, 120.0], &[60.0, 66.0, 90.0]),
            limited(&[50.0, 64.0, 120.0], &[41.0, 47.0, 49.0]),
            limited(&[33.0, 41.0, 120.0], &[25.0, 30.0, 52.0]),
            limited(&[80.0, 99.0, 120.0], &[71.0, 88.0, 93.0]),
        ],
        LimitKind::Time,
        Level::ALPHA_05,
    )
    .unwrap();
    let failed = count_difference(
        &[
            [0.0, 1.0, 0.0, 2.0],
            [1.0, 0.0, 1.0, 0.0],
            [0.0, 2.0, 1.0, 0.0],
            [1.0, 0.0, 0.0, 1.0],
            [0.0, 1.0, 1.0, 1.0],
            [0.0, 0.0, 1.0, 1.0],
        ],
        &[
            [0.0, 0.0, 0.0, 1.0],
            [0.0; 4],
            [0.0; 4],
            [0.0; 4],
            [0.0, 0.0, 0.0, 1.0],
            [0.0; 4],
        ],
        Level::ALPHA_05,
    )
    .unwrap();
    let (a, b) = (
        [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0],
    );
    let kappa = cohens_kappa(&a, &b, KappaWeights::None).unwrap();
    let ratings: Vec<Vec<Option<f64>>> = [a, b]
        .iter()
        .map(|rater| rater.iter().copied().map(Some).collect())
        .collect();
    let alpha = krippendorff_alpha(&ratings, RatingLevel::Nominal).unwrap();
    let names: Vec<String> = (1..=6)
        .map(|scenario| format!("scenario {scenario}"))
        .collect();
    let of = |mode, runs: &'static [[f64; 3]; 6]| {
        names.iter().zip(runs).map(move |(name, values)| Group {
            mode,
            scenario: Some(name),
            values,
            cut: &[],
        })
    };
    let tokens = Metric {
        name: "tokens",
        direction: Some(Direction::Lower),
        statistic: Statistic::Median,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: of("fast", &FAST).chain(of("direct", &DIRECT)).collect(),
    };
    let options = CompareOptions {
        baseline: Some("direct"),
        ..CompareOptions::default()
    };
    let comparison = compare_groups(&[tokens], &[], &options)
        .unwrap()
        .metrics
        .remove(0);
    let word = serde_json::to_value(comparison.verdict).unwrap();
    vec![
        format!(
            "betting_cs: {:.3} to {:.3}",
            betting.running_lower, betting.running_upper
        ),
        format!(
            "censored_median: {}, restricted mean {}",
            times.median.unwrap(),
            times.restricted_mean.unwrap()
        ),
        format!(
            "limited_comparison: more in {:.0} % of pairs ({:.0} to {:.0} %), p = {:.4}; within the limit {:.2} times ({:.2} to {:.2})",
            50.0 * (1.0 + limited.score.unwrap()),
            50.0 * (1.0 + limited.lower.unwrap()),
            50.0 * (1.0 + limited.upper.unwrap()),
            limited.p_value.unwrap(),
            limited.ratio.unwrap(),
            limited.ratio_lower.unwrap(),
            limited.ratio_upper.unwrap()
        ),
        format!(
            "count_difference: {:.2} against {:.2} per run, {:.2} to {:.2} more, p = {:.4}",
            failed.rate_a.unwrap(),
            failed.rate_b.unwrap(),
            failed.lower.unwrap(),
            failed.upper.unwrap(),
            failed.p_value.unwrap()
        ),
        format!(
            "cost_per_success: {:.3}, while a successful run cost {:.2}",
            cost.value.unwrap(),
            cost.mean_cost_of_successes.unwrap()
        ),
        format!(
            "cohens_kappa: {:.2} with {:.0} % agreement; krippendorff_alpha: {:.2}",
            kappa.kappa.unwrap(),
            100.0 * kappa.agreement.unwrap(),
            alpha.alpha.unwrap()
        ),
        format!(
            "compare_groups: {}, pAdjusted {:.4}, probBetter {:.2}",
            word.as_str().unwrap(),
            comparison.p_adjusted.unwrap(),
            comparison.prob_better.unwrap()
        ),
    ]
}

#[test]
fn the_page_shows_what_the_library_answers() {
    let missing: Vec<String> = lines()
        .into_iter()
        .filter(|line| !PAGE.contains(line.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "not in docs/statistics.md:\n{}",
        missing.join("\n")
    );
}

#[test]
fn the_page_names_every_warning() {
    for warning in Warning::ALL {
        let code = serde_json::to_value(warning).unwrap();
        let cell = format!(
            "| `{}` | {} |",
            code.as_str().unwrap(),
            warning.explanation()
        );
        assert!(PAGE.contains(&cell), "{cell}");
    }
}
