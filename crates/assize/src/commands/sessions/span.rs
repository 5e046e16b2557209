//! Spans of time as people type them: `30d`, `12h`, `2w`, or a date.

use crate::commands::UsageError;
use assize_contracts::Timestamp;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// The moment a span began, in milliseconds since 1970. Days begin in UTC.
pub(crate) fn beginning(text: &str) -> Result<i64, UsageError> {
    beginning_before(text, super::now()).ok_or_else(|| UsageError {
        message: format!("`{text}` is no span of time"),
        hint: Some("write `30d`, `12h`, `2w` or a date such as `2026-11-01`".to_owned()),
    })
}

fn beginning_before(text: &str, now: i64) -> Option<i64> {
    if let Some(unit) = text
        .chars()
        .last()
        .filter(|last| last.is_ascii_alphabetic())
    {
        let number = &text[..text.len() - 1];
        let count: i64 = number.parse().ok().filter(|count| *count >= 0)?;
        let length = match unit {
            'h' => HOUR,
            'd' => DAY,
            'w' => 7 * DAY,
            'm' => 30 * DAY,
            'y' => 365 * DAY,
            _ => return Timestamp::from(text.to_owned()).unix_ms(),
        };
        return now.checked_sub(count.checked_mul(length)?);
    }
    Timestamp::from(format!("{text}T00:00:00.000Z")).unix_ms()
}

/// `2026-11-02`
pub(crate) fn day(at_ms: i64) -> String {
    let text = Timestamp::from_unix_ms(at_ms);
    text.as_str().get(..10).unwrap_or_default().to_owned()
}

/// The Monday of a moment's week.
pub(crate) fn week(at_ms: i64) -> String {
    // 1970 began on a Thursday.
    let days = at_ms.div_euclid(DAY);
    let monday = days - (days + 3).rem_euclid(7);
    day(monday * DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates_are_moments() {
        let now = 1_793_610_004_120;
        assert_eq!(beginning_before("30d", now), Some(now - 30 * DAY));
        assert_eq!(beginning_before("12h", now), Some(now - 12 * HOUR));
        assert_eq!(
            beginning_before("2026-11-02", now).map(day).as_deref(),
            Some("2026-11-02")
        );
        for wrong in [
            "",
            "d",
            "soon",
            "-3d",
            "3x",
            "2026-13-01",
            "99999999999999999999d",
        ] {
            assert_eq!(beginning_before(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn a_week_begins_on_monday() {
        let moment = |text: &str| {
            Timestamp::from(format!("{text}T12:00:00.000Z"))
                .unix_ms()
                .unwrap()
        };
        assert_eq!(week(moment("2026-11-02")), "2026-11-02");
        assert_eq!(week(moment("2026-11-08")), "2026-11-02");
        assert_eq!(week(moment("2026-11-09")), "2026-11-09");
    }
}
