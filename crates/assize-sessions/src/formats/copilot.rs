//! GitHub Copilot CLI: `session-state/<id>/events.jsonl`. Usage is a record of its own per call; logs without such records have tokens only
//! in the sums of the shutdown.

use super::document::{Inclusive, Types};
use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{AgentPlace, CallMarks, Detail, Draft, ToolEnd, Usage, What, identity};
use crate::log::{Entry, LogFile, ReadError};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Copilot;

impl LogFormat for Copilot {
    fn agent(&self) -> &'static str {
        "copilot"
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        vec![
            machine
                .directory("COPILOT_HOME", ".copilot")
                .join("session-state"),
        ]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "jsonl")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        const KINDS: [&str; 4] = ["session.", "assistant.", "user.", "tool."];
        let is_start = |line: &Value| line["type"] == "session.start" && line["data"].is_object();
        let is_event = |line: &Value| {
            let kind = line["type"].as_str().unwrap_or_default();
            KINDS.iter().any(|beginning| kind.starts_with(beginning))
                && line["data"].is_object()
                && line["id"].is_string()
                && line["timestamp"].is_string()
        };
        head.values().any(|line| is_start(&line) || is_event(&line))
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut reader = Reader {
            draft: Draft::new(self.agent(), detail),
            totals: Vec::new(),
        };
        log.each_line(|entry| reader.take(entry))?;
        Ok(vec![reader.finish()])
    }
}

struct Reader {
    draft: Draft,
    /// Sums by model, from the last shutdown.
    totals: Vec<(String, Value)>,
}

impl Reader {
    fn take(&mut self, entry: Entry<'_>) {
        let Some(line) = self.draft.flaws.value(entry) else {
            return;
        };
        let mut types = Types::default();
        let at = types.moment(&line["timestamp"]);
        let data = &line["data"];
        let id = identity(&[
            b"copilot",
            line["id"].as_str().unwrap_or_default().as_bytes(),
        ]);
        let agent = self.agent_of(&line, data);
        match types.text(&line["type"]) {
            Some("session.start") => self.take_start(data),
            Some("user.message") => {
                let text = self
                    .draft
                    .keep(data["content"].as_str().unwrap_or_default());
                self.draft.push_known(id, at, agent, What::Prompt(text));
            }
            Some("session.usage_record") => self.take_usage(&data["usage"], agent, at, &mut types),
            Some("assistant.message") => self.take_answer(data, agent, at),
            Some("tool.execution_start") => self.begin_tool(data, agent, at),
            Some("tool.execution_complete") => self.end_tool(data, at),
            Some("session.compaction_complete") => {
                self.draft.push_known(id, at, agent, What::Compaction);
            }
            Some("session.error") => {
                let message = self.draft.keep(
                    data["message"]
                        .as_str()
                        .unwrap_or("an error of the session"),
                );
                self.draft.push_known(
                    id,
                    at,
                    agent,
                    What::Error {
                        message,
                        is_recoverable: true,
                    },
                );
            }
            Some("session.shutdown") => {
                let models = data["modelMetrics"].as_object();
                let models = models.into_iter().flatten();
                self.totals = models
                    .map(|(model, metrics)| (model.clone(), metrics["usage"].clone()))
                    .collect();
            }
            _ => {}
        }
        self.draft.flaws.wrong_types += u64::from(types.is_odd);
    }

    /// A sub-agent is known by the tool call that started it.
    fn agent_of(&mut self, line: &Value, data: &Value) -> AgentPlace {
        let id = line["agentId"]
            .as_str()
            .or(data["agentId"].as_str())
            .or(data["parentToolCallId"].as_str());
        match id {
            Some(id) if !id.is_empty() && id != "main" => self.draft.agent(id),
            _ => 0,
        }
    }

    fn take_start(&mut self, data: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.draft.id = text(&data["sessionId"]).unwrap_or_default();
        let origin = &mut self.draft.origin;
        origin.agent_version = text(&data["copilotVersion"]);
        origin.format_version = data["version"].as_u64().map(|version| version.to_string());
        origin.cwd = text(&data["context"]["cwd"]);
        origin.git_branch = text(&data["context"]["branch"]);
        origin.git_commit = text(&data["context"]["headCommit"]);
    }

    fn call(&mut self, id: &str, agent: AgentPlace) -> u32 {
        let request = match id {
            "" => 0,
            id => identity(&[b"copilot call", id.as_bytes()]),
        };
        let marks = CallMarks::of(request);
        let place = self.draft.call(marks, agent);
        let is_full = self.draft.is_full();
        if let Some(call) = self.draft.calls.get_mut(place as usize)
            && is_full
            && !id.is_empty()
        {
            call.id = Some(id.to_owned());
        }
        place
    }

    fn take_usage(&mut self, usage: &Value, agent: AgentPlace, at: Option<i64>, types: &mut Types) {
        let place = self.call(usage["apiCallId"].as_str().unwrap_or_default(), agent);
        let tokens = self.tokens(usage, types);
        let model = types.text(&usage["model"]).unwrap_or_default().to_owned();
        self.draft.take_usage(place, &model, tokens);
        let (ttft, duration) = (
            types.number(&usage["timeToFirstTokenMs"]),
            types.number(&usage["duration"]),
        );
        let stop = types.text(&usage["finishReason"]).map(str::to_owned);
        if let Some(call) = self.draft.calls.get_mut(place as usize) {
            call.ttft_ms = ttft;
            call.duration_ms = duration;
            call.stop_reason = stop;
            call.first = call.first.or(at);
            call.last = at;
            call.started = at
                .zip(duration)
                .map(|(at, duration)| at.saturating_sub(duration as i64));
            call.is_side = usage["interactionType"]
                .as_str()
                .is_some_and(|kind| !kind.starts_with("conversation"));
        }
    }

    /// Input holds the cached part, output the reasoning.
    fn tokens(&mut self, usage: &Value, types: &mut Types) -> Usage {
        let mut count = |key: &str| types.count(&usage[key]);
        let counts = Inclusive {
            prompt: count("inputTokens"),
            completion: count("outputTokens"),
            reasoning: count("reasoningTokens"),
            cache_read: count("cacheReadTokens"),
            cache_write: count("cacheWriteTokens"),
        };
        Usage::of(counts.tokens(&mut self.draft.flaws))
    }

    fn take_answer(&mut self, data: &Value, agent: AgentPlace, at: Option<i64>) {
        let place = self.call(data["apiCallId"].as_str().unwrap_or_default(), agent);
        let model = self
            .draft
            .names
            .of(data["model"].as_str().unwrap_or_default());
        if let Some(call) = self.draft.calls.get_mut(place as usize) {
            call.first = call.first.or(at);
            if call.model == 0 {
                call.model = model;
            }
        }
        if let Some(thought) = data["reasoningText"].as_str() {
            let text = self.draft.keep(thought);
            self.draft
                .push(at, agent, What::Reasoning(text, Some(place)));
        }
        if let Some(content) = data["content"].as_str().filter(|text| !text.is_empty()) {
            let text = self.draft.keep(content);
            self.draft.push(at, agent, What::Text(text, Some(place)));
        }
        for request in data["toolRequests"].as_array().into_iter().flatten() {
            let name = request["name"].as_str().unwrap_or_default();
            self.start(name, request, "arguments", Some(place), agent, at);
        }
    }

    fn begin_tool(&mut self, data: &Value, agent: AgentPlace, at: Option<i64>) {
        let name = data["toolName"].as_str().unwrap_or_default();
        self.start(name, data, "arguments", None, agent, at);
    }

    fn start(
        &mut self,
        name: &str,
        data: &Value,
        input: &str,
        call: Option<u32>,
        agent: AgentPlace,
        at: Option<i64>,
    ) {
        let server = data["mcpServerName"].as_str();
        let name = match server {
            Some(server) if !name.starts_with("mcp__") => format!("mcp__{server}__{name}"),
            _ => name.to_owned(),
        };
        let input = data[input].to_string();
        let tool = self.draft.tool_of(&name, input.as_bytes(), call);
        self.draft.begin_tool(
            data["toolCallId"].as_str().unwrap_or_default(),
            at,
            agent,
            tool,
        );
    }

    fn end_tool(&mut self, data: &Value, at: Option<i64>) {
        let success = data["success"].as_bool();
        let exit = data["shellExecution"]["exitCode"].as_i64();
        let success = exit.map(|code| code == 0).or(success);
        let output = match self.draft.is_full() {
            true => data["result"]
                .get("content")
                .unwrap_or(&data["result"])
                .clone(),
            false => Value::Null,
        };
        let error = data["error"]["message"]
            .as_str()
            .map(|error| self.draft.keep(error));
        let end = ToolEnd {
            at,
            output,
            success,
            error,
            duration_ms: None,
        };
        self.draft
            .end_tool(data["toolCallId"].as_str().unwrap_or_default(), end);
    }

    /// Answers without any usage record: the sums of the shutdown are all there is.
    fn finish(mut self) -> Draft {
        let has_usage = self
            .draft
            .calls
            .iter()
            .any(|call| call.tokens.output.is_some());
        if has_usage || self.totals.is_empty() {
            return self.draft;
        }
        let last = self.draft.items.iter().filter_map(|item| item.at).max();
        self.draft.forget_calls();
        for (model, usage) in std::mem::take(&mut self.totals) {
            let id = identity(&[b"copilot total", self.draft.id.as_bytes(), model.as_bytes()]);
            let place = self.draft.new_call(CallMarks::of(id), 0);
            let mut types = Types::default();
            let tokens = self.tokens(&usage, &mut types);
            self.draft.take_usage(place, &model, tokens);
            if let Some(call) = self.draft.calls.get_mut(place as usize) {
                call.first = last;
            }
        }
        self.draft
    }
}
