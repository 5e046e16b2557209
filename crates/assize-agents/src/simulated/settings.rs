//! What a suite says about a simulated agent.

use crate::settings::problem;
use assize_contracts::OverrideProblem;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;

/// How a simulated agent behaves. Plain numbers are exact; ranges and medians are drawn from.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SimulatedSettings {
    /// The model it claims to be.
    #[serde(rename = "model")]
    _model: Option<String>,
    /// How long a turn really waits. 0: not at all.
    #[serde(alias = "latencyMs")]
    pub(super) latency_ms: Quantity,
    /// Turns in a session.
    pub(super) turns: Quantity,
    /// Tool calls in a session.
    #[serde(alias = "toolCalls")]
    pub(super) tool_calls: Quantity,
    /// Events in a trace, all told. Absent: what turns and tool calls come to.
    pub(super) events: Option<u64>,
    /// How often it reaches the goal.
    #[serde(alias = "successRate")]
    pub(super) success_rate: f64,
    /// How often a tool call fails.
    #[serde(alias = "toolFailureRate")]
    pub(super) tool_failure_rate: f64,
    /// Names of its tools.
    pub(super) tools: Vec<String>,
    /// Tokens of a session.
    pub(super) tokens: SimulatedTokens,
    /// What it says a session cost. Absent: it does not say.
    #[serde(alias = "costUsd")]
    pub(super) cost_usd: Option<Quantity>,
    /// How much scenarios differ: the spread of a factor that every mode shares.
    #[serde(alias = "scenarioSpread")]
    pub(super) scenario_spread: f64,
    /// What it answers when it reaches the goal. When set, a failure is a wrong answer for the checks to find;
    /// otherwise a failure is an error of its own.
    pub(super) answer: Option<String>,
}

/// Tokens of a simulated session.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SimulatedTokens {
    pub(super) input: Quantity,
    pub(super) output: Quantity,
    pub(super) reasoning: Quantity,
    #[serde(alias = "cacheRead")]
    pub(super) cache_read: Quantity,
    #[serde(alias = "cacheWrite")]
    pub(super) cache_write: Quantity,
}

/// A number, or where to draw one from.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, `{ median, spread }` or `{ min, max }`"
)]
pub(super) enum Quantity {
    /// Always this.
    Exact(f64),
    /// Log-normal: half lie below the median; `spread` is the standard deviation of the logarithm.
    Median { median: f64, spread: f64 },
    /// Anything between, equally often.
    Range { min: f64, max: f64 },
}

impl Default for SimulatedSettings {
    fn default() -> Self {
        Self {
            _model: None,
            latency_ms: Quantity::Exact(0.0),
            turns: Quantity::Median {
                median: 4.0,
                spread: 0.2,
            },
            tool_calls: Quantity::Median {
                median: 6.0,
                spread: 0.3,
            },
            events: None,
            success_rate: 1.0,
            tool_failure_rate: 0.05,
            tools: ["read", "search", "edit", "bash"]
                .map(str::to_owned)
                .to_vec(),
            tokens: SimulatedTokens::default(),
            cost_usd: None,
            scenario_spread: 0.0,
            answer: None,
        }
    }
}

impl Default for SimulatedTokens {
    fn default() -> Self {
        let median = |median| Quantity::Median {
            median,
            spread: 0.25,
        };
        Self {
            input: median(2_000.0),
            output: median(900.0),
            reasoning: median(400.0),
            cache_read: median(20_000.0),
            cache_write: median(3_000.0),
        }
    }
}

impl SimulatedSettings {
    pub(super) fn check(&self) -> Result<(), OverrideProblem> {
        for (key, share) in [
            ("success_rate", self.success_rate),
            ("tool_failure_rate", self.tool_failure_rate),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(problem(
                    key,
                    format!("found {share}, expected a share from 0 to 1"),
                ));
            }
        }
        if !(0.0..=5.0).contains(&self.scenario_spread) {
            let message = format!(
                "found {}, expected a spread from 0 to 5",
                self.scenario_spread
            );
            return Err(problem("scenario_spread", message));
        }
        let quantities = [
            ("latency_ms", Some(self.latency_ms), 3_600_000.0),
            ("turns", Some(self.turns), 10_000.0),
            ("tool_calls", Some(self.tool_calls), 100_000.0),
            ("cost_usd", self.cost_usd, 1e6),
            ("tokens", Some(self.tokens.input), 1e12),
            ("tokens", Some(self.tokens.output), 1e12),
            ("tokens", Some(self.tokens.reasoning), 1e12),
            ("tokens", Some(self.tokens.cache_read), 1e12),
            ("tokens", Some(self.tokens.cache_write), 1e12),
        ];
        for (key, quantity, most) in quantities {
            quantity.map_or(Ok(()), |quantity| quantity.check(key, most))?;
        }
        if self.tools.is_empty() {
            return Err(problem("tools", "found none, expected at least one name"));
        }
        if let (Some(events), Quantity::Exact(calls)) = (self.events, self.tool_calls)
            && (events as f64) < calls + 2.0
        {
            let message = format!(
                "found {events}, expected at least {}: every tool call, a turn and the answer",
                calls + 2.0
            );
            return Err(problem("events", message));
        }
        Ok(())
    }
}

impl Quantity {
    /// A draw, times a factor unless the number is exact.
    pub(super) fn draw(self, random: &mut Xoshiro256PlusPlus, factor: f64) -> f64 {
        let value = match self {
            Self::Exact(value) => value,
            Self::Median { median, spread } => median * (spread * normal(random)).exp() * factor,
            Self::Range { min, max } => (min + (max - min) * uniform(random)) * factor,
        };
        if value.is_finite() {
            value.max(0.0)
        } else {
            0.0
        }
    }

    fn check(self, key: &str, most: f64) -> Result<(), OverrideProblem> {
        let (low, high) = match self {
            Self::Exact(value) => (value, value),
            Self::Median { median, spread } => (median.min(spread), median.max(spread)),
            Self::Range { min, max } if min > max => {
                return Err(problem(key, format!("`min` {min} is above `max` {max}")));
            }
            Self::Range { min, max } => (min, max),
        };
        if low >= 0.0 && high <= most {
            return Ok(());
        }
        Err(problem(
            key,
            format!("found {low} to {high}, expected numbers from 0 to {most}"),
        ))
    }
}

/// Uniform in [0, 1).
pub(super) fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Standard normal, by the polar form of Box and Muller.
pub(super) fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(random) - 1.0, 2.0 * uniform(random) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}
