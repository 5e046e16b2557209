//! Evidence in a session that a model was reached.

use crate::{CompletionReason, Fault, PromptResult, ProviderError, VoidCause};

/// Longest excerpt of an agent's own words in a reason, in characters.
const LONGEST_WORDS: usize = 400;

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
    /// The error of a prompt in which nothing shows that a model answered, with the agent's own words as its reason.
    /// `None` where something does, or nothing follows.
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
                let is_no_proof = is_silent && self == Self::RequiredAndTextIsNoProof;
                let words = match last_words(&result.text) {
                    words if words.is_empty() => "the agent ended without an answer".to_owned(),
                    words => words,
                };
                let is_missing = is_no_proof || result.text.trim().is_empty();
                is_missing.then(|| unanswered(&words))
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

/// The last whole lines of what an agent printed, short enough for a reason: programs greet first and complain last. Events for
/// other programs are no words.
pub fn last_words(text: &str) -> String {
    let is_event = |line: &&str| line.starts_with('{') && line.ends_with('}');
    let lines = text.trim().lines().rev().map(str::trim_end);
    let mut words: Vec<&str> = Vec::new();
    let mut left = LONGEST_WORDS;
    for line in lines.filter(|line| !is_event(line)) {
        let length = line.chars().count();
        if length > left {
            if words.is_empty() {
                return shortened(line);
            }
            break;
        }
        left -= length;
        words.push(line);
    }
    words.reverse();
    words.join("\n").trim().to_owned()
}

fn shortened(line: &str) -> String {
    let kept: String = line.chars().take(LONGEST_WORDS).collect();
    let more = if kept.len() < line.len() { " …" } else { "" };
    format!("{kept}{more}")
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
            answer("{\"answer\": 3}", None),
        ] {
            assert_eq!(
                ModelUse::Required.missing_answer(&outcome, Wire::Silent),
                None
            );
        }
    }

    #[test]
    fn the_last_lines_tell_why_an_agent_gave_up() {
        let greeting = "A greeting that is not the point.\n".repeat(20);
        let said = format!("{greeting}\nerror: no key is set\nhint: set OPENAI_API_KEY\n");
        let words = last_words(&said);
        assert!(
            words.ends_with("\nerror: no key is set\nhint: set OPENAI_API_KEY"),
            "{words}"
        );
        assert!(words.len() <= LONGEST_WORDS + 20, "{words}");
        let long = "x".repeat(500);
        assert_eq!(last_words(&long), format!("{} …", &long[..LONGEST_WORDS]));
        let events = "{\"type\":\"start\"}\nno such model\n{\"type\":\"end\"}";
        assert_eq!(last_words(events), "no such model");
        assert_eq!(last_words("{\"type\":\"end\"}\n"), "");
        assert_eq!(last_words(" \n"), "");
    }

    #[test]
    fn printed_text_proves_nothing_where_only_the_wire_could() {
        let printed = answer("error: no key", None);
        let text = ModelUse::RequiredAndTextIsNoProof;
        assert!(text.missing_answer(&printed, Wire::Silent).is_some());
        assert_eq!(text.missing_answer(&printed, Wire::Unwatched), None);
    }
}
