//! Lines of JSON-RPC: written from typed parameters, read just far enough to know whom they are for.

use crate::error::CallError;
use crate::protocol::{LONGEST_MESSAGE, RpcError};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Serialize)]
struct Outgoing<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// A request as a line. An error when it would be too long to send.
pub(crate) fn request(id: u64, method: &str, params: impl Serialize) -> Result<Vec<u8>, CallError> {
    line(&Outgoing {
        jsonrpc: "2.0",
        id: Some(id),
        method,
        params,
    })
}

/// A notification as a line.
pub(crate) fn notification(method: &str, params: impl Serialize) -> Result<Vec<u8>, CallError> {
    line(&Outgoing {
        jsonrpc: "2.0",
        id: None,
        method,
        params,
    })
}

/// The answer to a request of the other side.
pub(crate) fn answer(id: &Value, outcome: Result<Value, RpcError>) -> Result<Vec<u8>, CallError> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<RpcError>,
    }
    let (result, error) = match outcome {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    line(&Answer {
        jsonrpc: "2.0",
        id,
        result,
        error,
    })
}

fn line(message: &impl Serialize) -> Result<Vec<u8>, CallError> {
    let mut line = Vec::with_capacity(512);
    serde_json::to_writer(&mut line, message)
        .map_err(|error| CallError::Unsendable(error.to_string()))?;
    if line.len() >= LONGEST_MESSAGE {
        return Err(CallError::TooLong { bytes: line.len() });
    }
    line.push(b'\n');
    Ok(line)
}

/// The kind of a line, before its content is read.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// An answer to the request with this number.
    Answer(u64),
    /// An answer that refers to nothing we could have asked.
    StrayAnswer,
    /// A request of the other side.
    Request { id: Value, method: String },
    /// A notification.
    Notification { method: String },
    /// Not a message: text that a plugin printed.
    Text,
    /// Meant as a message, but broken.
    Broken(String),
}

/// Finds out what a line is.
pub(crate) fn look_at(line: &[u8]) -> Incoming {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        id: Option<Value>,
        #[serde(default)]
        method: Option<String>,
        #[serde(default)]
        #[expect(dead_code, reason = "looked at by whom it is for")]
        result: IgnoredAny,
    }
    if line.first() != Some(&b'{') {
        return Incoming::Text;
    }
    match serde_json::from_slice::<Head>(line) {
        Err(error) => Incoming::Broken(error.to_string()),
        Ok(Head {
            id,
            method: Some(method),
            ..
        }) => match id {
            Some(id) => Incoming::Request { id, method },
            None => Incoming::Notification { method },
        },
        Ok(Head { id, .. }) => match id.as_ref().and_then(Value::as_u64) {
            Some(id) => Incoming::Answer(id),
            None => Incoming::StrayAnswer,
        },
    }
}

/// The parameters of a request or notification.
pub(crate) fn params<P: DeserializeOwned>(line: &[u8]) -> Result<P, String> {
    #[derive(Deserialize)]
    struct Params<P> {
        params: P,
    }
    read::<Params<P>>(line).map(|message| message.params)
}

/// The result of an answer, or the error in it.
pub(crate) fn result<R: DeserializeOwned>(line: &[u8]) -> Result<R, CallError> {
    #[derive(Deserialize)]
    #[serde(bound = "R: DeserializeOwned")]
    struct Answer<R> {
        #[serde(default = "none", deserialize_with = "present")]
        result: Option<R>,
        #[serde(default)]
        error: Option<RpcError>,
    }
    fn none<R>() -> Option<R> {
        None
    }
    // `null` is a result, too: many methods return nothing.
    fn present<'de, R: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<R>, D::Error> {
        R::deserialize(deserializer).map(Some)
    }
    let answer: Answer<R> = read(line).map_err(CallError::Unreadable)?;
    match (answer.error, answer.result) {
        (Some(error), None) => Err(CallError::Refused(error)),
        (None, Some(result)) => Ok(result),
        _ => {
            let expected = "expected either `result` or `error`".to_owned();
            Err(CallError::Unreadable(expected))
        }
    }
}

/// Reads quickly, and once more with the path where it fails.
fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).or_else(|_| {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            format!("`{path}`: {}", error.into_inner())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(line: &str, expected: Incoming) {
        assert_eq!(look_at(line.as_bytes()), expected, "{line}");
    }

    #[test]
    fn a_line_is_told_by_what_it_has() {
        check(
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}"#,
            Incoming::Answer(7),
        );
        check(
            r#"{"id":7,"error":{"code":1,"message":""}}"#,
            Incoming::Answer(7),
        );
        check(r#"{"id":"x","result":1}"#, Incoming::StrayAnswer);
        check(r#"{"result":1}"#, Incoming::StrayAnswer);
        check("listening on port 80", Incoming::Text);
        check("", Incoming::Text);
        let method = "$/log".to_owned();
        check(
            r#"{"method":"$/log","params":{}}"#,
            Incoming::Notification {
                method: method.clone(),
            },
        );
        check(
            r#"{"id":"a","method":"$/log"}"#,
            Incoming::Request {
                id: json!("a"),
                method,
            },
        );
        assert!(matches!(look_at(b"{oops"), Incoming::Broken(_)));
    }

    #[test]
    fn null_is_a_result_and_nothing_is_none() {
        assert!(matches!(
            result::<Option<u8>>(br#"{"id":1,"result":null}"#),
            Ok(None)
        ));
        assert!(matches!(
            result::<Option<u8>>(br#"{"id":1}"#),
            Err(CallError::Unreadable(_))
        ));
        let both = br#"{"id":1,"result":1,"error":{"code":1}}"#;
        assert!(matches!(result::<u8>(both), Err(CallError::Unreadable(_))));
    }

    #[test]
    fn a_wrong_shape_is_explained_with_its_place() {
        let line = br#"{"id":1,"result":{"text":"","completionReason":"stop","metrics":{"tokens":{"input":"many"}}}}"#;
        let Err(CallError::Unreadable(message)) = result::<assize_contracts::PromptResult>(line)
        else {
            panic!("it was read")
        };
        assert!(
            message.contains("`result.metrics.tokens.input`"),
            "{message}"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_breaks_the_reader(line: Vec<u8>) {
            look_at(&line);
            let _ = result::<Value>(&line);
            let _ = params::<Value>(&line);
        }
    }
}
