//! LLM APIs: decoders of the wire, one accounting of tokens, prices, and a small chat client. Knows no trial.
//!
//! An exchange is read with [`Api::of`] (is this a model call, and in which API?), [`ModelRequest::decode`] and an
//! [`AnswerReader`] that is fed the answer's bytes as they pass by. Bytes from the wire are untrusted: whatever
//! comes, memory stays bounded and nothing panics.

mod api;
mod outline;
mod request;
mod spans;

mod answer;
mod context_overflow;
mod decode;
mod draft;
mod framing;
mod json_array;
mod sse;
mod usage;

mod chat;
mod prices;

#[doc(hidden)]
pub mod fuzzing;
pub mod testing;

pub use answer::{AnswerReader, ApiError, Content, Flaws, ModelAnswer, Part, RequestedTool, Usage};
pub use api::Api;
pub use chat::{
    ApiKey, ChatAnswer, ChatClient, ChatError, ChatRequest, Endpoint, LostCall, Message,
    OutputSchema, ToolSpec, Tries,
};
pub use context_overflow::mentions_context_overflow;
pub use outline::{RequestOutline, ResultInRequest};
pub use prices::{Cost, PriceFileError, Prices, Purchase, Reckoning, price_calls};
pub use request::{ModelRequest, ToolResult, ask_for_usage, may_lack_usage};
pub use sse::{SseEvent, SseReader};
