//! Decides when to ask again.

use crate::answer::ModelAnswer;
use http::HeaderMap;
use std::time::Duration;

/// The longest wait for one retry; an endpoint that asks for more is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// An answer that is an error.
pub(super) struct Verdict {
    pub(super) answer: ModelAnswer,
    /// The wait that the endpoint asks for.
    pub(super) retry_after: Option<Duration>,
}

/// The wait before asking again. `None` when that would not help.
pub(super) fn wait(verdict: &Verdict, retries: u32) -> Option<Duration> {
    let is_busy = match verdict.answer.status {
        408 | 409 | 429 | 500.. => true,
        // Errors in the middle of a stream come after a good status.
        200..300 => true,
        _ => false,
    };
    let wait = verdict.retry_after.unwrap_or_else(|| backoff(retries));
    (is_busy && wait <= LONGEST_WAIT).then_some(wait)
}

/// Half a second, then twice as long each time.
pub(super) fn backoff(retries: u32) -> Duration {
    let wait = Duration::from_millis(500).saturating_mul(1 << retries.min(10));
    wait.min(LONGEST_WAIT)
}

/// The wait that the headers ask for: milliseconds, seconds, or a date, of which only the former two are used.
pub(super) fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_and_ends() {
        assert_eq!(backoff(0), Duration::from_millis(500));
        assert_eq!(backoff(2), Duration::from_secs(2));
        assert_eq!(backoff(u32::MAX), LONGEST_WAIT);
    }

    #[test]
    fn headers_ask_in_seconds_or_milliseconds() {
        let asked = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, http::HeaderValue::from_static(value));
            asked_for(&headers)
        };
        assert_eq!(asked("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(
            asked("retry-after-ms", "50"),
            Some(Duration::from_millis(50))
        );
        assert_eq!(asked("retry-after", "-1"), None);
        assert_eq!(asked("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
