//! Times as logs have them: RFC 3339 texts, and seconds or milliseconds since 1970. Kept as milliseconds.

use crate::json::{Json, Kind, Malformed, Text};
use assize_contracts::Timestamp;

/// Larger numbers are milliseconds: as seconds they would lie beyond the year 5000.
const LARGEST_SECOND: f64 = 1e11;

/// The end of the year 9999.
const LAST_MS: f64 = 253_402_300_800_000.0;

/// A time in any of its forms. Absent for `null`; anything that is no time is noted as an odd type.
pub(crate) fn moment(json: &mut Json<'_>) -> Result<Option<i64>, Malformed> {
    match json.kind()? {
        Kind::Number => {
            let number = json.float()?;
            let found = number.and_then(of_number);
            if found.is_none() {
                json.note_odd();
            }
            Ok(found)
        }
        _ => {
            let Some(text) = json.text()? else {
                return Ok(None);
            };
            let found = of_text(text);
            if found.is_none() {
                json.note_odd();
            }
            Ok(found)
        }
    }
}

/// Absent for moments before 1970 or after the year 9999, which no agent lived in.
pub(crate) fn of_number(number: f64) -> Option<i64> {
    let milliseconds = match number.abs() > LARGEST_SECOND {
        true => number,
        false => number * 1000.0,
    };
    (0.0..LAST_MS)
        .contains(&milliseconds)
        .then_some(milliseconds as i64)
}

fn of_text(text: Text<'_>) -> Option<i64> {
    usual_form(text.raw()).or_else(|| Timestamp::from(text.plain().into_owned()).unix_ms())
}

/// `2026-03-03T17:03:45.126Z`, which nearly every line of a log has.
fn usual_form(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let shape = [
        text[4], text[7], text[10], text[13], text[16], text[19], text[23],
    ];
    if shape != *b"--T::.Z" {
        return None;
    }
    let digit = |place: usize| match text[place] {
        byte @ b'0'..=b'9' => Some(i64::from(byte - b'0')),
        _ => None,
    };
    let pair = |place: usize| Some(digit(place)? * 10 + digit(place + 1)?);
    let (year, month, day) = (pair(0)? * 100 + pair(2)?, pair(5)?, pair(8)?);
    let (hour, minute, second) = (pair(11)?, pair(14)?, pair(17)?);
    let is_real = (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !is_real {
        return None;
    }
    let millisecond = pair(20)? * 10 + digit(22)?;
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
    Some(days_since_1970(year, month, day) * 86_400_000 + of_day)
}

/// Days from 1970 in the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<i64>) {
        assert_eq!(
            moment(&mut Json::new(json.as_bytes())),
            Ok(expected),
            "{json}"
        );
    }

    #[test]
    fn every_form_of_a_time_is_the_same_moment() {
        let same = Some(1_793_610_004_120);
        check("\"2026-11-02T09:00:04.120Z\"", same);
        check("\"2026-11-02T10:00:04.120+01:00\"", same);
        check("\"2026-11-02T09:00:04.120000Z\"", same);
        check("1793610004120", same);
        check("1793610004.12", same);
        check("null", None);
        check("\"soon\"", None);
        check("\"2026-11-31T09:00:04.120Z\"", None);
        check("\"2024-02-29T00:00:00.000Z\"", Some(1_709_164_800_000));
        check("\"2026-12-31T23:59:59.999Z\"", Some(1_798_761_599_999));
    }
}
