//! Requests that brought no whole answer, though a model may have worked on them.

use super::ChatError;
use crate::answer::{AnswerReader, ModelAnswer};
use crate::api::Api;
use assize_contracts::{CallEnding, unix_ms_now};
use std::time::{Duration, Instant};

/// A request that was sent and brought no whole answer. What it took is unknown, and it may have been billed.
#[derive(Debug, Clone, PartialEq)]
pub struct LostCall {
    /// The time of sending, in milliseconds since 1970.
    pub started_ms: i64,
    /// From sending to its end.
    pub duration: Duration,
    /// The answer as far as it came. Absent if it had not begun.
    pub answer: Option<ModelAnswer>,
    /// `ClientGone` when the time for it was over, else `Cut`.
    pub ending: CallEnding,
}

/// The tries of requests that brought no whole answer.
#[derive(Debug, Default)]
pub struct Tries {
    /// Those that may have been billed.
    pub lost: Vec<LostCall>,
    /// The failure of the last try while another one is waited for or made.
    pub failure: Option<ChatError>,
}

/// A request under way. It is noted as lost unless it is settled, also when its future is dropped.
pub(super) struct UnderWay<'a> {
    lost: &'a mut Vec<LostCall>,
    started_ms: i64,
    sent: Instant,
    reader: Option<AnswerReader>,
    is_cut: bool,
    is_settled: bool,
}

impl<'a> UnderWay<'a> {
    pub(super) fn begin(lost: &'a mut Vec<LostCall>) -> Self {
        Self {
            lost,
            started_ms: unix_ms_now(),
            sent: Instant::now(),
            reader: None,
            is_cut: false,
            is_settled: false,
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.sent.elapsed()
    }

    /// The endpoint did not take the request: nothing was generated.
    pub(super) fn settle(mut self) {
        self.is_settled = true;
    }

    pub(super) fn begin_answer(&mut self, api: Api, status: u16) {
        self.reader = Some(AnswerReader::new(api, status));
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let at = self.sent.elapsed();
        if let Some(reader) = &mut self.reader {
            reader.feed(bytes, at);
        }
    }

    /// True when the answer has come to its own end, whatever happens to the connection.
    pub(super) fn is_complete(&self) -> bool {
        self.reader.as_ref().is_some_and(AnswerReader::is_complete)
    }

    /// The endpoint broke off, or sent more than is read.
    pub(super) fn cut(mut self) {
        self.is_cut = true;
    }

    /// Ends the reading. Refused requests took nothing, and are not lost.
    pub(super) fn finish(mut self) -> Option<ModelAnswer> {
        let answer = self.reader.take()?.finish();
        self.is_settled = true;
        if answer.status < 400 && (answer.error.is_some() || !answer.complete) {
            let lost = self.noted(Some(answer.clone()), CallEnding::Cut);
            self.lost.push(lost);
        }
        Some(answer)
    }

    fn noted(&self, answer: Option<ModelAnswer>, ending: CallEnding) -> LostCall {
        LostCall {
            started_ms: self.started_ms,
            duration: self.sent.elapsed(),
            answer,
            ending,
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let answer = self.reader.take().map(AnswerReader::finish);
        let ending = match self.is_cut {
            true => CallEnding::Cut,
            false => CallEnding::ClientGone,
        };
        let lost = self.noted(answer, ending);
        self.lost.push(lost);
    }
}
