//! OTLP as protobuf: an `ExportTraceServiceRequest`. The few messages are written by hand, which takes less code than their types
//! would, and no dependency. Numbers of fields are those of `opentelemetry/proto/trace/v1/trace.proto`.

use super::{Attribute, Attributes, Event, ResourceSpans, Span, Status};

/// The body of a request to a collector.
pub fn to_protobuf(sessions: &[ResourceSpans]) -> Vec<u8> {
    let mut request = Message::default();
    for session in sessions {
        request.message(1, |resource| {
            resource.message(1, |fields| fields.attributes(1, &session.resource));
            resource.message(2, |scope| {
                scope.message(1, |fields| {
                    fields.text(1, "assize");
                    fields.text(2, env!("CARGO_PKG_VERSION"));
                });
                for each in &session.spans {
                    scope.message(2, |fields| span(fields, each));
                }
            });
        });
    }
    request.bytes
}

fn span(fields: &mut Message, span: &Span) {
    fields.bytes(1, &span.trace_id);
    fields.bytes(2, &span.span_id);
    if let Some(parent) = &span.parent {
        fields.bytes(4, parent);
    }
    fields.text(5, &span.name);
    fields.number(6, span.kind as u64);
    fields.fixed(7, span.start_ns);
    fields.fixed(8, span.end_ns);
    fields.attributes(9, &span.attributes);
    for each in &span.events {
        fields.message(11, |fields| event(fields, each));
    }
    if span.status != Status::Unset {
        fields.message(15, |fields| {
            if let Status::Error(message) = &span.status {
                fields.text(2, message);
            }
            fields.number(3, span.status.code());
        });
    }
}

fn event(fields: &mut Message, event: &Event) {
    fields.fixed(1, event.time_ns);
    fields.text(2, &event.name);
    fields.attributes(3, &event.attributes);
}

fn any(fields: &mut Message, value: &Attribute) {
    match value {
        Attribute::Text(text) => fields.text(1, text),
        Attribute::Bool(is_true) => fields.number(2, u64::from(*is_true)),
        // A negative number is its two's complement.
        Attribute::Int(number) => fields.number(3, *number as u64),
        Attribute::Double(number) => fields.fixed_as(4, number.to_bits()),
        Attribute::Texts(texts) => fields.message(5, |list| {
            for text in texts {
                list.message(1, |fields| fields.text(1, text));
            }
        }),
    }
}

/// A message that is being written.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

/// The encodings of a field.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn tag(&mut self, field: u64, form: u64) {
        self.varint(field << 3 | form);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.tag(field, VARINT);
        self.varint(number);
    }

    fn fixed(&mut self, field: u64, number: u64) {
        self.fixed_as(field, number);
    }

    fn fixed_as(&mut self, field: u64, bits: u64) {
        self.tag(field, FIXED_64);
        self.bytes.extend(bits.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.bytes);
    }

    fn attributes(&mut self, field: u64, attributes: &Attributes) {
        for (key, value) in attributes {
            self.message(field, |pair| {
                pair.text(1, key);
                pair.message(2, |fields| any(fields, value));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Status};
    use super::*;

    /// Fields of a message: number and content.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut number = 0;
            for shift in (0..64).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                number |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    return number;
                }
            }
            panic!("a number without end")
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let content = match tag & 7 {
                0 => varint(&mut bytes).to_le_bytes().to_vec(),
                form => {
                    let length = if form == 1 {
                        8
                    } else {
                        varint(&mut bytes) as usize
                    };
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    content.to_vec()
                }
            };
            found.push((tag >> 3, content));
        }
        found
    }

    fn field(bytes: &[u8], number: u64) -> Vec<u8> {
        let found = fields(bytes);
        found
            .into_iter()
            .find(|(each, _)| *each == number)
            .unwrap()
            .1
    }

    #[test]
    fn every_field_stands_where_the_schema_says() {
        let long = "x".repeat(300);
        let session = ResourceSpans {
            resource: vec![(
                "service.name".to_owned(),
                Attribute::Text("assize".to_owned()),
            )],
            spans: vec![Span {
                trace_id: [7; 16],
                span_id: [8; 8],
                parent: Some([9; 8]),
                name: long.clone(),
                kind: Kind::Client,
                start_ns: 1_793_610_000_000_000_000,
                end_ns: 1_793_610_000_000_000_001,
                attributes: vec![
                    ("n".to_owned(), Attribute::Int(-1)),
                    ("d".to_owned(), Attribute::Double(0.5)),
                    ("b".to_owned(), Attribute::Bool(true)),
                    ("l".to_owned(), Attribute::Texts(vec!["a".to_owned()])),
                ],
                events: vec![Event {
                    name: "e".to_owned(),
                    time_ns: 5,
                    attributes: Vec::new(),
                }],
                status: Status::Error("no".to_owned()),
            }],
        };
        let request = to_protobuf(&[session]);
        let resource = field(&request, 1);
        assert_eq!(field(&field(&field(&resource, 1), 1), 1), b"service.name");
        let scope = field(&resource, 2);
        assert_eq!(field(&field(&scope, 1), 1), b"assize");
        let span = field(&scope, 2);
        assert_eq!(field(&span, 1), [7; 16]);
        assert_eq!(field(&span, 2), [8; 8]);
        assert_eq!(field(&span, 4), [9; 8]);
        assert_eq!(field(&span, 5), long.as_bytes());
        assert_eq!(field(&span, 6), 3u64.to_le_bytes());
        assert_eq!(field(&span, 7), 1_793_610_000_000_000_000u64.to_le_bytes());
        let values: Vec<Vec<u8>> = fields(&span)
            .into_iter()
            .filter(|(number, _)| *number == 9)
            .map(|(_, pair)| field(&pair, 2))
            .collect();
        assert_eq!(field(&values[0], 3), u64::MAX.to_le_bytes());
        assert_eq!(field(&values[1], 4), 0.5f64.to_le_bytes());
        assert_eq!(field(&values[2], 2), 1u64.to_le_bytes());
        assert_eq!(field(&field(&field(&values[3], 5), 1), 1), b"a");
        assert_eq!(field(&field(&span, 11), 1), 5u64.to_le_bytes());
        assert_eq!(field(&field(&span, 15), 2), b"no");
        assert_eq!(field(&field(&span, 15), 3), 2u64.to_le_bytes());
    }
}
