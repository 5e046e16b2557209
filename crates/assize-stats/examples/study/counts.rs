//! Rare counts: most runs have no event.

use assize_stats::{Level, count_difference};

use crate::Arguments;
use crate::chance::{Chance, Size, percent, shares};

/// Means per run, and how much tasks differ: 0 for not at all.
#[derive(Clone, Copy)]
struct World {
    a: f64,
    b: f64,
    spread: f64,
}

pub(crate) fn print_counts(arguments: &Arguments) {
    println!("#### Rare counts: `count_difference`\n");
    println!("| events per run | tasks x runs | coverage % | decided % |");
    println!("| --- | --- | --- | --- |");
    for (name, world) in [
        (
            "0.4 against 0.1",
            World {
                a: 0.4,
                b: 0.1,
                spread: 0.0,
            },
        ),
        (
            "0.2 against 0.1",
            World {
                a: 0.2,
                b: 0.1,
                spread: 0.0,
            },
        ),
        (
            "0.4 against 0.1, tasks differ",
            World {
                a: 0.4,
                b: 0.1,
                spread: 0.8,
            },
        ),
        (
            "0.3 in both",
            World {
                a: 0.3,
                b: 0.3,
                spread: 0.0,
            },
        ),
        (
            "0.1 in both",
            World {
                a: 0.1,
                b: 0.1,
                spread: 0.0,
            },
        ),
        (
            "0.3 in both, tasks differ",
            World {
                a: 0.3,
                b: 0.3,
                spread: 0.8,
            },
        ),
    ] {
        for size in [
            Size { tasks: 10, runs: 3 },
            Size { tasks: 10, runs: 9 },
            Size { tasks: 20, runs: 5 },
        ] {
            let cell = format!("counts {name} {size}");
            let [holds, decided] = shares(arguments, &cell, |chance| one(chance, world, size));
            println!(
                "| {name} | {size} | {} | {} |",
                percent(holds),
                percent(decided)
            );
        }
    }
    println!();
}

fn one(chance: &mut Chance, world: World, size: Size) -> [bool; 2] {
    let (a, b): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (0..size.tasks)
        .map(|_| {
            // Mean 1, so that the mean over tasks stays what it is.
            let spread = world.spread;
            let factor = libm::exp(spread * chance.normal() - spread * spread / 2.0);
            let mut runs = |mean: f64| -> Vec<f64> {
                (0..size.runs)
                    .map(|_| chance.poisson(mean * factor))
                    .collect()
            };
            (runs(world.a), runs(world.b))
        })
        .unzip();
    let found = count_difference(&a, &b, Level::ALPHA_05).expect("lists of equal length");
    let expected = world.a - world.b;
    // Nothing counted in either mode makes no claim that could be wrong.
    let holds = found.nothing_happened
        || (found.lower.is_some_and(|low| low <= expected + 1e-12)
            && found.upper.is_some_and(|high| expected <= high + 1e-12));
    let decided = match expected {
        expected if expected > 1e-9 => found.lower.is_some_and(|low| low > 1e-12),
        _ => found.excludes_zero,
    };
    [holds, decided]
}
