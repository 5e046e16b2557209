//! Simulated experiments as rows: modes that do not differ, with several models, void trials and limits.

use serde_json::{Value, json};

/// One kind of report. The modes of a kind do not differ but by `effect`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) modes: usize,
    pub(crate) models: usize,
    pub(crate) tasks: usize,
    pub(crate) runs: usize,
    /// Every task has between 1 and twice as many runs, minus 1.
    pub(crate) is_ragged: bool,
    /// Tasks are all or nothing, for each mode by itself: the modes differ on every other task, and not on average.
    pub(crate) is_own: bool,
    /// The share of failures of the second mode that turn void, for a cause that may depend on the mode.
    pub(crate) void_failures: f64,
    /// The share of all trials that are void for a cause that cannot.
    pub(crate) void_unrelated: f64,
    /// The time limits of the second mode and of the others; the median run takes 1.
    pub(crate) limits: Option<[f64; 2]>,
    /// Rows report tokens; where they do not, time decides.
    pub(crate) reports_tokens: bool,
    /// The difference by which the second mode passes more often.
    pub(crate) effect: f64,
}

const PLAIN: Kind = Kind {
    name: "two modes",
    modes: 2,
    models: 1,
    tasks: 10,
    runs: 5,
    is_ragged: false,
    is_own: false,
    void_failures: 0.0,
    void_unrelated: 0.0,
    limits: None,
    reports_tokens: true,
    effect: 0.0,
};

/// The reports of the study; only the last kind has a true difference.
pub(crate) const KINDS: [Kind; 16] = [
    PLAIN,
    Kind {
        name: "one task",
        tasks: 1,
        runs: 20,
        ..PLAIN
    },
    Kind {
        name: "two tasks",
        tasks: 2,
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
        name: "one run of each task",
        tasks: 30,
        runs: 1,
        ..PLAIN
    },
    Kind {
        name: "unequal numbers of runs",
        is_ragged: true,
        ..PLAIN
    },
    Kind {
        name: "all or nothing, each mode on its own tasks",
        is_own: true,
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
        name: "three modes, limits 0.8 and 2",
        modes: 3,
        limits: Some([0.8, 2.0]),
        ..PLAIN
    },
    Kind {
        name: "no tokens told, a third of the times cut off",
        limits: Some([1.2, 1.2]),
        reports_tokens: false,
        ..PLAIN
    },
    Kind {
        name: "three models, three modes, voids and limits",
        modes: 3,
        models: 3,
        void_failures: 0.2,
        void_unrelated: 0.1,
        limits: Some([1.5, 1.5]),
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

/// The properties that the trials of one task under one mode share.
struct Cell<'a> {
    kind: &'a Kind,
    names: [String; 3],
    /// The chance to pass.
    rate: f64,
    /// The typical time of runs, on the log scale.
    level: f64,
    is_second: bool,
}

/// The rows of one report, one JSON object per line.
pub(crate) fn rows(kind: &Kind, chance: &mut Chance) -> String {
    let mut lines = Vec::new();
    for model in 0..kind.models {
        for task in 0..kind.tasks {
            let shared = 0.4 + 0.5 * chance.unit();
            let level = 0.6 * chance.normal();
            for mode in 0..kind.modes {
                let is_second = mode == 1;
                let rate = match kind.is_own {
                    true => (chance.unit() * 2.0).floor(),
                    false if is_second => shared + kind.effect,
                    false => shared,
                };
                let cell = Cell {
                    kind,
                    names: [
                        format!("m{model}"),
                        format!("t{task}"),
                        format!("mode{mode}"),
                    ],
                    rate,
                    level,
                    is_second,
                };
                let runs = match kind.is_ragged {
                    true => 1 + (chance.unit() * (2 * kind.runs - 1) as f64) as usize,
                    false => kind.runs,
                };
                lines.extend((0..runs).map(|run| cell.row(run, chance).to_string()));
            }
        }
    }
    lines.join("\n")
}

impl Cell<'_> {
    fn row(&self, run: usize, chance: &mut Chance) -> Value {
        let Kind {
            void_failures,
            void_unrelated,
            limits,
            reports_tokens,
            ..
        } = *self.kind;
        let [model, task, mode] = &self.names;
        let time = (self.level + 0.4 * chance.normal()).exp();
        let limit = limits.map(|[second, other]| if self.is_second { second } else { other });
        let is_cut = limit.is_some_and(|limit| time > limit);
        let time = limit.map_or(time, |limit| time.min(limit));
        let passes = chance.unit() < self.rate;
        let hides = self.is_second && !passes && chance.unit() < void_failures;
        let (outcome, cause) = match () {
            () if chance.unit() < void_unrelated => ("void", "agent_start"),
            () if hides => ("void", "llm_error"),
            () if passes => ("pass", ""),
            () => ("fail", ""),
        };
        let mut row = json!({
            "schemaVersion": 2, "runId": "study", "scenarioId": task, "mode": mode, "model": model, "iteration": run,
            "success": outcome == "pass", "outcome": outcome, "censored": is_cut,
            "timing": {"wallMs": (time * 60_000.0).round()},
        });
        if outcome == "void" {
            row["voidCause"] = json!(cause);
        }
        if reports_tokens {
            let tokens = (time * 10_000.0).round();
            row["tokens"] = json!({"total": tokens, "active": tokens});
        }
        row
    }
}

/// The verdicts outside the exploratory heading, of what `assize compare --json` prints.
pub(crate) fn declared_verdicts(json_lines: &str) -> Result<Vec<String>, String> {
    let mut verdicts = Vec::new();
    for line in json_lines.lines() {
        let found: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if found["exploratory"] == false {
            let word = found["verdict"]
                .as_str()
                .ok_or("a comparison without a verdict")?;
            verdicts.push(word.to_owned());
        }
    }
    match verdicts.is_empty() {
        true => Err("the command compared nothing".to_owned()),
        false => Ok(verdicts),
    }
}
