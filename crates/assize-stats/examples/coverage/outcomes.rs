//! Success and failure: scenarios differ in difficulty, so repeated trials of one resemble each other.

use assize_stats::*;

use crate::world::{Design, MARGIN, World, holds};

/// Mean success rate of A.
const RATE: f64 = 0.8;
/// Correlation of repeated trials of a scenario.
const CORRELATION: f64 = 0.6;
const LOOKS: usize = 40;

pub(crate) fn success_rate(
    world: &mut World,
    design: Design,
    correlation: f64,
    repetitions: fn(&mut World, usize) -> usize,
) -> Vec<bool> {
    let tallies: Vec<Tally> = (0..design.scenarios)
        .map(|_| {
            let probability = World::difficulty(RATE, correlation, world.unit());
            let trials = repetitions(world, design.repetitions);
            world.tally(probability, trials)
        })
        .collect();
    let naive = pooled_wilson(&tallies);
    let ours = assize_stats::success_rate(&tallies, Level::ALPHA_05);
    vec![
        holds(naive.0, naive.1, RATE),
        held(ours.lower, ours.upper, RATE),
    ]
}

/// Two modes whose scenario difficulties are tied by `shares`, one pair of places per scenario.
fn two_rates(
    world: &mut World,
    design: Design,
    rate_b: f64,
    shares: fn(&mut World) -> (f64, f64),
) -> (Vec<Tally>, Vec<Tally>) {
    (0..design.scenarios)
        .map(|_| {
            let (share_a, share_b) = shares(world);
            let a = World::difficulty(RATE, CORRELATION, share_a);
            let b = World::difficulty(rate_b, CORRELATION, share_b);
            (
                world.tally(a, design.repetitions),
                world.tally(b, design.repetitions),
            )
        })
        .unzip()
}

/// Both modes find the same scenarios hard.
pub(crate) fn same_scenarios(world: &mut World) -> (f64, f64) {
    let share = world.unit();
    (share, share)
}

pub(crate) fn success_difference(world: &mut World, design: Design, rate_b: f64) -> Vec<bool> {
    let (a, b) = two_rates(world, design, rate_b, same_scenarios);
    let truth = RATE - rate_b;
    let naive = proportion_diff_ci(total(&a), total(&b), Level::CONFIDENCE_95);
    let ours =
        assize_stats::success_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
    vec![
        naive.is_some_and(|naive| holds(naive.lower, naive.upper, truth)),
        held(ours.lower, ours.upper, truth),
    ]
}

pub(crate) fn success_false_alarms(
    world: &mut World,
    design: Design,
    shares: fn(&mut World) -> (f64, f64),
) -> Vec<bool> {
    let (a, b) = two_rates(world, design, RATE, shares);
    let naive = proportion_diff_ci(total(&a), total(&b), Level::CONFIDENCE_95);
    let ours =
        assize_stats::success_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
    vec![
        naive.is_some_and(|naive| !holds(naive.lower, naive.upper, 0.0)),
        ours.excludes_zero,
    ]
}

pub(crate) fn pass_hat(world: &mut World, design: Design) -> Vec<bool> {
    let size = 1.0 / CORRELATION - 1.0;
    // The third moment of the beta distribution.
    let truth: f64 = (0..3)
        .map(|step| (RATE * size + f64::from(step)) / (size + f64::from(step)))
        .product();
    let tallies: Vec<Tally> = (0..design.scenarios)
        .map(|_| {
            let probability = World::difficulty(RATE, CORRELATION, world.unit());
            world.tally(probability, design.repetitions)
        })
        .collect();
    let (lower, upper) = pooled_wilson(&tallies);
    let ours = pass_k_suite(&tallies, 3, Level::CONFIDENCE_95).pass_hat_k_ci;
    vec![
        holds(libm::pow(lower, 3.0), libm::pow(upper, 3.0), truth),
        ours.is_some_and(|[lower, upper]| holds(lower, upper, truth)),
    ]
}

pub(crate) fn gated_success(world: &mut World, design: Design) -> Vec<bool> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..design.scenarios {
        let probability = 0.7 + 0.3 * world.unit();
        a.push(world.tally(probability - MARGIN, design.repetitions));
        b.push(world.tally(probability, design.repetitions));
    }
    let gate = success_margin(
        &a,
        &b,
        &SuccessMarginOptions {
            margin: MARGIN,
            alpha: Level::ALPHA_05,
            scope: Scope::Suite,
        },
    )
    .expect("lists of equal length");
    vec![
        gate.estimate
            .is_some_and(|difference| difference >= -MARGIN),
        gate.non_inferior == GateVerdict::Pass,
    ]
}

/// One observation per round: the share of scenarios in which A beat B.
pub(crate) fn optional_stopping(world: &mut World, design: Design) -> Vec<bool> {
    let rounds: Vec<f64> = (0..LOOKS)
        .map(|_| {
            (0..design.scenarios).filter(|_| world.unit() < 0.5).count() as f64
                / design.scenarios as f64
        })
        .collect();
    let differs = |look: usize| {
        let differences: Vec<f64> = rounds[..look].iter().map(|share| share - 0.5).collect();
        let single: Vec<[f64; 1]> = differences.iter().map(|&difference| [difference]).collect();
        let zero = vec![[0.0]; look];
        let test = paired_difference(&single, &zero, &PairedOptions::default())
            .expect("lists of equal length");
        test.p_value.is_some_and(|p| p <= 0.05)
    };
    let naive = (5..=LOOKS).any(differs);
    let ours = betting_cs(&rounds, &BettingOptions::default()).expect("shares lie between 0 and 1");
    vec![naive, !holds(ours.running_lower, ours.running_upper, 0.5)]
}

fn held(lower: Option<f64>, upper: Option<f64>, truth: f64) -> bool {
    let bounds = lower.zip(upper);
    bounds.is_some_and(|(lower, upper)| holds(lower, upper, truth))
}

fn total(tallies: &[Tally]) -> Tally {
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum();
    Tally::new(sum(|tally| tally.successes()), sum(|tally| tally.trials()))
        .expect("sums keep the order")
}

fn pooled_wilson(tallies: &[Tally]) -> (f64, f64) {
    let interval = proportion_ci(
        total(tallies),
        ProportionMethod::Wilson,
        Level::CONFIDENCE_95,
    );
    interval.map_or((0.0, 1.0), |interval| (interval.lower, interval.upper))
}
