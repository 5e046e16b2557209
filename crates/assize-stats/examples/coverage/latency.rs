//! Times and costs: log-normal runs around scenario levels that differ.

use assize_stats::*;

use crate::world::{BETWEEN, Design, EFFECT_SPREAD, INSIDE, LEVEL, MARGIN, World, holds};

fn resampling(world: &mut World, statistic: Statistic) -> BootstrapOptions {
    BootstrapOptions {
        statistic,
        resamples: 999,
        seed: world.seed(),
        ..BootstrapOptions::default()
    }
}

/// Runs of one mode; scenarios differ, the median of all is e^LEVEL.
fn one_mode(world: &mut World, design: Design) -> Vec<Vec<f64>> {
    (0..design.scenarios)
        .map(|_| {
            let level = LEVEL + BETWEEN * world.normal();
            world.runs(level, design.repetitions)
        })
        .collect()
}

pub(crate) fn typical(world: &mut World, design: Design) -> Vec<bool> {
    let groups = one_mode(world, design);
    let truth = libm::exp(LEVEL);
    let naive = bootstrap_ci(&groups.concat(), &resampling(world, Statistic::Median));
    let ours = scenario_typical_ci(&groups, Level::CONFIDENCE_95);
    vec![
        holds(naive.lower, naive.upper, truth),
        ours.is_some_and(|ours| holds(ours.lower, ours.upper, truth)),
    ]
}

pub(crate) fn skewed_mean(world: &mut World, design: Design) -> Vec<bool> {
    let groups = one_mode(world, design);
    let truth = libm::exp(LEVEL + (BETWEEN * BETWEEN + INSIDE * INSIDE) / 2.0);
    let naive = bootstrap_ci(&groups.concat(), &resampling(world, Statistic::Mean));
    let ours = cluster_mean_ci(&groups, Level::CONFIDENCE_95);
    vec![
        holds(naive.lower, naive.upper, truth),
        ours.is_some_and(|ours| holds(ours.lower, ours.upper, truth)),
    ]
}

/// Runs of two modes: A differs from B by `mean` plus a deviation per scenario, on the log scale.
fn two_modes(
    world: &mut World,
    design: Design,
    mean: f64,
    deviation: fn(&mut World) -> f64,
    repetitions: fn(&mut World, usize) -> usize,
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    (0..design.scenarios)
        .map(|_| {
            let level = LEVEL + BETWEEN * world.normal();
            let effect = mean + deviation(world);
            let (count_a, count_b) = (
                repetitions(world, design.repetitions),
                repetitions(world, design.repetitions),
            );
            (
                world.runs(level + effect, count_a),
                world.runs(level, count_b),
            )
        })
        .unzip()
}

pub(crate) fn reduction(
    world: &mut World,
    design: Design,
    deviation: fn(&mut World) -> f64,
    repetitions: fn(&mut World, usize) -> usize,
) -> Vec<bool> {
    let (a, b) = two_modes(world, design, libm::log(0.8), deviation, repetitions);
    let naive = bootstrap_reduction_ci(
        &a.concat(),
        &b.concat(),
        &resampling(world, Statistic::Median),
    )
    .interval;
    let holds_reduction = |a: &[Vec<f64>], b: &[Vec<f64>]| {
        let paired =
            paired_log_ratio(a, b, &PairedOptions::default()).expect("lists of equal length");
        paired
            .lower
            .zip(paired.upper)
            .is_some_and(|(lower, upper)| holds(lower, upper, 20.0))
    };
    let (single_a, single_b) = a
        .iter()
        .zip(&b)
        .flat_map(|(a, b)| a.iter().zip(b))
        .map(|(&a, &b)| (vec![a], vec![b]))
        .unzip::<_, _, Vec<_>, Vec<_>>();
    vec![
        holds(naive.lower, naive.upper, 20.0),
        holds_reduction(&single_a, &single_b),
        holds_reduction(&a, &b),
    ]
}

pub(crate) fn false_alarms(world: &mut World, design: Design, spread: f64) -> Vec<bool> {
    let deviation: fn(&mut World) -> f64 = if spread == 0.0 {
        |_| 0.0
    } else {
        |world| 0.4 * world.normal()
    };
    let (a, b) = two_modes(world, design, 0.0, deviation, |_, planned| planned);
    let options = PermutationOptions {
        permutations: 999,
        seed: world.seed(),
        ..PermutationOptions::default()
    };
    let logs = |groups: &[Vec<f64>]| -> Vec<Vec<f64>> {
        groups
            .iter()
            .map(|runs| runs.iter().map(|&run| libm::log(run)).collect())
            .collect()
    };
    let (logs_a, logs_b) = (logs(&a), logs(&b));
    let pooled = permutation_test(&logs_a.concat(), &logs_b.concat(), &options);
    let strata: Vec<Stratum<'_>> = logs_a
        .iter()
        .zip(&logs_b)
        .map(|(a, b)| Stratum { a, b })
        .collect();
    let stratified = stratified_permutation_test(&strata, &options);
    let paired =
        paired_log_ratio(&a, &b, &PairedOptions::default()).expect("lists of equal length");
    vec![
        pooled.p_value <= 0.05,
        stratified.p_value <= 0.05,
        paired.p_value.is_some_and(|p| p <= 0.05),
    ]
}

pub(crate) fn cost_gate(world: &mut World, design: Design) -> Vec<bool> {
    let limit = libm::log1p(MARGIN);
    let (a, b) = two_modes(
        world,
        design,
        limit,
        |world| EFFECT_SPREAD * world.normal(),
        |_, planned| planned,
    );
    let (population, naive) = gate(&a, &b, Scope::Population);
    // For the suite the scenarios are what they are: their mean effect, not that of all possible ones, is at the limit.
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let deviations: Vec<f64> = (0..design.scenarios)
        .map(|_| EFFECT_SPREAD * world.normal())
        .collect();
    let mean = deviations.iter().sum::<f64>() / design.scenarios as f64;
    for deviation in deviations {
        let level = LEVEL + BETWEEN * world.normal();
        a.push(world.runs(level + limit + deviation - mean, design.repetitions));
        b.push(world.runs(level, design.repetitions));
    }
    let (suite, _) = gate(&a, &b, Scope::Suite);
    vec![naive, population, suite]
}

/// Returns whether the gate passes, and whether its point estimate alone would.
fn gate(a: &[Vec<f64>], b: &[Vec<f64>], scope: Scope) -> (bool, bool) {
    let options = GateOptions {
        scope,
        ..GateOptions::new(Margin::Relative(MARGIN))
    };
    let gate = noninferiority_gate(a, b, &options).expect("lists of equal length");
    (
        gate.verdict == GateVerdict::Pass,
        gate.ratio.is_some_and(|ratio| ratio <= 1.0 + MARGIN),
    )
}
