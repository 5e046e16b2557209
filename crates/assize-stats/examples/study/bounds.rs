//! Exactly these tasks, margins and gates, and void trials.

use assize_stats::{
    GateVerdict, Level, Scope, SuccessMarginOptions, Tally, Verdict, success_gate, success_margin,
    suite_difference, void_check,
};

use crate::Arguments;
use crate::chance::{Chance, Size, percent, range, shares};
use crate::truth::{Rates, Truth, truths};

const fn size(tasks: usize, runs: usize) -> Size {
    Size { tasks, runs }
}

/// Sizes of fixed sets of tasks; each mode has at least five runs.
const SUITES: [Size; 6] = [
    size(1, 20),
    size(3, 5),
    size(5, 3),
    size(8, 5),
    size(10, 10),
    size(30, 1),
];
/// Fixed sets of tasks per size and truth.
const SETS: u64 = 8;

/// `suite_difference` on fixed sets of tasks.
pub(crate) fn print_suite(arguments: &Arguments) {
    println!("#### Success on exactly these tasks: `suite_difference`\n");
    let mut coverages: Vec<f64> = Vec::new();
    let mut alarms: Vec<f64> = Vec::new();
    for truth in truths() {
        for size in SUITES {
            for set in 0..SETS {
                let mut chance =
                    Chance::new(arguments.seed, &format!("{} {size}", truth.name), set);
                let tasks: Vec<Rates> = (0..size.tasks).map(|_| truth.task(&mut chance)).collect();
                let (coverage, alarm) = suite_cell(arguments, &truth, size, set, &tasks);
                coverages.push(coverage);
                let difference = tasks.iter().map(|task| task.a - task.b).sum::<f64>();
                if difference.abs() < 1e-12 {
                    alarms.push(alarm);
                }
            }
        }
    }
    coverages.sort_unstable_by(f64::total_cmp);
    let mean = coverages.iter().sum::<f64>() / coverages.len() as f64;
    println!(
        "{} fixed sets of tasks: mean coverage {} %, first percentile {} %, worst {} %; verdicts where the tasks do not differ: at most {} %.\n",
        coverages.len(),
        percent(mean),
        percent(coverages[coverages.len() / 100]),
        percent(coverages[0]),
        percent(alarms.into_iter().fold(0.0, f64::max))
    );
    let gates: Vec<[f64; 2]> = SUITES
        .iter()
        .flat_map(|size| [0.0, 0.1].map(|spread| gate_cell(arguments, *size, spread)))
        .collect();
    println!(
        "Gate `success >= 0.9`, truth exactly 0.9: passes {} %, fails {} %.\n",
        range(gates.iter().map(|gate| gate[0])),
        range(gates.iter().map(|gate| gate[1]))
    );
}

fn suite_cell(
    arguments: &Arguments,
    truth: &Truth,
    size: Size,
    set: u64,
    tasks: &[Rates],
) -> (f64, f64) {
    let expected = tasks.iter().map(|task| task.a - task.b).sum::<f64>() / tasks.len() as f64;
    let cell = format!("suite {} {size} {set}", truth.name);
    let [holds, alarm] = shares(arguments, &cell, |chance| {
        let (a, b) = draw(tasks, size.runs, chance);
        let found = suite_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
        let (low, high) = (found.lower.unwrap_or(-1.0), found.upper.unwrap_or(1.0));
        [
            low <= expected + 1e-12 && expected <= high + 1e-12,
            low > 0.0 || high < 0.0,
        ]
    });
    (holds, alarm)
}

/// Passing and failing of a gate whose threshold is the truth; half of the tasks are easier and half harder by `spread`.
fn gate_cell(arguments: &Arguments, size: Size, spread: f64) -> [f64; 2] {
    let cell = format!("gate {size} {spread}");
    let even = size.tasks - size.tasks % 2;
    shares(arguments, &cell, |chance| {
        let tallies: Vec<Tally> = (0..size.tasks)
            .map(|task| {
                let side = match task {
                    task if task >= even => 0.0,
                    task if task % 2 == 0 => spread,
                    _ => -spread,
                };
                chance.tally(0.9 + side, size.runs)
            })
            .collect();
        let gate = success_gate(&tallies, 0.9, Level::ALPHA_05, Scope::Suite);
        [
            gate.verdict == GateVerdict::Pass,
            gate.verdict == GateVerdict::Fail,
        ]
    })
}

fn draw(tasks: &[Rates], runs: usize, chance: &mut Chance) -> (Vec<Tally>, Vec<Tally>) {
    tasks
        .iter()
        .map(|task| (chance.tally(task.a, runs), chance.tally(task.b, runs)))
        .unzip()
}

/// `success_margin` for new tasks with a margin of ten points.
pub(crate) fn print_margins(arguments: &Arguments) {
    println!("#### Margin of 10 points, new tasks: `success_margin`\n");
    println!("| truth | tasks x runs | non-inferior % | equivalent % |");
    println!("| --- | --- | --- | --- |");
    for (name, a, b) in [
        ("A 10 points worse: claims are false", 0.8, 0.9),
        ("A 10 points worse, near the top", 0.89, 0.99),
        ("no difference, 90 %", 0.9, 0.9),
        ("no difference, 99 %", 0.99, 0.99),
    ] {
        for size in [
            size(10, 20),
            size(20, 5),
            size(30, 10),
            size(50, 3),
            size(100, 5),
        ] {
            let [non_inferior, equivalent] = margin_cell(arguments, size, Rates { a, b });
            println!(
                "| {name} | {size} | {} | {} |",
                percent(non_inferior),
                percent(equivalent)
            );
        }
    }
    println!();
}

fn margin_cell(arguments: &Arguments, size: Size, rates: Rates) -> [f64; 2] {
    let cell = format!("margin {} {} {size}", rates.a, rates.b);
    let tasks = vec![rates; size.tasks];
    let options = SuccessMarginOptions {
        margin: 0.1,
        alpha: Level::ALPHA_05,
        scope: Scope::Population,
    };
    shares(arguments, &cell, |chance| {
        let (a, b) = draw(&tasks, size.runs, chance);
        let found = success_margin(&a, &b, &options).expect("lists of equal length");
        [found.non_inferior == GateVerdict::Pass, found.equivalent]
    })
}

/// `void_check` where failures of one mode turn void, and where voids are innocent.
pub(crate) fn print_voids(arguments: &Arguments) {
    println!("#### Void trials: `void_check`\n");
    println!("| truth | tasks x runs | better, voids left out % | better % |");
    println!("| --- | --- | --- | --- |");
    for size in [size(10, 20), size(30, 3)] {
        let [observed, bounded] = void_cell(arguments, size, Rates { a: 0.7, b: 0.7 }, 0.4, 0.0);
        println!(
            "| A/A at 70 %, 40 % of A's failures void: \"better\" is false | {size} | {} | {} |",
            percent(observed),
            percent(bounded)
        );
    }
    for size in [size(10, 20), size(30, 3)] {
        let [observed, bounded] = void_cell(arguments, size, Rates { a: 0.85, b: 0.65 }, 0.0, 0.05);
        println!(
            "| 85 % against 65 %, 5 % of all trials void by chance: the price | {size} | {} | {} |",
            percent(observed),
            percent(bounded)
        );
    }
    println!();
}

fn void_cell(
    arguments: &Arguments,
    size: Size,
    rates: Rates,
    void_failures_of_a: f64,
    void_any: f64,
) -> [f64; 2] {
    let cell = format!("voids {} {} {size} {void_any}", rates.a, rates.b);
    shares(arguments, &cell, |chance| {
        let mut side = |rate: f64, void_failures: f64| -> (Vec<Tally>, Vec<u64>) {
            (0..size.tasks)
                .map(|_| {
                    let (mut passed, mut judged, mut void) = (0, 0, 0);
                    for _ in 0..size.runs {
                        let passes = chance.unit() < rate;
                        let is_void =
                            chance.unit() < void_any || (!passes && chance.unit() < void_failures);
                        void += u64::from(is_void);
                        judged += u64::from(!is_void);
                        passed += u64::from(!is_void && passes);
                    }
                    let tally = Tally::new(passed, judged).expect("passed runs are judged");
                    (tally, void)
                })
                .unzip()
        };
        let (a, void_a) = side(rates.a, void_failures_of_a);
        let (b, void_b) = side(rates.b, 0.0);
        let found =
            void_check(&a, &b, &void_a, &void_b, Level::ALPHA_05).expect("lists of equal length");
        [
            found.observed == Verdict::Better,
            found.verdict == Verdict::Better,
        ]
    })
}
