//! Finite numbers that look in JSON as their authors wrote them: 500, not 500.0.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// Below this every whole number has an exact form.
const EXACT: f64 = 9_007_199_254_740_992.0;

macro_rules! finite_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(transparent, inline))]
        pub struct $name(f64);

        impl $name {
            /// `None` for NaN and the infinities: they are not measurements and JSON cannot hold them.
            pub fn new(value: f64) -> Option<Self> {
                value.is_finite().then_some(Self(value))
            }

            /// The plain number. Always finite.
            pub fn value(self) -> f64 {
                self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize_shortest(self.0, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = f64::deserialize(deserializer)?;
                Self::new(value).ok_or_else(|| serde::de::Error::custom("expected a finite number"))
            }
        }
    };
}

finite_number! {
    /// A number without a unit of its own.
    Number
}
finite_number! {
    /// A span of time in milliseconds.
    Millis
}
finite_number! {
    /// An amount of money in US dollars.
    Usd
}

impl From<Number> for serde_json::Value {
    fn from(number: Number) -> Self {
        if number.0.fract() == 0.0 && number.0.abs() < EXACT {
            Self::from(number.0 as i64)
        } else {
            Self::from(number.0)
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(value as f64)
    }
}

impl From<u64> for Millis {
    fn from(value: u64) -> Self {
        Self(value as f64)
    }
}

impl From<Duration> for Millis {
    /// Rounded to a microsecond, which is finer than any of our clocks can promise.
    fn from(duration: Duration) -> Self {
        Self((duration.as_secs_f64() * 1e6).round() / 1e3)
    }
}

impl std::ops::Add for Millis {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(clamp_to_finite(self.0 + other.0))
    }
}

impl std::ops::Add for Usd {
    type Output = Self;

    /// Adds in whole pico-dollars, so that a sum of many small costs does not drift.
    fn add(self, other: Self) -> Self {
        let picos = (self.0 * 1e12).round() + (other.0 * 1e12).round();
        Self(clamp_to_finite(picos / 1e12))
    }
}

fn clamp_to_finite(value: f64) -> f64 {
    value.clamp(f64::MIN, f64::MAX)
}

fn serialize_shortest<S: Serializer>(value: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < EXACT {
        serializer.serialize_i64(value as i64)
    } else {
        serializer.serialize_f64(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) {
        let number: Number = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&number).unwrap(), json);
    }

    #[test]
    fn numbers_come_back_as_they_were_written() {
        for json in ["0", "-3", "500", "0.001", "69343.25"] {
            check(json);
        }
    }

    #[test]
    fn what_is_not_finite_is_not_a_number() {
        assert!(Millis::new(f64::NAN).is_none());
        assert!(serde_json::from_str::<Usd>("1e999").is_err());
    }

    #[test]
    fn ten_dimes_are_exactly_one_dollar() {
        let dime = Usd::new(0.1).unwrap();
        let sum = (0..10).fold(Usd::default(), |sum, _| sum + dime);
        assert_eq!(sum.value(), 1.0);
    }
}
