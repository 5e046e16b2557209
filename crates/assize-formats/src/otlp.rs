//! OpenTelemetry: a session as spans by the conventions for generative AI, as a JSON line of a file or as protobuf for a
//! collector. The conventions are unstable; [`Dialect`] names those that viewers read.

mod attributes;
mod json;
mod protobuf;
mod tree;

pub use json::to_json;
pub use protobuf::to_protobuf;
pub use tree::spans;

/// Texts longer than this are cut unless asked for otherwise.
pub const LONGEST_TEXT: usize = 10 << 10;

/// The set of attribute names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The conventions of version 1.41, which most viewers read.
    #[default]
    V1_41,
    /// The names of today.
    Latest,
    /// Those of OpenInference, for Phoenix.
    OpenInference,
}

/// The parts of a session that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The names of attributes.
    pub dialect: Dialect,
    /// Texts, arguments and results, too.
    pub has_content: bool,
    /// Bytes of a text.
    pub longest_text: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            has_content: false,
            longest_text: LONGEST_TEXT,
        }
    }
}

/// The spans of one session and where they come from.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSpans {
    /// Attributes of the resource.
    pub resource: Attributes,
    /// The root first.
    pub spans: Vec<Span>,
}

/// One span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Equal for all spans of a session.
    pub trace_id: [u8; 16],
    /// Unique in the trace.
    pub span_id: [u8; 8],
    /// The span around it. Absent for the root.
    pub parent: Option<[u8; 8]>,
    pub name: String,
    /// The role of the span.
    pub kind: Kind,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Nanoseconds since 1970.
    pub end_ns: u64,
    /// By name.
    pub attributes: Attributes,
    /// Moments in the span.
    pub events: Vec<Event>,
    /// The result.
    pub status: Status,
}

/// The role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work of the agent.
    Internal = 1,
    /// A request to a model.
    Client = 3,
}

/// The result of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// No status.
    Unset,
    /// It went well.
    Ok,
    /// It failed, with a message.
    Error(String),
}

impl Status {
    fn code(&self) -> u64 {
        match self {
            Self::Unset => 0,
            Self::Ok => 1,
            Self::Error(_) => 2,
        }
    }
}

/// A moment in a span.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub name: String,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// By name.
    pub attributes: Attributes,
}

/// A list of named values.
pub type Attributes = Vec<(String, Attribute)>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Text(String),
    /// A whole number.
    Int(i64),
    /// Any number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
    /// Several texts.
    Texts(Vec<String>),
}
