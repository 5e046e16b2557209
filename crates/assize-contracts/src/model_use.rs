//! Evidence in a session that a model was reached.

use crate::{CompletionReason, Fault, PromptResult, ProviderError, VoidCause};

/// The meaning of a session in which no model call was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelUse {
    /// Sessions may work without a model, as commands and plugins do: nothing follows.
    #[default]
    Optional,
    /// The agent cannot work without a model. An answer or usage of its own shows that it reached one unseen.
    Required,
    /// The same, but whatever the agent prints passes for its answer, so that only usage shows it.
    RequiredAndTextIsNoProof,
}

/// Evidence of the model calls of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// They were not observed.
    Unwatched,
    /// The capture proxy saw none.
    Silent,
}

impl ModelUse {
    /// The error of a prompt in which nothing shows that a model answered, with the agent's own words as its reason. None
    /// where something does, or nothing follows.
    pub fn missing_answer(
        self,
        outcome: &Result<PromptResult, ProviderError>,
        wire: Wire,
    ) -> Option<ProviderError> {
        let known = match outcome {
            Ok(result) => Some(result),
            Err(error) => error.partial.as_deref(),
        };
        if self == Self::Optional || known.is_some_and(has_worked) {
            return None;
        }
        match outcome {
            Err(error) if error.fault == Fault::Agent => Some(unanswered(&error.message)),
            // A service that failed is void already; only the cause is missing.
            Err(error) => {
                let is_llm = |code: &str| code.starts_with("llm_");
                let is_open =
                    error.void_cause.is_none() && error.code.as_deref().is_some_and(is_llm);
                is_open.then(|| error.clone().with_void_cause(VoidCause::NoModelAnswer))
            }
            Ok(result) => self.missing_in(result, wire),
        }
    }

    fn missing_in(self, result: &PromptResult, wire: Wire) -> Option<ProviderError> {
        let is_silent = wire == Wire::Silent;
        match result.completion_reason {
            // An agent that is cut off may not have reported what it did.
            CompletionReason::Timeout if is_silent => Some(unanswered(
                "time was over, and the agent had not asked any model",
            )),
            CompletionReason::Timeout | CompletionReason::ToolLimit => None,
            CompletionReason::Stop | CompletionReason::Error => {
                let text = result.text.trim();
                let is_no_proof = is_silent && self == Self::RequiredAndTextIsNoProof;
                match text.is_empty() {
                    true => Some(unanswered("the agent ended without an answer")),
                    false => is_no_proof.then(|| unanswered(text)),
                }
            }
        }
    }
}

/// Usage or tool calls are signs of a model.
fn has_worked(result: &PromptResult) -> bool {
    let metrics = &result.metrics;
    let has_usage = metrics.tokens.total.is_some_and(|total| total > 0);
    has_usage
        || metrics
            .tool_calls
            .as_ref()
            .is_some_and(|calls| !calls.is_empty())
}

fn unanswered(words: &str) -> ProviderError {
    ProviderError::service(words)
        .with_code("no_model_answer")
        .with_void_cause(VoidCause::NoModelAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PromptMetrics, TokenBreakdown};

    fn answer(text: &str, total: Option<u64>) -> Result<PromptResult, ProviderError> {
        Ok(PromptResult {
            text: text.to_owned(),
            metrics: PromptMetrics {
                tokens: TokenBreakdown {
                    total,
                    ..TokenBreakdown::default()
                },
                ..PromptMetrics::default()
            },
            ..PromptResult::default()
        })
    }

    #[test]
    fn an_agent_that_ends_without_an_answer_or_usage_asked_no_model() {
        let refused = Err(ProviderError::agent("Not logged in · Please run /login"));
        let error = ModelUse::Required.missing_answer(&refused, Wire::Silent);
        let error = error.unwrap();
        assert_eq!(error.message, "Not logged in · Please run /login");
        assert_eq!(error.fault, Fault::Service);
        assert_eq!(error.void_cause, Some(VoidCause::NoModelAnswer));
        let silent = ModelUse::Required.missing_answer(&answer("", Some(0)), Wire::Unwatched);
        assert!(silent.is_some());
    }

    #[test]
    fn a_command_that_calls_no_model_is_judged_as_it_is() {
        let failed = Err(ProviderError::agent("exit code 3"));
        for outcome in [failed, answer("", None)] {
            assert_eq!(
                ModelUse::Optional.missing_answer(&outcome, Wire::Silent),
                None
            );
        }
    }

    #[test]
    fn an_answer_or_usage_of_its_own_shows_another_way_to_a_model() {
        for outcome in [
            answer("done", Some(12)),
            answer("done", None),
            answer("", Some(12)),
        ] {
            assert_eq!(
                ModelUse::Required.missing_answer(&outcome, Wire::Silent),
                None
            );
        }
    }

    #[test]
    fn printed_text_proves_nothing_where_only_the_wire_could() {
        let printed = answer("error: no key", None);
        let text = ModelUse::RequiredAndTextIsNoProof;
        assert!(text.missing_answer(&printed, Wire::Silent).is_some());
        assert_eq!(text.missing_answer(&printed, Wire::Unwatched), None);
    }
}
