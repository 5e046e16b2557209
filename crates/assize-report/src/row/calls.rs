//! The tool calls of a row. Rows of other profilers have them in forms of their own.

use super::Text;
use crate::scalar::Scalar;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// One call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) success: Option<bool>,
}

/// All calls of a trial.
#[derive(Debug, Default)]
pub(super) struct Records<'a> {
    calls: Vec<Call<'a>>,
    /// There is something else than calls in the form of Assize.
    is_foreign: bool,
}

impl<'a> Records<'a> {
    pub(super) fn calls(&self) -> Option<&[Call<'a>]> {
        (!self.is_foreign).then_some(&self.calls)
    }

    fn foreign() -> Self {
        Self {
            calls: Vec::new(),
            is_foreign: true,
        }
    }
}

thread_local! {
    /// Calls are passed over while this is set.
    static IS_PASSED_OVER: Cell<bool> = const { Cell::new(false) };
}

/// Parses rows without their calls: they are a third of most rows, and numbers need none.
pub(super) fn pass_over<T>(parse: impl FnOnce() -> T) -> T {
    IS_PASSED_OVER.set(true);
    let parsed = parse();
    IS_PASSED_OVER.set(false);
    parsed
}

impl<'de: 'a, 'a> Deserialize<'de> for Records<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if IS_PASSED_OVER.get() {
            return IgnoredAny::deserialize(deserializer).map(|_| Self::foreign());
        }
        deserializer.deserialize_any(RecordsVisitor)
    }
}

struct RecordsVisitor;

impl<'de> Visitor<'de> for RecordsVisitor {
    type Value = Records<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Records<'de>, A::Error> {
        let mut records = Records::default();
        while let Some(MaybeCall(call)) = items.next_element()? {
            records.is_foreign |= call.is_none();
            records.calls.extend(call);
        }
        Ok(records)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Records<'de>, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Records::foreign())
    }

    fn visit_unit<E>(self) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }

    fn visit_str<E>(self, _: &str) -> Result<Records<'de>, E> {
        Ok(Records::foreign())
    }
}

/// A call, or anything else.
struct MaybeCall<'a>(Option<Call<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for MaybeCall<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CallVisitor).map(Self)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = Option<Call<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut name = Scalar::Nothing;
        let (mut category, mut success) = (Scalar::Nothing, Scalar::Nothing);
        while let Some(Text(key)) = items.next_key()? {
            match &*key {
                "name" => name = items.next_value()?,
                "category" => category = items.next_value()?,
                "success" => success = items.next_value()?,
                _ => drop(items.next_value::<IgnoredAny>()?),
            }
        }
        Ok(call(name, category, success))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

fn call<'a>(name: Scalar<'a>, category: Scalar<'a>, success: Scalar<'a>) -> Option<Call<'a>> {
    let Scalar::Text(name) = name else {
        return None;
    };
    Some(Call {
        name,
        category: match category {
            Scalar::Text(category) => Some(category),
            Scalar::Nothing => None,
            _ => return None,
        },
        success: match success {
            Scalar::Bool(success) => Some(success),
            Scalar::Nothing => None,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use crate::Row;

    fn check(records: &str, expected: Option<usize>) {
        let json = format!(
            r#"{{"scenarioId":"s","mode":"m","iteration":0,"success":true,"toolCalls":{{"records":{records}}}}}"#
        );
        let row = Row::parse(json.as_bytes()).unwrap();
        assert_eq!(row.calls().map(<[_]>::len), expected, "{records}");
    }

    #[test]
    fn calls_in_other_forms_are_none_and_no_error() {
        check("[]", Some(0));
        check(
            r#"[{"name":"a","success":null,"more":[1]},{"name":"b","category":"c"}]"#,
            Some(2),
        );
        for foreign in [
            "null",
            "3",
            r#""x""#,
            "{}",
            "[1]",
            "[null]",
            r#"[{"category":"c"}]"#,
            r#"[{"name":1}]"#,
            r#"[{"name":"a","success":"yes"}]"#,
        ] {
            check(foreign, None);
        }
    }

    #[test]
    fn rows_without_their_calls_have_the_same_numbers_and_the_next_ones_have_calls_again() {
        let json = r#"{"scenarioId":"s","mode":"m","iteration":0,"success":true,"toolCalls":{"total":1,"records":[{"name":"a"}]}}"#;
        let row = Row::parse_without_calls(json.as_bytes()).unwrap();
        assert!(row.calls().is_none());
        let mut found = Vec::new();
        row.for_each_measurement(&Default::default(), |name, value| {
            found.push((name.to_owned(), value));
        });
        assert_eq!(found, [("tool_calls_total".to_owned(), 1.0)]);
        check(r#"[{"name":"a"}]"#, Some(1));
    }

    #[test]
    fn a_row_whose_calls_cannot_be_read_counts_without_them() {
        check(r#"[{"name":"\ud800"}]"#, None);
        check(r#"[{"name":"a"}]"#, Some(1));
    }
}
