//! The output of programs about themselves: a reader per form, all of them building the same `Story`.

mod claude_code;
mod codex;
mod events;
mod gemini;
mod opencode;
mod story;
#[cfg(test)]
mod tests;

pub(crate) use story::{LlmFailure, Story, ToolEnd};

use serde::Deserialize;
use serde_json::Value;

/// The form of a program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutputForm {
    /// The answer.
    #[default]
    Text,
    /// One JSON event per line, in Assize's own form.
    Events,
    /// Claude Code's `stream-json`.
    ClaudeCode,
    /// The same events with OpenAI's way of counting: all input is in `input_tokens`.
    QwenCode,
    /// Codex' `exec --json`.
    Codex,
    /// opencode's `run --format json`.
    Opencode,
    /// Gemini CLI's `stream-json`.
    Gemini,
}

/// The use of a line.
#[derive(PartialEq, Eq)]
pub(crate) enum Line {
    Understood,
    /// Not of this form.
    Strange,
}

impl OutputForm {
    pub(crate) fn has_events(self) -> bool {
        self != Self::Text
    }

    /// The form is an agent's own and says when a turn has come to its end.
    pub(crate) fn reports_end(self) -> bool {
        !matches!(self, Self::Text | Self::Events)
    }

    /// Adds the content of a line. `at` is its arrival, where that is known.
    fn read(self, event: Value, at: Option<i64>, story: &mut Story) -> Line {
        match self {
            Self::Text => return Line::Strange,
            Self::Events => return events::read(event, at, story),
            Self::ClaudeCode => {
                claude_code::read(&event, at, story, claude_code::Counting::Anthropic);
            }
            Self::QwenCode => claude_code::read(&event, at, story, claude_code::Counting::OpenAi),
            Self::Codex => codex::read(&event, at, story),
            Self::Opencode => opencode::read(&event, at, story),
            Self::Gemini => gemini::read(&event, at, story),
        }
        // Agents add kinds of events faster than readers learn them.
        match event.get("type").is_some_and(Value::is_string) {
            true => Line::Understood,
            false => Line::Strange,
        }
    }
}

/// The text at a path of keys.
fn text<'a>(event: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(event, path)?.as_str()
}

/// The count at a path of keys.
fn count(event: &Value, path: &[&str]) -> Option<u64> {
    at(event, path)?.as_u64()
}

fn at<'a>(event: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(event, |value, key| value.get(key))
}
