//! The four collectors every suite uses unless it says otherwise, `program` for agents that are programs, and `skills`
//! where a mode has some.

mod cost;
mod latency;
mod program;
mod skills;
mod token;
mod tool_calls;

pub use cost::CostCollector;
pub use latency::LatencyCollector;
pub use program::ProgramCollector;
pub use skills::SkillsCollector;
pub use token::TokenCollector;
pub use tool_calls::ToolCallsCollector;
