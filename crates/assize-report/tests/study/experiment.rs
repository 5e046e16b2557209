//! Simulated experiments as rows: modes that do not differ, with several models, void trials and limits.

use serde_json::{Value, json};

/// One kind of report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) modes: usize,
    pub(crate) models: usize,
    pub(crate) tasks: usize,
    pub(crate) runs: usize,
    /// The share of failures of the second mode that turn void.
    pub(crate) void_failures: f64,
    /// A time limit; the median run takes 1.
    pub(crate) limit: Option<f64>,
    /// How much more often the second mode passes.
    pub(crate) effect: f64,
}

const PLAIN: Kind = Kind {
    name: "two modes",
    modes: 2,
    models: 1,
    tasks: 10,
    runs: 5,
    void_failures: 0.0,
    limit: None,
    effect: 0.0,
};

/// The reports of the study; only the last kind has a true difference.
pub(crate) const KINDS: [Kind; 10] = [
    PLAIN,
    Kind {
        name: "one task",
        tasks: 1,
        runs: 20,
        ..PLAIN
    },
    Kind {
        name: "three tasks",
        tasks: 3,
        runs: 10,
        ..PLAIN
    },
    Kind {
        name: "four modes",
        modes: 4,
        ..PLAIN
    },
    Kind {
        name: "seven modes",
        modes: 7,
        ..PLAIN
    },
    Kind {
        name: "three models",
        models: 3,
        ..PLAIN
    },
    Kind {
        name: "ten models",
        models: 10,
        tasks: 8,
        runs: 3,
        ..PLAIN
    },
    Kind {
        name: "40 % of one mode's failures void",
        runs: 20,
        void_failures: 0.4,
        ..PLAIN
    },
    Kind {
        name: "three modes, a third of the runs cut off",
        modes: 3,
        limit: Some(1.2),
        ..PLAIN
    },
    Kind {
        name: "20 points more in the second mode",
        effect: 0.2,
        tasks: 20,
        ..PLAIN
    },
];

/// Splitmix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// The rows of one report, one JSON object per line.
pub(crate) fn rows(kind: &Kind, chance: &mut Chance) -> String {
    let mut lines = Vec::new();
    for model in 0..kind.models {
        for task in 0..kind.tasks {
            let rate = 0.4 + 0.5 * chance.unit();
            let level = 0.6 * chance.normal();
            for mode in 0..kind.modes {
                for run in 0..kind.runs {
                    let rate = if mode == 1 { rate + kind.effect } else { rate };
                    let names = [
                        format!("m{model}"),
                        format!("t{task}"),
                        format!("mode{mode}"),
                    ];
                    lines.push(row(kind, chance, &names, run, rate, level, mode == 1).to_string());
                }
            }
        }
    }
    lines.join("\n")
}

fn row(
    kind: &Kind,
    chance: &mut Chance,
    [model, task, mode]: &[String; 3],
    run: usize,
    rate: f64,
    level: f64,
    is_second: bool,
) -> Value {
    let time = (level + 0.4 * chance.normal()).exp();
    let is_cut = kind.limit.is_some_and(|limit| time > limit);
    let time = kind.limit.map_or(time, |limit| time.min(limit));
    let passes = chance.unit() < rate && !is_cut;
    let is_void = is_second && !passes && chance.unit() < kind.void_failures;
    let outcome = match (is_void, passes) {
        (true, _) => "void",
        (_, true) => "pass",
        _ => "fail",
    };
    let tokens = (time * 10_000.0).round();
    json!({
        "schemaVersion": 2, "runId": "study", "scenarioId": task, "mode": mode, "model": model, "iteration": run,
        "success": passes && !is_void, "outcome": outcome, "censored": is_cut,
        "timing": {"wallMs": (time * 60_000.0).round()}, "tokens": {"total": tokens, "active": tokens},
    })
}
