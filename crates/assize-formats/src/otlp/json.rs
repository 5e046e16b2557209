//! OTLP as JSON: ids in hexadecimal, 64-bit numbers as strings, enums as numbers.

use super::{Attribute, Attributes, Event, ResourceSpans, Span, Status};
use serde_json::{Value, json};

/// One document for one or many sessions: a line of an OTLP file, or the body of a request.
pub fn to_json(sessions: &[ResourceSpans]) -> Value {
    let resources: Vec<Value> = sessions.iter().map(resource_spans).collect();
    json!({ "resourceSpans": resources })
}

fn resource_spans(session: &ResourceSpans) -> Value {
    let spans: Vec<Value> = session.spans.iter().map(span).collect();
    json!({
        "resource": { "attributes": attributes(&session.resource) },
        "scopeSpans": [{ "scope": { "name": "assize", "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
    })
}

fn span(span: &Span) -> Value {
    let mut fields = json!({ "traceId": hex(&span.trace_id), "spanId": hex(&span.span_id) });
    if let Some(parent) = &span.parent {
        fields["parentSpanId"] = hex(parent).into();
    }
    fields["name"] = span.name.clone().into();
    fields["kind"] = (span.kind as u8).into();
    fields["startTimeUnixNano"] = span.start_ns.to_string().into();
    fields["endTimeUnixNano"] = span.end_ns.to_string().into();
    fields["attributes"] = attributes(&span.attributes);
    if !span.events.is_empty() {
        fields["events"] = span.events.iter().map(event).collect();
    }
    fields["status"] = match &span.status {
        Status::Unset => json!({}),
        Status::Ok => json!({ "code": 1 }),
        Status::Error(message) => json!({ "code": 2, "message": message }),
    };
    fields
}

fn event(event: &Event) -> Value {
    json!({
        "timeUnixNano": event.time_ns.to_string(), "name": event.name, "attributes": attributes(&event.attributes),
    })
}

fn attributes(attributes: &Attributes) -> Value {
    let pair = |(key, value): &(String, Attribute)| json!({ "key": key, "value": any(value) });
    attributes.iter().map(pair).collect()
}

fn any(value: &Attribute) -> Value {
    match value {
        Attribute::Text(text) => json!({ "stringValue": text }),
        Attribute::Int(number) => json!({ "intValue": number.to_string() }),
        Attribute::Double(number) => json!({ "doubleValue": number }),
        Attribute::Bool(is_true) => json!({ "boolValue": is_true }),
        Attribute::Texts(texts) => {
            let values: Vec<Value> = texts
                .iter()
                .map(|text| json!({ "stringValue": text }))
                .collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
