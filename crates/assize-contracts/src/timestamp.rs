//! Points in wall-clock time, kept as the text they came in so that foreign records are not rewritten.

use serde::{Deserialize, Serialize};

/// An RFC 3339 time in UTC with milliseconds when Assize writes it; as found when someone else did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// The given number of milliseconds since 1970, clamped to the years a date can be written for.
    pub fn from_unix_ms(milliseconds: i64) -> Self {
        let instant =
            jiff::Timestamp::from_millisecond(milliseconds).unwrap_or(if milliseconds < 0 {
                jiff::Timestamp::MIN
            } else {
                jiff::Timestamp::MAX
            });
        Self(format!("{instant:.3}"))
    }

    /// Milliseconds since 1970. Absent when the text is not a time.
    pub fn unix_ms(&self) -> Option<i64> {
        self.0
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|instant| instant.as_millisecond())
    }

    /// The text as it stands in the record.
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

#[cfg(test)]
mod tests {
    use super::*;

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
