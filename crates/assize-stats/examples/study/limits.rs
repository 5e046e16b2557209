//! Runs cut off by a limit: log-normal times and tokens.

use assize_stats::{
    Level, LimitKind, LimitedComparison, LimitedRuns, LimitedVerdict, limited_comparison,
};

use crate::Arguments;
use crate::chance::{Chance, Size, percent, shares};

/// Spread of runs inside a task, and of tasks, on the log scale.
const INSIDE: f64 = 0.4;
const BETWEEN: f64 = 0.6;
/// Spread of the mode's effect between tasks, on the log scale.
const EFFECT: f64 = 0.15;

/// One way of cutting runs off.
#[derive(Clone, Copy)]
struct World {
    /// A divided by B.
    ratio: f64,
    limit_a: f64,
    limit_b: f64,
}

#[derive(Default)]
struct Task {
    a: Vec<f64>,
    b: Vec<f64>,
    cut_a: Vec<bool>,
    cut_b: Vec<bool>,
    /// Whole values, hidden from the methods.
    whole_a: Vec<f64>,
    whole_b: Vec<f64>,
}

/// Times and tokens grow together, so a time limit cuts both off.
fn tasks(chance: &mut Chance, world: World, size: Size, kind: LimitKind) -> Vec<Task> {
    (0..size.tasks)
        .map(|_| {
            let level = BETWEEN * chance.normal();
            let effect = libm::log(world.ratio) + EFFECT * chance.normal();
            let mut task = Task::default();
            for _ in 0..size.runs {
                let time_a = match kind {
                    LimitKind::Time => libm::exp(level + effect + INSIDE * chance.normal()),
                    LimitKind::Tokens => libm::exp(level + INSIDE * chance.normal()),
                };
                let time_b = libm::exp(level + INSIDE * chance.normal());
                // Tokens are used at a steady pace; A uses more of them per second.
                let pace = match kind {
                    LimitKind::Time => 1.0,
                    LimitKind::Tokens => libm::exp(effect),
                };
                task.a.push(pace * time_a.min(world.limit_a));
                task.cut_a.push(time_a > world.limit_a);
                task.whole_a.push(pace * time_a);
                task.b.push(time_b.min(world.limit_b));
                task.cut_b.push(time_b > world.limit_b);
                task.whole_b.push(time_b);
            }
            task
        })
        .collect()
}

fn compared(tasks: &[Task], kind: LimitKind) -> LimitedComparison {
    let runs: Vec<LimitedRuns<'_>> = tasks
        .iter()
        .map(|task| LimitedRuns {
            a: &task.a,
            b: &task.b,
            cut_a: &task.cut_a,
            cut_b: &task.cut_b,
        })
        .collect();
    limited_comparison(&runs, kind, Level::ALPHA_05).expect("lists of equal length")
}

const SIZES: [Size; 2] = [Size { tasks: 10, runs: 5 }, Size { tasks: 20, runs: 5 }];

pub(crate) fn print_times(arguments: &Arguments) {
    println!("#### Times cut off by a limit: `limited_comparison`\n");
    println!("| truth | limits of A and B | tasks x runs | slower % | faster % |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, world) in [
        ("A 1.5 times slower", world(1.5, 1.0, 1.0)),
        ("A 1.5 times slower", world(1.5, 2.0, 2.0)),
        ("no difference", world(1.0, 1.0, 1.0)),
        ("no difference", world(1.0, 0.8, 2.0)),
    ] {
        for size in SIZES {
            let cell = format!(
                "times {} {} {} {size}",
                world.ratio, world.limit_a, world.limit_b
            );
            let [slower, faster] = shares(arguments, &cell, |chance| {
                let found = compared(
                    &tasks(chance, world, size, LimitKind::Time),
                    LimitKind::Time,
                );
                [
                    found.verdict == LimitedVerdict::More,
                    found.verdict == LimitedVerdict::Less,
                ]
            });
            println!(
                "| {name} | {} and {} | {size} | {} | {} |",
                world.limit_a,
                world.limit_b,
                percent(slower),
                percent(faster)
            );
        }
    }
    println!();
}

const fn world(ratio: f64, limit_a: f64, limit_b: f64) -> World {
    World {
        ratio,
        limit_a,
        limit_b,
    }
}

pub(crate) fn print_tokens(arguments: &Arguments) {
    println!("#### Tokens until a time limit: `limited_comparison`\n");
    println!("| truth | limits of A and B | tasks x runs | more % | less % |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, world) in [
        ("A uses 20 % more", world(1.2, 1.2, 1.2)),
        ("A uses 20 % more, shorter limit", world(1.2, 0.8, 1.2)),
        ("no difference", world(1.0, 1.2, 1.2)),
        ("no difference", world(1.0, 0.8, 2.0)),
    ] {
        for size in SIZES {
            let cell = format!(
                "tokens {} {} {} {size}",
                world.ratio, world.limit_a, world.limit_b
            );
            let [more, less] = shares(arguments, &cell, |chance| {
                let tasks = tasks(chance, world, size, LimitKind::Tokens);
                let found = compared(&tasks, LimitKind::Tokens);
                [
                    found.verdict == LimitedVerdict::More,
                    found.verdict == LimitedVerdict::Less,
                ]
            });
            println!(
                "| {name} | {} and {} | {size} | {} | {} |",
                world.limit_a,
                world.limit_b,
                percent(more),
                percent(less)
            );
        }
    }
    println!();
}
