//! The four collectors every suite uses unless it says otherwise. All of them read the prompt result only.

mod cost;
mod latency;
mod token;
mod tool_calls;

pub use cost::CostCollector;
pub use latency::LatencyCollector;
pub use token::TokenCollector;
pub use tool_calls::ToolCallsCollector;
