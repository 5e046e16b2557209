//! The four collectors every suite uses unless it says otherwise, and `program` for agents that are programs. All of them read the prompt result only.

mod cost;
mod latency;
mod program;
mod token;
mod tool_calls;

pub use cost::CostCollector;
pub use latency::LatencyCollector;
pub use program::ProgramCollector;
pub use token::TokenCollector;
pub use tool_calls::ToolCallsCollector;
