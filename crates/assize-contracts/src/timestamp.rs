//! Points in wall-clock time, kept as the text they came in so that foreign records are not rewritten.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

// Every trial writes and reads a dozen times, so our own form is done by hand; all others are left to `jiff`.

const DAY: i64 = 86_400_000;

/// The beginning of year 0 and the end of year 9999.
const FIRST: i64 = -62_167_219_200_000;
const LAST: i64 = 253_402_300_799_999;

/// Milliseconds since 1970, by the clock of this machine.
pub fn unix_ms_now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_1970.unwrap_or_default().as_millis() as i64;
    match JUMP.load(Ordering::Relaxed) {
        0 => now,
        jump => now + jumped(jump),
    }
}

/// Milliseconds by which the clock jumps. 0: it does not.
static JUMP: AtomicI64 = AtomicI64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Makes the clock jump forth and back by so many milliseconds every few reads: for tests of what a wrong clock must not break.
pub fn let_clock_jump(milliseconds: i64) {
    JUMP.store(milliseconds, Ordering::Relaxed);
}

fn jumped(jump: i64) -> i64 {
    match CALLS.fetch_add(1, Ordering::Relaxed) / 7 % 3 {
        0 => 0,
        1 => jump,
        _ => -jump,
    }
}

/// An RFC 3339 time in UTC with milliseconds when Assize writes it; as found when someone else did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// The wall-clock time of this moment.
    pub fn now() -> Self {
        Self::from_unix_ms(unix_ms_now())
    }

    /// The given number of milliseconds since 1970, clamped to the years that are written with four digits.
    pub fn from_unix_ms(milliseconds: i64) -> Self {
        let milliseconds = milliseconds.clamp(FIRST, LAST);
        let (day, in_day) = (milliseconds.div_euclid(DAY), milliseconds.rem_euclid(DAY));
        let (year, month, day) = date_of(day);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (place, pair) in [
            (0, year / 100),
            (2, year % 100),
            (5, month),
            (8, day),
            (11, in_day / 3_600_000),
            (14, in_day / 60_000 % 60),
            (17, in_day / 1000 % 60),
            (20, in_day / 10 % 100),
        ] {
            text[place] = digit(pair / 10);
            text[place + 1] = digit(pair);
        }
        text[22] = digit(in_day);
        Self(String::from_utf8(text.to_vec()).unwrap_or_default())
    }

    /// Milliseconds since 1970. Absent when the text is not a time.
    pub fn unix_ms(&self) -> Option<i64> {
        read_own_form(self.0.as_bytes()).or_else(|| {
            self.0
                .parse::<jiff::Timestamp>()
                .ok()
                .map(|instant| instant.as_millisecond())
        })
    }

    /// The text as in the record.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Timestamp {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The last digit of a number.
fn digit(number: i64) -> u8 {
    b'0' + (number % 10) as u8
}

/// Year, month and day of a day since 1970, in the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn date_of(day: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last one.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The day since 1970 of a date.
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reads `2026-03-03T17:03:45.126Z` and nothing else.
fn read_own_form(text: &[u8]) -> Option<i64> {
    let is_separated = text.len() == 24
        && [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
            (23, b'Z'),
        ]
        .iter()
        .all(|(place, separator)| text[*place] == *separator);
    let number = |start: usize, end: usize| {
        text[start..end].iter().try_fold(0, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    if !is_separated {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // A date that does not exist is for the careful reader to refuse.
    let exists = date_of(day_of(year, month, day)) == (year, month, day)
        && hour < 24
        && minute < 60
        && second < 60;
    let seconds = ((day_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    exists.then_some(seconds * 1000 + number(20, 23)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn our_own_form_agrees_with_the_library(milliseconds in FIRST..LAST) {
            let ours = Timestamp::from_unix_ms(milliseconds);
            let theirs = jiff::Timestamp::from_millisecond(milliseconds).unwrap();
            prop_assert_eq!(ours.as_str(), format!("{theirs:.3}"));
            prop_assert_eq!(read_own_form(ours.as_str().as_bytes()), Some(milliseconds));
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_no_times() {
        for text in [
            "2026-02-30T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-01-01T25:00:00.000Z",
        ] {
            assert_eq!(Timestamp::from(text.to_owned()).unix_ms(), None, "{text}");
        }
    }

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(
            Timestamp::from_unix_ms(1_704_103_200_710).as_str(),
            "2024-01-01T10:00:00.710Z"
        );
        assert_eq!(
            Timestamp::from_unix_ms(0).as_str(),
            "1970-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn times_are_read_with_any_precision_and_junk_is_no_time() {
        let read = |text: &str| Timestamp::from(text.to_owned()).unix_ms();
        assert_eq!(read("2024-01-01T10:00:00Z"), Some(1_704_103_200_000));
        assert_eq!(read("2024-01-01T12:00:00.5+02:00"), Some(1_704_103_200_500));
        assert_eq!(read("yesterday"), None);
    }
}
