//! One made-up session: everything is drawn when it is created and reported when it is prompted.

use super::repertoire::Simulation;
use super::settings::{normal, uniform};
use assize_contracts::{
    CompletionReason, CostBreakdown, CreateSessionParams, Millis, PromptMetrics, PromptResult,
    SessionTrace, Timestamp, TimingBreakdown, TimingSegment, TokenBreakdown, ToolCallRecord,
    TraceEvent, Usd,
};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::time::Duration;

/// The tool by which simulated agents load skills.
const SKILL_TOOL: &str = "Skill";

pub(super) struct SimulatedSession {
    simulation: Arc<Simulation>,
    id: String,
    created_ms: i64,
    random: Xoshiro256PlusPlus,
    /// The difficulty of the scenario: the same for every mode.
    difficulty: f64,
    latency: Duration,
    /// The skill that the session uses, until its use is reported.
    skill: Option<String>,
    uses_skill: bool,
    events: Vec<Arc<TraceEvent>>,
    tokens: Option<TokenBreakdown>,
}

impl SimulatedSession {
    pub(super) fn draw(
        simulation: Arc<Simulation>,
        params: &CreateSessionParams,
        id: &str,
        created_ms: i64,
    ) -> Self {
        let hash = blake3::hash(params.scenario_id.as_bytes());
        let mut scenario = Xoshiro256PlusPlus::from_seed(*hash.as_bytes());
        let skill = drawn_skill(&simulation, params);
        Self {
            uses_skill: skill.is_some(),
            skill,
            difficulty: simulation.settings.scenario_spread * normal(&mut scenario),
            simulation,
            id: id.to_owned(),
            created_ms,
            random: Xoshiro256PlusPlus::seed_from_u64(params.seed),
            latency: Duration::ZERO,
            events: Vec::new(),
            tokens: None,
        }
    }

    /// Draws the duration of the coming turn.
    pub(super) fn begin_turn(&mut self) -> Duration {
        let factor = self.difficulty.exp();
        let milliseconds = self
            .simulation
            .settings
            .latency_ms
            .draw(&mut self.random, factor);
        self.latency = Duration::from_secs_f64(milliseconds.min(3.6e6) / 1e3);
        self.latency
    }

    /// The agent's answer and usage. `share` is the part of the turn that there was time for.
    pub(super) fn end_turn(&mut self, prompt: &str, elapsed: Duration, share: f64) -> PromptResult {
        let succeeds = self.draw_success();
        let tokens = self.draw_tokens(share);
        let calls = self.add_events(share);
        let cost = self.draw_cost(share);
        self.tokens = Some(self.tokens.map_or(tokens, |so_far| so_far.plus(&tokens)));
        let completion_reason = match (
            share < 1.0,
            succeeds || self.simulation.settings.answer.is_some(),
        ) {
            (true, _) => CompletionReason::Timeout,
            (false, true) => CompletionReason::Stop,
            (false, false) => CompletionReason::Error,
        };
        let text = self.answer(prompt, succeeds);
        if completion_reason != CompletionReason::Timeout {
            let content = text.clone();
            self.events.push(Arc::new(TraceEvent::TextOutput {
                content,
                token_count: None,
                context: None,
            }));
        }
        PromptResult {
            text,
            metrics: PromptMetrics {
                tokens,
                timing: timing(elapsed),
                tool_calls: Some(calls),
                cost,
                ..PromptMetrics::default()
            },
            completion_reason,
        }
    }

    pub(super) fn trace(&mut self) -> SessionTrace {
        let events = std::mem::take(&mut self.events);
        let tokens = self.tokens.unwrap_or_default();
        let mut trace = SessionTrace::from_events(self.id.clone(), events, tokens);
        trace.simulated = true;
        trace
    }

    fn draw_success(&mut self) -> bool {
        let settings = &self.simulation.settings;
        let added = match self.uses_skill {
            true => settings.skill_effect,
            false => 0.0,
        };
        let rate = (settings.instructed_success_rate() + added).clamp(0.0, 1.0);
        // Harder scenarios succeed less often: the difficulty shifts the odds, certain stays certain.
        let odds = rate / (1.0 - rate) * (-self.difficulty).exp();
        let rate = if odds.is_finite() {
            odds / (1.0 + odds)
        } else {
            1.0
        };
        uniform(&mut self.random) < rate
    }

    fn draw_tokens(&mut self, share: f64) -> TokenBreakdown {
        let factor = self.difficulty.exp();
        let quantities = self.simulation.settings.tokens.clone();
        let mut count = |quantity: super::settings::Quantity| {
            Some((quantity.draw(&mut self.random, factor) * share).round() as u64)
        };
        TokenBreakdown {
            input: count(quantities.input),
            output: count(quantities.output),
            reasoning: count(quantities.reasoning),
            cache_read: count(quantities.cache_read),
            cache_write: count(quantities.cache_write),
            ..TokenBreakdown::default()
        }
        .with_totals()
    }

    fn draw_cost(&mut self, share: f64) -> CostBreakdown {
        let factor = self.difficulty.exp();
        let cost = self
            .simulation
            .settings
            .cost_usd
            .map(|cost| cost.draw(&mut self.random, factor) * share);
        // A bill has no fractions of a micro-dollar.
        let rounded = cost.map(|cost| (cost * 1e6).round() / 1e6);
        CostBreakdown {
            total_usd: rounded.and_then(Usd::new),
            ..CostBreakdown::default()
        }
    }

    /// Turns with reasoning and tool calls; the caller adds the answer.
    fn add_events(&mut self, share: f64) -> Vec<ToolCallRecord> {
        let simulation = Arc::clone(&self.simulation);
        let settings = &simulation.settings;
        let factor = self.difficulty.exp();
        let draw = |random: &mut _, quantity: super::settings::Quantity| {
            (quantity.draw(random, factor) * share).round() as u64
        };
        let calls = draw(&mut self.random, settings.tool_calls);
        let mut turns = draw(&mut self.random, settings.turns).max(1);
        // All events are turns, tool calls, one answer and, for the rest, reasoning.
        let reasoning = match settings.events {
            Some(events) => {
                let free = events.saturating_sub(calls + 1);
                turns = turns.min(free.max(1));
                ((free.saturating_sub(turns)) as f64 * share).round() as u64
            }
            None => turns,
        };
        let mut records = Vec::with_capacity(calls as usize);
        // One for the session: sessions on other threads would wait for each other to count the users of a shared one.
        let thought = Arc::new(simulation.thought.clone());
        self.events
            .reserve((turns + calls + reasoning + 1) as usize);
        for turn in 0..turns {
            let at = self.latency.as_millis() as u64 * turn / turns;
            self.events.push(Arc::new(TraceEvent::TurnBoundary {
                turn_number: turn,
                timestamp: Timestamp::from_unix_ms(self.created_ms + at as i64),
            }));
            for _ in 0..part(reasoning, turn, turns) {
                self.events.push(Arc::clone(&thought));
            }
            if let Some(skill) = self.skill.take() {
                let (event, record) = skill_call(&skill);
                self.events.push(event);
                records.push(record);
            }
            for _ in 0..part(calls, turn, turns) {
                let choice = uniform(&mut self.random);
                let fails = uniform(&mut self.random) < settings.tool_failure_rate;
                let (event, record) = simulation.call(choice, fails);
                self.events.push(event);
                records.push(record);
            }
        }
        records
    }

    fn answer(&self, prompt: &str, succeeds: bool) -> String {
        match (&self.simulation.settings.answer, succeeds) {
            (Some(answer), true) => answer.clone(),
            (_, false) => "Simulated agent: I could not finish this.".to_owned(),
            (None, true) => {
                let about: String = prompt.chars().take(80).collect();
                format!("Simulated agent: done. {about}")
            }
        }
    }
}

/// The skill that a session uses. Drawn apart, so that everything else is the same with and without skills.
fn drawn_skill(simulation: &Simulation, params: &CreateSessionParams) -> Option<String> {
    let settings = &simulation.settings;
    let skill = settings.skill()?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(params.seed ^ 0x5ca1_ab1e);
    let rate = settings.skill_rate_in(&params.scenario_id);
    (uniform(&mut random) < rate).then(|| skill.to_owned())
}

fn skill_call(skill: &str) -> (Arc<TraceEvent>, ToolCallRecord) {
    let event = TraceEvent::ToolCall {
        name: SKILL_TOOL.to_owned(),
        input: serde_json::json!({ "skill": skill }),
        output: format!("Launching skill: {skill}").into(),
        duration_ms: None,
        success: Some(true),
        error: None,
        context: None,
    };
    let record = event
        .tool_call_record()
        .expect("a tool call is recorded as one");
    (Arc::new(event), record)
}

/// The share of `total` things that falls to one of `parts`, as even as can be.
fn part(total: u64, number: u64, parts: u64) -> u64 {
    total / parts + u64::from(number < total % parts)
}

fn timing(elapsed: Duration) -> TimingBreakdown {
    let wall = Millis::from(elapsed);
    TimingBreakdown {
        wall_ms: Some(wall),
        segments: vec![TimingSegment {
            label: "agent".to_owned(),
            start_ms: Millis::default(),
            end_ms: wall,
        }],
    }
}
