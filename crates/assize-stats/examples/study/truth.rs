//! True success rates of tasks under both modes.

use assize_stats::special::beta_quantile;

use crate::chance::Chance;

/// Points at which a distribution of difficulties is known.
const POINTS: usize = 512;

/// Each mode always or never passes a task, independently of the other mode.
pub(crate) const OWN: &str = "all or nothing, own";

/// The success rates of one task.
#[derive(Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) a: f64,
    pub(crate) b: f64,
}

/// A population of tasks.
pub(crate) struct Truth {
    pub(crate) name: &'static str,
    /// Tasks with their shares of the population.
    tasks: Tasks,
}

enum Tasks {
    /// Any of these, each as likely.
    Listed(Vec<Rates>),
    /// The rates of A and of B come from different tasks.
    Own(Vec<f64>, Vec<f64>),
}

impl Truth {
    pub(crate) fn task(&self, chance: &mut Chance) -> Rates {
        match &self.tasks {
            Tasks::Listed(tasks) => tasks[chance.index(tasks.len())],
            Tasks::Own(a, b) => Rates {
                a: a[chance.index(a.len())],
                b: b[chance.index(b.len())],
            },
        }
    }

    /// The mean of A's rates minus that of B's.
    pub(crate) fn difference(&self) -> f64 {
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        match &self.tasks {
            Tasks::Listed(tasks) => {
                tasks.iter().map(|task| task.a - task.b).sum::<f64>() / tasks.len() as f64
            }
            Tasks::Own(a, b) => mean(a) - mean(b),
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        let mean = |rates: Vec<f64>| rates.iter().sum::<f64>() / rates.len() as f64;
        match &self.tasks {
            Tasks::Listed(tasks) => mean(tasks.iter().map(|task| task.a).collect()),
            Tasks::Own(a, _) => mean(a.clone()),
        }
    }

    pub(crate) fn has_effect(&self) -> bool {
        self.difference().abs() > 1e-9
    }

    fn listed(name: &'static str, tasks: Vec<Rates>) -> Self {
        Self {
            name,
            tasks: Tasks::Listed(tasks),
        }
    }

    fn same(name: &'static str, a: f64, b: f64) -> Self {
        Self::listed(name, vec![Rates { a, b }])
    }

    /// Beta-distributed difficulties that both modes share.
    fn shared(name: &'static str, a: f64, b: f64, correlation: f64) -> Self {
        let pairs = difficulties(a, correlation)
            .into_iter()
            .zip(difficulties(b, correlation));
        Self::listed(name, pairs.map(|(a, b)| Rates { a, b }).collect())
    }

    fn own(name: &'static str, a: Vec<f64>, b: Vec<f64>) -> Self {
        Self {
            name,
            tasks: Tasks::Own(a, b),
        }
    }
}

/// Equally likely success rates with this mean and this correlation of repeated runs.
fn difficulties(mean: f64, correlation: f64) -> Vec<f64> {
    let size = 1.0 / correlation - 1.0;
    (0..POINTS)
        .map(|point| {
            let share = (point as f64 + 0.5) / POINTS as f64;
            beta_quantile(share, mean * size, (1.0 - mean) * size)
        })
        .collect()
}

fn parts(parts: &[(usize, f64, f64)]) -> Vec<Rates> {
    let repeat = |&(times, a, b): &(usize, f64, f64)| std::iter::repeat_n(Rates { a, b }, times);
    parts.iter().flat_map(repeat).collect()
}

/// Eight truths without a difference, then six with one.
pub(crate) fn truths() -> Vec<Truth> {
    vec![
        Truth::same("50 % everywhere", 0.5, 0.5),
        Truth::same("80 % everywhere", 0.8, 0.8),
        Truth::same("95 % everywhere", 0.95, 0.95),
        Truth::same("99 % everywhere", 0.99, 0.99),
        Truth::shared("80 %, shared difficulty 0.5", 0.8, 0.8, 0.5),
        Truth::listed(
            "all or nothing, shared",
            parts(&[(7, 1.0, 1.0), (3, 0.0, 0.0)]),
        ),
        Truth::own(
            "80 %, own difficulty 0.6",
            difficulties(0.8, 0.6),
            difficulties(0.8, 0.6),
        ),
        Truth::own(OWN, vec![0.0, 1.0], vec![0.0, 1.0]),
        Truth::shared("85 % against 65 %, shared 0.5", 0.85, 0.65, 0.5),
        Truth::shared("90 % against 80 %, shared 0.3", 0.9, 0.8, 0.3),
        Truth::same("70 % against 50 % everywhere", 0.7, 0.5),
        Truth::same("95 % against 85 % everywhere", 0.95, 0.85),
        Truth::listed(
            "60 points on one task in five",
            parts(&[(4, 0.9, 0.9), (1, 0.9, 0.3)]),
        ),
        Truth::listed(
            "+40 points on half, -20 on half",
            parts(&[(1, 0.8, 0.4), (1, 0.5, 0.7)]),
        ),
    ]
}

/// Small gains almost everywhere and rare disasters: the known limit of every method that decides with ten tasks.
pub(crate) fn rare_disasters() -> Truth {
    Truth::listed(
        "+9 points on 90 % of tasks, -81 on 10 %",
        parts(&[(9, 0.95, 0.86), (1, 0.1, 0.91)]),
    )
}
