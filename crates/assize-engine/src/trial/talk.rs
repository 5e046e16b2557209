//! The conversation with a session: every user message within one time limit, answers merged into one result.

use crate::guard::guarded_provider;
use assize_contracts::{
    BaseScenario, CompletionReason, CostBreakdown, Fault, Millis, ModelUse, Outcome, PromptMetrics,
    PromptResult, ProviderError, SessionHandle, SessionProvider, SessionTrace, Timestamp,
    TimingSegment, TokenBreakdown, TokenSum, UserTurn, VoidCause, Wire,
};
use std::time::Duration;
use tokio::time::Instant;

/// The result of a conversation.
pub(super) struct Talk {
    pub(super) result: PromptResult,
    /// The user messages that were sent.
    pub(super) sent: Vec<UserTurn>,
    pub(super) failure: Option<Failure>,
    /// True if the provider gave a result, so that there is something to score.
    pub(super) is_answered: bool,
}

/// The failure of an attempt.
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) reason: Option<CompletionReason>,
    /// Set for void attempts.
    pub(super) void_cause: Option<VoidCause>,
}

impl Failure {
    fn void(code: &str, message: String, cause: VoidCause) -> Self {
        Self {
            outcome: Outcome::Void,
            code: code.to_owned(),
            message,
            reason: None,
            void_cause: Some(cause),
        }
    }

    pub(super) fn of_create(error: ProviderError) -> Self {
        let code = error.code.as_deref().unwrap_or("create_session_failed");
        Self::void(code, error.message, VoidCause::AgentStart)
    }

    /// The workspace could not be made.
    pub(super) fn of_workspace_setup(message: String) -> Self {
        Self::void("workspace_setup_failed", message, VoidCause::WorkspaceSetup)
    }

    /// The workspace could not be read after the agent had ended.
    pub(super) fn of_lost_workspace(message: String) -> Self {
        Self::void("workspace_lost", message, VoidCause::WorkspaceLost)
    }

    /// The run was stopped. Nothing about the agent is known, and nothing is stored.
    pub(super) fn of_cancel() -> Self {
        Self {
            outcome: Outcome::Void,
            code: "cancelled".to_owned(),
            message: "the run was cancelled".to_owned(),
            reason: None,
            void_cause: None,
        }
    }

    pub(super) fn of_scorer(message: String) -> Self {
        Self {
            reason: Some(CompletionReason::Stop),
            ..Self::void("scorer_error", message, VoidCause::Scorer)
        }
    }

    fn of_prompt(error: ProviderError, message_number: usize) -> Self {
        let (outcome, code) = match error.fault {
            Fault::Agent => (Outcome::Fail, "agent_error"),
            Fault::Service => (Outcome::Void, "provider_error"),
        };
        let code = error.code.as_deref().unwrap_or(code);
        let cause = error.void_cause.unwrap_or(match code.starts_with("llm_") {
            true => VoidCause::LlmError,
            false => VoidCause::Provider,
        });
        // After the first message the agent has acted, whatever happens next.
        let cause = match message_number > 0 && !cause.may_depend_on_mode() {
            true => VoidCause::Provider,
            false => cause,
        };
        Self {
            outcome,
            code: code.to_owned(),
            message: error.message,
            reason: Some(CompletionReason::Error),
            void_cause: (outcome == Outcome::Void).then_some(cause),
        }
    }

    /// `elapsed` is what the conversation took of its `limit`.
    fn of_reason(reason: CompletionReason, elapsed: Duration, limit: Duration) -> Option<Self> {
        let message = match reason {
            CompletionReason::Stop => return None,
            CompletionReason::Timeout if elapsed < limit => format!(
                "the provider reported a timeout after {} ms, before the limit of {} ms",
                elapsed.as_millis(),
                limit.as_millis()
            ),
            CompletionReason::Timeout => format!("no end within {} ms", limit.as_millis()),
            CompletionReason::Error => "the agent ended with an error of its own".to_owned(),
            CompletionReason::ToolLimit => "the agent used up its tool calls or turns".to_owned(),
        };
        let code = match reason {
            CompletionReason::Error => "agent_error",
            other => other.as_str(),
        };
        Some(Self {
            outcome: Outcome::Fail,
            code: code.to_owned(),
            message,
            reason: Some(reason),
            void_cause: None,
        })
    }

    pub(super) fn is_timeout(&self) -> bool {
        self.reason == Some(CompletionReason::Timeout)
    }
}

/// Sends every user message in turn. The scenario's time limit holds for all of them together.
pub(super) async fn converse(
    provider: &dyn SessionProvider,
    session: &SessionHandle,
    scenario: &BaseScenario,
) -> Talk {
    let limit = Duration::from_millis(scenario.timeout_ms);
    let started = Instant::now();
    let mut merged = Merged::default();
    let mut sent = Vec::new();
    let mut failure = None;
    let mut is_answered = false;
    let messages = std::iter::once(&scenario.prompt).chain(&scenario.turns);
    for (number, text) in messages.enumerate() {
        // The first message has the whole limit: a provider receives exactly the limit of the scenario.
        let left = match number {
            0 => limit,
            _ => limit.saturating_sub(started.elapsed()),
        };
        let prompted = Instant::now();
        let started_at = Timestamp::now();
        let call = guarded_provider(provider.prompt(session, text, left));
        let patience = left.saturating_add(provider.timeout_grace());
        let ended = tokio::time::timeout(patience, call).await;
        let ended = ended.map(|outcome| judged(provider.model_use(), outcome));
        failure = match ended {
            Ok(Ok(result)) => {
                is_answered = true;
                let reason = result.completion_reason;
                merged.add(result, prompted.elapsed());
                Failure::of_reason(reason, started.elapsed(), limit)
            }
            Ok(Err(mut error)) => {
                let known = error.partial.take();
                is_answered = error.fault == Fault::Agent && known.is_some();
                merged.add(
                    known.map_or_else(nothing_known, |known| *known),
                    prompted.elapsed(),
                );
                Some(Failure::of_prompt(error, number))
            }
            Err(_) => {
                is_answered = false;
                merged.add(nothing_known(), prompted.elapsed());
                Failure::of_reason(CompletionReason::Timeout, limit, limit)
            }
        };
        sent.push(UserTurn {
            started_at,
            duration_ms: Some(Millis::from(prompted.elapsed())),
        });
        if failure.is_some() {
            break;
        }
    }
    Talk {
        result: merged.finish(scenario.turns.len() + 1),
        sent,
        failure,
        is_answered,
    }
}

/// A session without evidence of a model answer is no result where the agent cannot work without a model.
fn judged(
    model_use: ModelUse,
    outcome: Result<PromptResult, ProviderError>,
) -> Result<PromptResult, ProviderError> {
    match (model_use.missing_answer(&outcome, Wire::Unwatched), outcome) {
        (None, outcome) => outcome,
        (Some(missing), Ok(result)) => Err(missing.with_partial(result)),
        (Some(mut missing), Err(error)) => {
            missing.partial = error.partial;
            Err(missing)
        }
    }
}

fn nothing_known() -> PromptResult {
    PromptResult {
        completion_reason: CompletionReason::Error,
        ..PromptResult::default()
    }
}

impl Talk {
    /// Fills in from the trace what the answers did not report; after a timeout the trace is all there is.
    pub(super) fn completed_from(mut self, trace: Option<&SessionTrace>) -> Self {
        let Some(trace) = trace else { return self };
        let metrics = &mut self.result.metrics;
        complete_tokens(metrics, trace);
        // A trace without any call may come from an agent whose calls cannot be seen.
        let is_silent = metrics.tool_calls.is_none() && trace.summary.total_tool_calls > 0;
        if is_silent || trace.is_joined {
            metrics.tool_calls = Some(trace.tool_call_records());
        }
        self
    }
}

/// Fills unknown tokens from the trace. Calls that were seen go before a total that may be the agent's claim.
fn complete_tokens(metrics: &mut PromptMetrics, trace: &SessionTrace) {
    if metrics.tokens.total.is_some() {
        return;
    }
    let seen = || trace.model_calls.iter().filter(|call| call.is_seen());
    if seen().next().is_none() {
        if metrics.tokens == TokenBreakdown::default() && metrics.tokens_at_least.is_none() {
            metrics.tokens = trace.summary.total_tokens;
        }
        return;
    }
    let seen = TokenSum::of_calls(seen());
    match metrics.tokens_at_least {
        Some(known) if known.total >= seen.known().total => {}
        Some(_) => metrics.tokens_at_least = Some(seen.known()),
        None => (metrics.tokens, metrics.tokens_at_least) = (seen.tokens, seen.at_least),
    }
}

/// The agent's own count: where it does not contradict complete calls, it agrees.
fn claimed(metrics: &PromptMetrics) -> TokenBreakdown {
    let claimed = metrics.reported_tokens.unwrap_or_default();
    match metrics.tokens.total {
        Some(_) => claimed.or(&metrics.tokens),
        None => claimed,
    }
}

/// The tokens of two prompts. The tokens of one are kept as a lower bound where those of the other are unknown.
fn tokens_of(one: &PromptMetrics, other: &PromptMetrics) -> TokenSum {
    let of = |metrics: &PromptMetrics| TokenSum {
        tokens: metrics.tokens,
        at_least: metrics.tokens_at_least,
    };
    let (one, other) = (of(one), of(other));
    let sum = one.plus(&other);
    let is_half_known = one.tokens.total.is_some() != other.tokens.total.is_some();
    let half = || is_half_known.then(|| one.known().plus(&other.known()));
    TokenSum {
        at_least: sum.at_least.or_else(half),
        ..sum
    }
}

/// Several answers as one: counts added up, segments one after another, the last text.
#[derive(Default)]
struct Merged {
    result: Option<PromptResult>,
    turns: Vec<TimingSegment>,
}

impl Merged {
    fn add(&mut self, mut next: PromptResult, measured: Duration) {
        let wall = *next
            .metrics
            .timing
            .wall_ms
            .get_or_insert_with(|| Millis::from(measured));
        let Some(so_far) = &mut self.result else {
            self.note_turn(Millis::default(), wall);
            self.result = Some(next);
            return;
        };
        let metrics = &mut so_far.metrics;
        let offset = metrics.timing.wall_ms.unwrap_or_default();
        let sum = tokens_of(metrics, &next.metrics);
        let claimed = claimed(metrics).plus(&claimed(&next.metrics));
        metrics.reported_tokens = claimed.beside(&sum.tokens);
        metrics.tokens = sum.tokens;
        metrics.tokens_at_least = sum.at_least;
        metrics.model_calls.append(&mut next.metrics.model_calls);
        metrics.cost = CostBreakdown::plus(&metrics.cost, &next.metrics.cost);
        metrics.timing.wall_ms = Some(offset + wall);
        metrics
            .timing
            .segments
            .extend(
                next.metrics
                    .timing
                    .segments
                    .into_iter()
                    .map(|segment| TimingSegment {
                        label: segment.label,
                        start_ms: segment.start_ms + offset,
                        end_ms: segment.end_ms + offset,
                    }),
            );
        metrics.tool_calls = match (metrics.tool_calls.take(), next.metrics.tool_calls) {
            (Some(mut calls), Some(more)) => {
                calls.extend(more);
                Some(calls)
            }
            _ => None,
        };
        metrics.not_captured |= next.metrics.not_captured;
        metrics.subscription |= next.metrics.subscription;
        metrics.program = match (metrics.program, next.metrics.program) {
            (Some(earlier), Some(later)) => Some(earlier.then(&later)),
            _ => None,
        };
        so_far.text = next.text;
        so_far.completion_reason = next.completion_reason;
        self.note_turn(offset, wall);
    }

    fn note_turn(&mut self, start: Millis, length: Millis) {
        let label = format!("turn_{}", self.turns.len() + 1);
        self.turns.push(TimingSegment {
            label,
            start_ms: start,
            end_ms: start + length,
        });
    }

    /// With one message the turn is the whole; with several each gets a segment of its own.
    fn finish(self, messages: usize) -> PromptResult {
        let mut result = self.result.unwrap_or_default();
        if messages > 1 {
            result.metrics.timing.segments.extend(self.turns);
        }
        result
    }
}
