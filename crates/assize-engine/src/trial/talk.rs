//! The conversation with a session: every user message within one time limit, answers merged into one result.

use crate::guard::guarded_provider;
use assize_contracts::{
    BaseScenario, CompletionReason, CostBreakdown, Fault, Millis, Outcome, PromptMetrics,
    PromptResult, ProviderError, SessionHandle, SessionProvider, SessionTrace, TimingSegment,
    TokenBreakdown,
};
use std::time::Duration;
use tokio::time::Instant;

/// What came of a conversation.
pub(super) struct Talk {
    pub(super) result: PromptResult,
    pub(super) failure: Option<Failure>,
}

/// Why an attempt did not get to be scored.
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) reason: Option<CompletionReason>,
}

impl Failure {
    fn new(outcome: Outcome, code: &str, message: String, reason: CompletionReason) -> Self {
        let reason = Some(reason);
        Self {
            outcome,
            code: code.to_owned(),
            message,
            reason,
        }
    }

    pub(super) fn of_create(error: ProviderError) -> Self {
        Self {
            outcome: Outcome::Void,
            code: error
                .code
                .unwrap_or_else(|| "create_session_failed".to_owned()),
            message: error.message,
            reason: None,
        }
    }

    /// The workspace could not be made or not be read: nothing about the agent can be judged.
    pub(super) fn of_workspace(code: &str, message: String) -> Self {
        Self {
            outcome: Outcome::Void,
            code: code.to_owned(),
            message,
            reason: None,
        }
    }

    pub(super) fn of_scorer(message: String) -> Self {
        let reason = CompletionReason::Stop;
        Self::new(Outcome::Void, "scorer_error", message, reason)
    }

    fn of_prompt(error: ProviderError) -> Self {
        let (outcome, code) = match error.fault {
            Fault::Agent => (Outcome::Fail, "agent_error"),
            Fault::Service => (Outcome::Void, "provider_error"),
        };
        let code = error.code.as_deref().unwrap_or(code);
        Self::new(outcome, code, error.message, CompletionReason::Error)
    }

    fn of_reason(reason: CompletionReason, limit: Duration) -> Option<Self> {
        let message = match reason {
            CompletionReason::Stop => return None,
            CompletionReason::Timeout => format!("no end within {} ms", limit.as_millis()),
            CompletionReason::Error => "the agent ended with an error of its own".to_owned(),
            CompletionReason::ToolLimit => "the agent used up its tool calls or turns".to_owned(),
        };
        let code = match reason {
            CompletionReason::Error => "agent_error",
            other => other.as_str(),
        };
        Some(Self::new(Outcome::Fail, code, message, reason))
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
    let mut failure = None;
    for text in std::iter::once(&scenario.prompt).chain(&scenario.turns) {
        let left = limit.saturating_sub(started.elapsed());
        let prompted = Instant::now();
        let call = guarded_provider(provider.prompt(session, text, left));
        let patience = left.saturating_add(provider.timeout_grace());
        failure = match tokio::time::timeout(patience, call).await {
            Ok(Ok(result)) => {
                let failure = Failure::of_reason(result.completion_reason, limit);
                merged.add(result, prompted.elapsed());
                failure
            }
            Ok(Err(mut error)) => {
                merged.add(
                    error
                        .partial
                        .take()
                        .map_or_else(nothing_known, |known| *known),
                    prompted.elapsed(),
                );
                Some(Failure::of_prompt(error))
            }
            Err(_) => {
                merged.add(nothing_known(), prompted.elapsed());
                Failure::of_reason(CompletionReason::Timeout, limit)
            }
        };
        if failure.is_some() {
            break;
        }
    }
    Talk {
        result: merged.finish(scenario.turns.len() + 1),
        failure,
    }
}

fn nothing_known() -> PromptResult {
    PromptResult {
        completion_reason: CompletionReason::Error,
        ..PromptResult::default()
    }
}

impl Talk {
    /// Fills what the answers did not tell from the trace; after a timeout that is all there is.
    pub(super) fn completed_from(mut self, trace: Option<&SessionTrace>) -> Self {
        let Some(trace) = trace else { return self };
        let metrics = &mut self.result.metrics;
        if metrics.tokens == TokenBreakdown::default() {
            metrics.tokens = trace.summary.total_tokens;
        }
        // A trace without any call may come from an agent whose calls nobody can see.
        if metrics.tool_calls.is_none() && trace.summary.total_tool_calls > 0 {
            metrics.tool_calls = Some(trace.tool_call_records());
        }
        self
    }
}

/// The agent's own count: where it says nothing else, it agrees.
fn claimed(metrics: &PromptMetrics) -> TokenBreakdown {
    metrics
        .reported_tokens
        .unwrap_or_default()
        .or(&metrics.tokens)
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
        let tokens = metrics.tokens.plus(&next.metrics.tokens);
        let told = claimed(metrics).plus(&claimed(&next.metrics));
        metrics.reported_tokens = told.differing_from(&tokens);
        metrics.tokens = tokens;
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
