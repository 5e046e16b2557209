//! The population interval of a success difference and of a success rate, over sizes and truths.

use assize_stats::{Level, Tally, Verdict, success_difference, success_rate};

use crate::Arguments;
use crate::chance::{Chance, Size, percent, range, shares};
use crate::truth::{OWN, Truth, rare_disasters, truths};

const TASKS: [usize; 9] = [2, 3, 5, 8, 10, 20, 30, 50, 100];
const RUNS: [usize; 5] = [1, 3, 5, 10, 20];
/// Sizes that are printed one by one.
const SHOWN: [Size; 8] = [
    size(8, 5),
    size(10, 3),
    size(10, 10),
    size(10, 20),
    size(20, 5),
    size(30, 1),
    size(30, 3),
    size(50, 3),
];
/// Below this coverage, or above this share of false verdicts, a cell is simulated again.
const NEAR_COVERAGE: f64 = 0.935;
const NEAR_FALSE: f64 = 0.055;
/// Data sets of a cell that is simulated again.
const AGAIN: u64 = 20_000;

const fn size(tasks: usize, runs: usize) -> Size {
    Size { tasks, runs }
}

/// The results of one cell.
#[derive(Clone, Copy)]
struct Cell {
    coverage: f64,
    decided: f64,
}

/// The distribution of runs over tasks.
#[derive(Clone, Copy)]
enum Counts {
    Equal,
    /// Between 1 and twice the planned number, minus 1.
    Ragged,
}

impl Counts {
    fn draw(self, chance: &mut Chance, planned: usize) -> usize {
        match self {
            Self::Equal => planned,
            Self::Ragged => 1 + chance.index(2 * planned - 1),
        }
    }
}

pub(crate) fn print_differences(arguments: &Arguments) {
    let truths = truths();
    println!("#### Success difference, new tasks: `success_difference`\n");
    println!(
        "| tasks x runs | worst coverage % | worst A/A verdicts % | decided, mean of {} effects % |",
        truths.iter().filter(|truth| truth.has_effect()).count()
    );
    println!("| --- | --- | --- | --- |");
    for size in SHOWN {
        let cells = |effect: bool| {
            let meant = truths
                .iter()
                .filter(move |truth| truth.has_effect() == effect);
            meant.map(|truth| difference(arguments, truth, size, Counts::Equal))
        };
        let coverage = cells(true).chain(cells(false)).map(|cell| cell.coverage);
        let power: Vec<f64> = cells(true).map(|cell| cell.decided).collect();
        println!(
            "| {size} | {} | {} | {} |",
            percent(coverage.fold(1.0, f64::min)),
            percent(cells(false).map(|cell| cell.decided).fold(0.0, f64::max)),
            percent(power.iter().sum::<f64>() / power.len() as f64)
        );
    }
    println!();
    for (counts, name) in [
        (Counts::Equal, "Whole grid"),
        (Counts::Ragged, "Ragged counts (1 to 2R - 1 runs)"),
    ] {
        let runs: &[usize] = match counts {
            Counts::Equal => &RUNS,
            Counts::Ragged => &RUNS[1..],
        };
        let found = whole_grid(arguments, &truths, runs, counts);
        println!("{name}: {found}\n");
    }
    let rare = rare_disasters();
    let named: Vec<String> = [size(10, 20), size(20, 5), size(30, 10)]
        .map(|size| {
            let cell = difference(arguments, &rare, size, Counts::Equal);
            format!(
                "{size}: false verdicts {} %, coverage {} %",
                percent(cell.decided),
                percent(cell.coverage)
            )
        })
        .to_vec();
    println!("Named exception, {}: {}.\n", rare.name, named.join("; "));
    let named: Vec<String> = RUNS.iter().map(|&runs| two_tasks(runs)).collect();
    println!(
        "Named exception, two tasks, {OWN} (exact, by enumeration; not in the grids above): {}.\n",
        named.join("; ")
    );
}

/// Both tasks favour the same mode in one of eight data sets, and two equal differences show no spread.
fn is_named(truth: &Truth, tasks: usize) -> bool {
    truth.name == OWN && tasks == 2
}

/// The named exception, over all sixteen data sets there are: each mode always or never passes each task.
fn two_tasks(runs: usize) -> String {
    let (mut verdicts, mut holds) = (0, 0);
    for data in 0_u8..16 {
        let tally = |bit: u8| {
            let passed = if data >> bit & 1 == 1 { runs } else { 0 };
            Tally::new(passed as u64, runs as u64).expect("passed runs are among the runs")
        };
        let (a, b) = ([tally(0), tally(1)], [tally(2), tally(3)]);
        let found = success_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
        verdicts += u32::from(found.excludes_zero);
        holds += u32::from(!found.excludes_zero);
    }
    format!(
        "2 x {runs}: false verdicts {} %, coverage {} %",
        percent(f64::from(verdicts) / 16.0),
        percent(f64::from(holds) / 16.0)
    )
}

/// The worst cells of a grid; those near a limit are simulated again with fresh seeds.
fn whole_grid(arguments: &Arguments, truths: &[Truth], runs: &[usize], counts: Counts) -> String {
    let (mut cells, mut low, mut coverage, mut alarms, mut again) =
        (0, 0, 1.0_f64, 0.0_f64, Vec::new());
    for truth in truths {
        for tasks in TASKS.into_iter().filter(|&tasks| !is_named(truth, tasks)) {
            for &runs in runs {
                let size = size(tasks, runs);
                let mut cell = difference(arguments, truth, size, counts);
                let false_share = |cell: &Cell| {
                    if truth.has_effect() {
                        0.0
                    } else {
                        cell.decided
                    }
                };
                if cell.coverage < NEAR_COVERAGE || false_share(&cell) > NEAR_FALSE {
                    let fresh = Arguments {
                        simulations: AGAIN,
                        seed: arguments.seed + 1_000,
                    };
                    cell = difference(&fresh, truth, size, counts);
                    again.push(cell.coverage);
                }
                cells += 1;
                low += u32::from(cell.coverage < 0.94);
                coverage = coverage.min(cell.coverage);
                alarms = alarms.max(false_share(&cell));
            }
        }
    }
    let repeated = match again.is_empty() {
        true => "no cell came near a limit".to_owned(),
        false => format!(
            "{} cells came near a limit and were simulated again with {AGAIN} fresh data sets: coverage {}",
            again.len(),
            range(again)
        ),
    };
    format!(
        "{cells} cells, worst coverage {} %, {} % of cells below 94 %, A/A verdicts at most {} %; {repeated}.",
        percent(coverage),
        percent(f64::from(low) / f64::from(cells)),
        percent(alarms)
    )
}

fn difference(arguments: &Arguments, truth: &Truth, size: Size, counts: Counts) -> Cell {
    let cell = format!("difference {} {size} {}", truth.name, counts as u8);
    let expected = truth.difference();
    let [coverage, decided] = shares(arguments, &cell, |chance| {
        let (a, b): (Vec<Tally>, Vec<Tally>) = (0..size.tasks)
            .map(|_| {
                let rates = truth.task(chance);
                let (runs_a, runs_b) = (
                    counts.draw(chance, size.runs),
                    counts.draw(chance, size.runs),
                );
                (chance.tally(rates.a, runs_a), chance.tally(rates.b, runs_b))
            })
            .unzip();
        let found = success_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
        let holds = found.lower.is_some_and(|low| low <= expected + 1e-12)
            && found.upper.is_some_and(|high| expected <= high + 1e-12);
        let decided = match expected {
            expected if expected > 1e-9 => found.verdict == Verdict::Better,
            expected if expected < -1e-9 => found.verdict == Verdict::Worse,
            _ => found.excludes_zero,
        };
        [holds, decided]
    });
    Cell { coverage, decided }
}

pub(crate) fn print_rates(arguments: &Arguments) {
    println!("#### Success rate, new tasks: `success_rate`\n");
    let truths: Vec<Truth> = truths();
    let (mut cells, mut low, mut worst) = (0, 0, (1.0, String::new()));
    for truth in &truths {
        for tasks in TASKS {
            for runs in RUNS {
                let size = size(tasks, runs);
                let mut coverage = rate(arguments, truth, size);
                if coverage < NEAR_COVERAGE {
                    let fresh = Arguments {
                        simulations: AGAIN,
                        seed: arguments.seed + 1_000,
                    };
                    coverage = rate(&fresh, truth, size);
                }
                cells += 1;
                low += u32::from(coverage < 0.94);
                if coverage < worst.0 {
                    worst = (coverage, format!("{}, {size}", truth.name));
                }
            }
        }
    }
    println!(
        "{cells} cells, worst coverage {} % ({}), {} % of cells below 94 %; cells below {} % were simulated again with {AGAIN} fresh data sets.\n",
        percent(worst.0),
        worst.1,
        percent(f64::from(low) / f64::from(cells)),
        percent(NEAR_COVERAGE)
    );
}

fn rate(arguments: &Arguments, truth: &Truth, size: Size) -> f64 {
    let expected = truth.rate();
    let cell = format!("rate {} {size}", truth.name);
    let [coverage] = shares(arguments, &cell, |chance| {
        let tallies: Vec<Tally> = (0..size.tasks)
            .map(|_| {
                let rates = truth.task(chance);
                chance.tally(rates.a, size.runs)
            })
            .collect();
        let found = success_rate(&tallies, Level::ALPHA_05);
        let holds = found.lower.is_some_and(|low| low <= expected + 1e-12)
            && found.upper.is_some_and(|high| expected <= high + 1e-12);
        [holds]
    });
    coverage
}
