//! The outcome of a prompt, judged by the agent's own words and by the traffic on the wire.
//!
//! An agent's own statement is no evidence that a model answered: several end well after every call failed.

use super::session::{Call, Ending, Recording};
use assize_contracts::{
    CompletionReason, Fault, ModelUse, PromptResult, ProviderError, VoidCause, Wire, last_words,
};
use assize_llm::ModelAnswer;
use std::collections::HashSet;
use std::time::Duration;

/// The longest time before the end of its limit at which an agent may seem to have hung up.
const CLOCK_TOLERANCE_MS: i64 = 250;

/// The result by the agent's own account.
pub(super) type Own = Result<PromptResult, ProviderError>;

/// The evidence besides the agent's own result by which a prompt is judged.
pub(super) struct Evidence<'a> {
    /// Everything since the session began.
    pub(super) session: &'a Recording,
    /// The part that belongs to this prompt.
    pub(super) prompt: &'a Recording,
    /// The time limit of the session.
    pub(super) limit: Duration,
    /// The end of this prompt's time, in milliseconds since 1970.
    pub(super) deadline_ms: i64,
    /// The meaning of a session without any call.
    pub(super) model_use: ModelUse,
    /// The suite wants every session captured.
    pub(super) capture_required: bool,
}

impl Evidence<'_> {
    /// The error that replaces the agent's result. None: the agent's result counts.
    pub(super) fn failure(&self, own: &Own) -> Option<ProviderError> {
        let is_service_fault = matches!(own, Err(error) if error.fault == Fault::Service);
        if is_service_fault && !is_about_llm(own) {
            return None;
        }
        if self.session.is_empty() {
            return self.silence(own);
        }
        let is_timeout =
            matches!(own, Ok(result) if result.completion_reason == CompletionReason::Timeout);
        if is_timeout && let Some(silence) = self.silence_at_the_end() {
            return Some(no_answer(silence));
        }
        match self.prompt.failed_call() {
            // The agent received the whole answer and used it.
            Some(call) if call.broke_off_behind_its_end() && own.is_ok() => None,
            Some(call) => Some(self.failed(call, own)),
            None if is_timeout || self.session.has_answer() => None,
            // Calls that the agent gave up before anything came.
            None => {
                Some(self.no_model_answer(own, "no model call got an answer", "no_model_answer"))
            }
        }
    }

    /// True when the agent reached a model by a way that the proxy does not see: its answer counts, its numbers are claims.
    pub(super) fn is_not_captured(&self) -> bool {
        self.session.is_empty() && self.model_use != ModelUse::Optional
    }

    /// No call came through at all.
    fn silence(&self, own: &Own) -> Option<ProviderError> {
        if let Some(error) = self.model_use.missing_answer(own, Wire::Silent) {
            return Some(error);
        }
        self.capture_required.then(|| {
            let message = "no request to a model came through the proxy";
            ProviderError::service(message).with_code("nothing_captured")
        })
    }

    /// The longest time that an agent with a call under way at the time limit had waited for it, if that was more than half of
    /// the limit. Subagents count as the main agent does.
    fn silence_at_the_end(&self) -> Option<Duration> {
        let agents: HashSet<Option<&str>> = self
            .prompt
            .task_calls()
            .map(|call| self.prompt.agent(call))
            .collect();
        let waits = agents
            .into_iter()
            .filter_map(|agent| self.silence_of(agent));
        waits.max().filter(|waited| is_long(*waited, self.limit))
    }

    /// The time that an agent waited without a byte of an answer, up to the time limit. Absent if its last call was not under way then.
    ///
    /// Calls that the agent gave up right before count as well: it asked the same silent service again. Calls before one that was
    /// answered do not.
    fn silence_of(&self, agent: Option<&str>) -> Option<Duration> {
        let is_silent = |call: &&Call| call.ending == Ending::ClientGone && call.status().is_none();
        let calls = self.prompt.task_calls();
        let calls: Vec<&Call> = calls
            .filter(|call| self.prompt.agent(call) == agent)
            .collect();
        let last = calls.last().copied().filter(is_silent)?;
        let is_under_way = last.ended_ms() + CLOCK_TOLERANCE_MS >= self.deadline_ms;
        let silent = calls.into_iter().rev().take_while(is_silent);
        is_under_way.then(|| silent.map(|call| call.duration).sum())
    }

    fn failed(&self, call: &Call, own: &Own) -> ProviderError {
        let message = self.session.error_of(call);
        if call.is_context_overflow() {
            return ProviderError::agent(message).with_code("context_overflow");
        }
        let code = match call.status() {
            None => "llm_unreachable".to_owned(),
            Some(status) if status < 400 => "llm_error".to_owned(),
            Some(status) => format!("llm_{status}"),
        };
        match self.session.has_answer() || self.session.has_content() {
            true => ProviderError::service(message)
                .with_code(code)
                .with_void_cause(VoidCause::LlmError),
            false => self.no_model_answer(own, &message, &code),
        }
    }

    /// The agent's own words, with what the wire shows.
    fn no_model_answer(&self, own: &Own, seen: &str, code: &str) -> ProviderError {
        let message = match words_of(own) {
            Some(words) if words.contains(seen) => words,
            Some(words) => format!("{words} ({seen})"),
            None => seen.to_owned(),
        };
        ProviderError::service(message)
            .with_code(code)
            .with_void_cause(VoidCause::NoModelAnswer)
    }
}

/// True when a model's API was silent for so much of the time limit that the agent could not do its work.
pub(crate) fn is_long(silence: Duration, limit: Duration) -> bool {
    silence > limit / 2
}

/// The API was silent until the end of the time limit.
pub(crate) fn no_answer(waited: Duration) -> ProviderError {
    let message = format!(
        "the model's API gave no answer within {} s, until the time was over",
        waited.as_secs()
    );
    ProviderError::service(message)
        .with_code("llm_no_answer")
        .with_void_cause(VoidCause::LlmNoAnswer)
}

fn is_about_llm(own: &Own) -> bool {
    let code = own.as_ref().err().and_then(|error| error.code.as_deref());
    code.is_some_and(|code| code.starts_with("llm_"))
}

/// The agent's words about its end, shortened.
fn words_of(own: &Own) -> Option<String> {
    let words = match own {
        Ok(result) => &result.text,
        Err(error) => &error.message,
    };
    let words = last_words(words);
    (!words.is_empty()).then_some(words)
}

impl Call {
    /// A model answered to the end, or until the agent had enough.
    pub(super) fn is_answered(&self) -> bool {
        let is_whole = !self.has_failed() || self.broke_off_behind_its_end();
        !self.is_refused() && self.answer.is_some() && is_whole
    }

    /// The service failed: it refused, could not be reached, or the answer ended in an error or without its end.
    pub(super) fn has_failed(&self) -> bool {
        let Some(answer) = &self.answer else {
            return matches!(self.ending, Ending::NoAnswer(_) | Ending::Cut(_));
        };
        if answer.status >= 400 || answer.error.is_some() {
            return true;
        }
        match &self.ending {
            Ending::Cut(_) | Ending::NoAnswer(_) => true,
            Ending::Complete => self.lacks_end(answer),
            // The agent hung up, which says nothing about the service.
            Ending::ClientGone => false,
        }
    }

    /// A stream without the event that ends it, or a document that is no answer of a model, such as a gateway's greeting. Only
    /// where all of it was looked at; what is no JSON is no answer to the agent either.
    fn lacks_end(&self, answer: &ModelAnswer) -> bool {
        self.unread.is_none() && answer.flaws.oversized == 0 && !answer.complete
    }

    /// The answer was whole when its connection broke.
    fn broke_off_behind_its_end(&self) -> bool {
        let is_whole = |answer: &ModelAnswer| answer.complete && answer.error.is_none();
        matches!(self.ending, Ending::Cut(_))
            && !self.is_refused()
            && self.answer.as_ref().is_some_and(is_whole)
    }

    fn is_context_overflow(&self) -> bool {
        let error = self
            .answer
            .as_ref()
            .and_then(|answer| answer.error.as_ref());
        error.is_some_and(assize_llm::ApiError::is_context_overflow)
    }

    fn ended_ms(&self) -> i64 {
        self.started_ms
            .saturating_add(self.duration.as_millis() as i64)
    }
}

impl Recording {
    /// True when any model call was answered.
    pub fn has_answer(&self) -> bool {
        self.calls.iter().any(Call::is_answered)
    }

    /// True when any call brought a part of an answer, though it may have failed afterwards.
    fn has_content(&self) -> bool {
        let mut answers = self.calls.iter().filter_map(|call| call.answer.as_ref());
        answers.any(|answer| !answer.parts.is_empty())
    }

    /// The call about the task that ended last, if it failed: an agent that recovered has a later one that did not.
    /// Calls that the agent gave up before any answer are no evidence: it may have been ended itself.
    pub fn failed_call(&self) -> Option<&Call> {
        let calls = self.main_calls().filter(|call| !call.is_given_up());
        let last = calls.max_by_key(|call| (call.ended_ms(), call.number))?;
        last.has_failed().then_some(last)
    }
}
