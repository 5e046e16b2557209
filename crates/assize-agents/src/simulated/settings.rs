//! The suite's settings of a simulated agent.

use crate::settings::setting_error;
use assize_contracts::{ConfigError, JsonMap};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The behavior of a simulated agent. Plain numbers are exact; ranges and medians are drawn from.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SimulatedSettings {
    /// The model it claims to be.
    #[serde(rename = "model")]
    _model: Option<String>,
    /// The real wait of a turn. 0: none.
    #[serde(alias = "latencyMs")]
    pub(super) latency_ms: Quantity,
    /// Turns in a session.
    pub(super) turns: Quantity,
    /// Tool calls in a session.
    #[serde(alias = "toolCalls")]
    pub(super) tool_calls: Quantity,
    /// Events in a trace, in total. Absent: as many as turns and tool calls make.
    pub(super) events: Option<u64>,
    /// The share of sessions that reach the goal.
    #[serde(alias = "successRate")]
    pub(super) success_rate: f64,
    /// The share of tool calls that fail.
    #[serde(alias = "toolFailureRate")]
    pub(super) tool_failure_rate: f64,
    /// Names of its tools.
    pub(super) tools: Vec<String>,
    /// Tokens of a session.
    pub(super) tokens: SimulatedTokens,
    /// The cost that it reports for a session. Absent: it reports none.
    #[serde(alias = "costUsd")]
    pub(super) cost_usd: Option<Quantity>,
    /// The difference between scenarios: the spread of a factor that every mode shares.
    #[serde(alias = "scenarioSpread")]
    pub(super) scenario_spread: f64,
    /// The answer when it reaches the goal. When set, a failure is a wrong answer for the checks to find;
    /// otherwise a failure is an error of its own.
    pub(super) answer: Option<String>,
    /// The share of sessions that use the first skill of their mode.
    #[serde(alias = "skillRate")]
    pub(super) skill_rate: f64,
    /// The same for single scenarios, by id.
    #[serde(alias = "skillRates")]
    pub(super) skill_rates: BTreeMap<String, f64>,
    /// The increase of the success rate by a used skill.
    #[serde(alias = "skillEffect")]
    pub(super) skill_effect: f64,
    /// The increase of the success rate by an instruction file, for every text that it contains.
    #[serde(alias = "instructionEffects")]
    pub(super) instruction_effects: BTreeMap<String, f64>,
    /// The surroundings that the mode gives to its sessions; only names and texts matter here.
    skills: Vec<NamedSkill>,
    instructions: Option<InstructionText>,
    #[serde(rename = "agents")]
    _agents: Vec<Value>,
    #[serde(rename = "settings")]
    _settings: JsonMap,
    #[serde(rename = "mcp_servers", alias = "mcpServers")]
    _mcp_servers: JsonMap,
}

#[derive(Debug, Clone, Deserialize)]
struct NamedSkill {
    name: String,
    #[serde(default)]
    neighbour: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct InstructionText {
    text: String,
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
            skill_rate: 0.9,
            skill_rates: BTreeMap::new(),
            skill_effect: 0.0,
            instruction_effects: BTreeMap::new(),
            skills: Vec::new(),
            instructions: None,
            _agents: Vec::new(),
            _settings: JsonMap::new(),
            _mcp_servers: JsonMap::new(),
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
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, share) in [
            ("success_rate", self.success_rate),
            ("tool_failure_rate", self.tool_failure_rate),
            ("skill_rate", self.skill_rate),
        ]
        .into_iter()
        .chain(self.skill_rates.values().map(|rate| ("skill_rates", *rate)))
        {
            if !(0.0..=1.0).contains(&share) {
                return Err(setting_error(
                    key,
                    format!("found {share}, expected a share from 0 to 1"),
                ));
            }
        }
        let effects = self
            .instruction_effects
            .values()
            .map(|effect| ("instruction_effects", *effect));
        for (key, effect) in effects.chain([("skill_effect", self.skill_effect)]) {
            if !(-1.0..=1.0).contains(&effect) {
                let message =
                    format!("found {effect}, expected a difference of shares from -1 to 1");
                return Err(setting_error(key, message));
            }
        }
        if !(0.0..=5.0).contains(&self.scenario_spread) {
            let message = format!(
                "found {}, expected a spread from 0 to 5",
                self.scenario_spread
            );
            return Err(setting_error("scenario_spread", message));
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
            return Err(setting_error(
                "tools",
                "found none, expected at least one name",
            ));
        }
        if let (Some(events), Quantity::Exact(calls)) = (self.events, self.tool_calls)
            && (events as f64) < calls + 2.0
        {
            let message = format!(
                "found {events}, expected at least {}: every tool call, a turn and the answer",
                calls + 2.0
            );
            return Err(setting_error("events", message));
        }
        Ok(())
    }
}

impl SimulatedSettings {
    /// The skill that sessions may use: the first that is on trial in the mode.
    pub(super) fn skill(&self) -> Option<&str> {
        let mut on_trial = self.skills.iter().filter(|skill| !skill.neighbour);
        on_trial.next().map(|skill| skill.name.as_str())
    }

    /// The share of sessions of this scenario that use it.
    pub(super) fn skill_rate_in(&self, scenario: &str) -> f64 {
        let own = self.skill_rates.get(scenario);
        own.copied().unwrap_or(self.skill_rate)
    }

    /// The success rate with the instruction file that the mode has.
    pub(super) fn instructed_success_rate(&self) -> f64 {
        let Some(InstructionText { text }) = &self.instructions else {
            return self.success_rate;
        };
        let present = self.instruction_effects.iter();
        let present = present.filter(|(part, _)| text.contains(part.as_str()));
        let added: f64 = present.map(|(_, effect)| effect).sum();
        (self.success_rate + added).clamp(0.0, 1.0)
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

    fn check(self, key: &str, most: f64) -> Result<(), ConfigError> {
        let (low, high) = match self {
            Self::Exact(value) => (value, value),
            Self::Median { median, spread } => (median.min(spread), median.max(spread)),
            Self::Range { min, max } if min > max => {
                return Err(setting_error(
                    key,
                    format!("`min` {min} is above `max` {max}"),
                ));
            }
            Self::Range { min, max } => (min, max),
        };
        if low >= 0.0 && high <= most {
            return Ok(());
        }
        Err(setting_error(
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
