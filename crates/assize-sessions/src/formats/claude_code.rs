//! Claude Code: `projects/<directory>/<session>.jsonl`, sub-agents in `<session>/subagents/agent-*.jsonl`, older ones in the same file as
//! side chains. An answer is spread over several lines that repeat its usage as it grows; resumed and forked sessions copy lines of others.

use super::{Head, LogFormat, Machine, has_ending};
use crate::draft::{
    AgentPlace, CallMarks, CallPlace, Claim, Detail, Draft, Identity, ToolEnd, Usage, What,
    identity,
};
use crate::json::{Json, Kind, Malformed, Text};
use crate::log::{Entry, LogFile, ReadError};
use crate::moment::moment;
use assize_contracts::TokenBreakdown;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct ClaudeCode;

const AGENT: &str = "claude-code";

/// The model of messages that the agent wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// Fewer output tokens than this, and no reason to stop: the final count was never written.
const FEW_TOKENS: u64 = 5;

impl LogFormat for ClaudeCode {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        let config = machine.directory("XDG_CONFIG_HOME", ".config");
        let mut roots: Vec<PathBuf> = match machine.variable("CLAUDE_CONFIG_DIR") {
            // Several directories may be given, as other readers of these logs allow.
            Some(value) if !value.is_empty() => value.split(',').map(PathBuf::from).collect(),
            _ => vec![machine.home.join(".claude"), config.join("claude")],
        };
        for root in &mut roots {
            if !root.ends_with("projects") {
                root.push("projects");
            }
        }
        roots
    }

    fn is_log_name(&self, path: &Path) -> bool {
        has_ending(path, "jsonl")
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        let is_talk = |line: &[u8]| {
            let mut read = Line::default();
            let is_whole = read.parse(&mut Json::new(line)).is_ok();
            let is_known = matches!(
                read.kind,
                LineKind::User | LineKind::Assistant | LineKind::System
            );
            is_whole
                && is_known
                && read.session.is_some()
                && (read.uuid.is_some() || read.message.id.is_some())
                && !read.has_foreign_parts
                && !read.message.has_parts
        };
        let is_queue = |line: &[u8]| {
            let mut read = Line::default();
            let is_whole = read.parse(&mut Json::new(line)).is_ok();
            is_whole
                && read.session.is_some()
                && matches!(read.kind, LineKind::Queue | LineKind::Summary)
        };
        let mut lines = head.lines().take(200).peekable();
        let begins_queue = lines.peek().is_some_and(|line| is_queue(line));
        begins_queue || lines.any(is_talk)
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut reader = Reader::new(detail);
        log.each_line(|entry| reader.take(entry))?;
        reader.note_subagent_file(log.path());
        Ok(vec![reader.finish(log.path())])
    }

    /// The description of a sub-agent beside its log.
    fn attachments(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        match name.starts_with(b"agent-") {
            true => vec![description_of(path)],
            false => Vec::new(),
        }
    }

    fn companions(&self, path: &Path) -> Vec<PathBuf> {
        let directory = path.with_extension("").join("subagents");
        let Ok(entries) = std::fs::read_dir(directory) else {
            return Vec::new();
        };
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| self.is_log_name(path));
        found.sort();
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LineKind {
    User,
    Assistant,
    System,
    Summary,
    Queue,
    CostState,
    #[default]
    Other,
}

/// A line, as far as it is used. Nothing is copied out of it.
#[derive(Default)]
struct Line<'a> {
    kind: LineKind,
    subtype: Option<Text<'a>>,
    uuid: Option<Text<'a>>,
    session: Option<Text<'a>>,
    request: Option<Text<'a>>,
    version: Option<Text<'a>>,
    cwd: Option<Text<'a>>,
    branch: Option<Text<'a>>,
    agent: Option<Text<'a>>,
    /// The sub-agent that a tool result names.
    started_agent: Option<Text<'a>>,
    at: Option<i64>,
    is_sidechain: bool,
    is_meta: bool,
    is_compact_summary: bool,
    is_api_error: bool,
    content_text: Option<Text<'a>>,
    message: Message<'a>,
    /// Sums by model, in a line about costs.
    claims: Vec<(Text<'a>, TokenBreakdown)>,
    /// The message is no object, which some other kinds of lines may have.
    has_odd_message: bool,
    /// The line has the fields of another agent's logs, which imitate these.
    has_foreign_parts: bool,
}

#[derive(Default)]
struct Message<'a> {
    id: Option<Text<'a>>,
    model: Option<Text<'a>>,
    stop_reason: Option<Text<'a>>,
    text: Option<Text<'a>>,
    blocks: Vec<Block<'a>>,
    usage: Option<Usage>,
    service_tier: Option<Text<'a>>,
    /// Messages of Qwen Code have parts.
    has_parts: bool,
}

#[derive(Default)]
struct Block<'a> {
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    input: &'a [u8],
    content: &'a [u8],
    is_error: Option<bool>,
}

impl<'a> Line<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        if json.kind()? != Kind::Object {
            json.note_odd();
        }
        json.object(|json, key| {
            match key.raw() {
                b"type" => {
                    self.kind = match json.text()?.map(|text| text.raw()) {
                        Some(b"user") => LineKind::User,
                        Some(b"assistant") => LineKind::Assistant,
                        Some(b"system") => LineKind::System,
                        Some(b"summary") => LineKind::Summary,
                        Some(b"queue-operation") => LineKind::Queue,
                        Some(b"cost-state") => LineKind::CostState,
                        _ => LineKind::Other,
                    }
                }
                b"subtype" => self.subtype = json.text()?,
                b"uuid" => self.uuid = json.text()?,
                b"sessionId" => self.session = json.text()?,
                b"requestId" => self.request = json.text()?,
                b"version" => self.version = json.text()?,
                b"cwd" => self.cwd = json.text()?,
                b"gitBranch" => self.branch = json.text()?,
                b"agentId" => self.agent = json.text()?,
                b"timestamp" => self.at = moment(json)?,
                b"isSidechain" => self.is_sidechain = json.flag()?.unwrap_or(false),
                b"isMeta" => self.is_meta = json.flag()?.unwrap_or(false),
                b"isCompactSummary" => self.is_compact_summary = json.flag()?.unwrap_or(false),
                b"isApiErrorMessage" => self.is_api_error = json.flag()?.unwrap_or(false),
                b"message" => match json.kind()? {
                    Kind::Object => self.message.parse(json)?,
                    kind => {
                        self.has_odd_message = kind != Kind::Null;
                        json.skip()?;
                    }
                },
                b"toolUseResult" if json.kind()? == Kind::Object => {
                    json.object(|json, key| {
                        match key.is("agentId") {
                            true => self.started_agent = json.text()?,
                            false => json.skip()?,
                        }
                        Ok(())
                    })?;
                }
                b"content" if json.kind()? == Kind::Text => self.content_text = json.text()?,
                b"modelUsage" if json.kind()? == Kind::Object => self.parse_claims(json)?,
                b"usageMetadata" | b"systemPayload" | b"toolCallResult" => {
                    self.has_foreign_parts = true;
                    json.skip()?;
                }
                _ => json.skip()?,
            }
            Ok(())
        })
    }
}

impl<'a> Line<'a> {
    fn parse_claims(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, model| {
            let mut tokens = TokenBreakdown::default();
            json.object(|json, key| {
                match key.raw() {
                    b"inputTokens" => tokens.input = json.count()?,
                    b"outputTokens" => tokens.output = json.count()?,
                    b"cacheReadInputTokens" => tokens.cache_read = json.count()?,
                    b"cacheCreationInputTokens" => tokens.cache_write = json.count()?,
                    _ => json.skip()?,
                }
                Ok(())
            })?;
            self.claims.push((model, tokens));
            Ok(())
        })
    }
}

impl<'a> Message<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.raw() {
                b"id" => self.id = json.text()?,
                b"model" => self.model = json.text()?,
                b"stop_reason" => self.stop_reason = json.text()?,
                b"content" => match json.kind()? {
                    Kind::Text => self.text = json.text()?,
                    _ => json.array(|json| {
                        if json.kind()? == Kind::Text {
                            self.text = json.text()?;
                            return Ok(());
                        }
                        let mut block = Block::default();
                        block.parse(json)?;
                        self.blocks.push(block);
                        Ok(())
                    })?,
                },
                b"usage" => {
                    let kind = json.kind()?;
                    let usage = self.parse_usage(json)?;
                    self.usage = (kind == Kind::Object).then_some(usage);
                }
                b"parts" => {
                    self.has_parts = true;
                    json.skip()?;
                }
                _ => json.skip()?,
            }
            Ok(())
        })
    }

    fn parse_usage(&mut self, json: &mut Json<'a>) -> Result<Usage, Malformed> {
        let mut tokens = TokenBreakdown::default();
        let (mut hour, mut minutes) = (None, None);
        json.object(|json, key| {
            match key.raw() {
                b"input_tokens" => tokens.input = json.count()?,
                b"output_tokens" => tokens.output = json.count()?,
                b"cache_read_input_tokens" => tokens.cache_read = json.count()?,
                b"cache_creation_input_tokens" => tokens.cache_write = json.count()?,
                b"cache_creation" => json.object(|json, key| {
                    match key.raw() {
                        b"ephemeral_1h_input_tokens" => hour = json.count()?,
                        b"ephemeral_5m_input_tokens" => minutes = json.count()?,
                        _ => json.skip()?,
                    }
                    Ok(())
                })?,
                b"service_tier" => self.service_tier = json.text()?,
                _ => json.skip()?,
            }
            Ok(())
        })?;
        if let (None, Some(hour), Some(minutes)) = (tokens.cache_write, hour, minutes) {
            tokens.cache_write = Some(hour.saturating_add(minutes));
        }
        Ok(Usage {
            tokens: tokens.with_totals(),
            cache_write_1h: hour.filter(|count| *count > 0),
        })
    }
}

impl<'a> Block<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.raw() {
                b"type" => self.kind = json.text()?,
                b"text" | b"thinking" => self.text = json.text()?,
                b"id" | b"tool_use_id" => self.id = json.text()?,
                b"name" => self.name = json.text()?,
                b"input" => self.input = json.raw()?,
                b"content" => self.content = json.raw()?,
                b"is_error" => self.is_error = json.flag()?,
                _ => json.skip()?,
            }
            Ok(())
        })
    }
}

struct Reader {
    draft: Draft,
    /// The session ids of the file's lines: the last one, and the first.
    last_session: String,
    first_session: String,
    has_main: bool,
    /// The latest time of any line: lines about costs have none.
    latest: Option<i64>,
    seen: foldhash::HashSet<Identity>,
}

impl Reader {
    fn new(detail: Detail) -> Self {
        Self {
            draft: Draft::new(AGENT, detail),
            last_session: String::new(),
            first_session: String::new(),
            has_main: false,
            latest: None,
            seen: foldhash::HashSet::default(),
        }
    }

    fn take(&mut self, entry: Entry<'_>) {
        let Some((line, mut json)) = self.draft.flaws.take(entry) else {
            return;
        };
        let mut read = Line::default();
        let parsed = read.parse(&mut json).and_then(|()| json.end());
        if read.has_odd_message && matches!(read.kind, LineKind::User | LineKind::Assistant) {
            json.note_odd();
        }
        if self.draft.flaws.note(parsed, &json, &line) {
            self.use_line(&read);
        }
    }

    fn use_line(&mut self, line: &Line<'_>) {
        let is_talk = matches!(
            line.kind,
            LineKind::User | LineKind::Assistant | LineKind::System
        );
        self.note_session(line);
        self.latest = line.at.max(self.latest);
        if line.kind == LineKind::CostState {
            self.take_claims(line);
        }
        if !is_talk {
            return;
        }
        let uuid = line.uuid.map_or(0, |uuid| identity(&[b"line", uuid.raw()]));
        if uuid != 0 && !self.seen.insert(uuid) {
            return;
        }
        self.note_origin(line);
        let agent = self.agent_of(line);
        match line.kind {
            LineKind::Assistant => self.take_answer(line, agent, uuid),
            LineKind::User => self.take_user(line, agent, uuid),
            _ => self.take_system(line, agent, uuid),
        }
    }

    /// Newer versions keep the sums of the session, which also hold what no line shows: the summary of a compaction.
    fn take_claims(&mut self, line: &Line<'_>) {
        let Some(at) = self.latest else { return };
        for (model, tokens) in &line.claims {
            let model = self.draft.names.of(&model.plain());
            self.draft.claims.push(Claim {
                at,
                model,
                tokens: *tokens,
            });
        }
    }

    fn note_session(&mut self, line: &Line<'_>) {
        let Some(session) = line.session else { return };
        if self.last_session.as_bytes() != session.raw() {
            self.last_session = session.plain().into_owned();
            if self.first_session.is_empty() {
                self.first_session = self.last_session.clone();
            }
        }
    }

    fn note_origin(&mut self, line: &Line<'_>) {
        let origin = &mut self.draft.origin;
        keep_first(&mut origin.cwd, line.cwd);
        keep_first(&mut origin.git_branch, line.branch);
        if let Some(version) = line.version
            && origin.agent_version.as_deref().map(str::as_bytes) != Some(version.raw())
        {
            origin.agent_version = Some(version.plain().into_owned());
        }
    }

    fn agent_of(&mut self, line: &Line<'_>) -> AgentPlace {
        match (line.agent, line.is_sidechain) {
            (Some(agent), true) => self.draft.agent(&agent.plain()),
            // Older logs do not name their sub-agents.
            (None, true) => self.draft.agent("sidechain"),
            (_, false) => {
                self.has_main = true;
                0
            }
        }
    }

    fn take_answer(&mut self, line: &Line<'_>, agent: AgentPlace, uuid: Identity) {
        let message = &line.message;
        let model = message.model.map(|model| model.plain()).unwrap_or_default();
        if model == SYNTHETIC {
            self.take_own_words(line, agent, uuid);
            return;
        }
        let place = self.call_of(line, agent, uuid);
        match message.usage {
            Some(usage) => self.draft.take_usage(place, &model, usage),
            None => self.draft.name_model(place, &model),
        }
        let is_full = self.draft.is_full();
        if let Some(call) = self.draft.calls.get_mut(place as usize) {
            call.first = call.first.or(line.at);
            call.last = line.at.or(call.last);
            call.api = Some("anthropic-messages");
            if let Some(reason) = message.stop_reason {
                call.stop_reason = Some(reason.plain().into_owned());
            }
            if let Some(tier) = message.service_tier.filter(|tier| !tier.is("standard")) {
                call.service_tier = Some(tier.plain().into_owned());
            }
            if is_full && call.id.is_none() {
                call.id = message.id.map(|id| id.plain().into_owned());
            }
        }
        for (number, block) in message.blocks.iter().enumerate() {
            self.take_block(block, line, agent, place, block_identity(uuid, number));
        }
        if let Some(text) = message.text {
            let text = self.draft.keep_text(Some(text));
            self.draft
                .push_known(uuid, line.at, agent, What::Text(text, Some(place)));
        }
    }

    /// A message that the agent wrote without a model: mostly an error of the API.
    fn take_own_words(&mut self, line: &Line<'_>, agent: AgentPlace, uuid: Identity) {
        if !line.is_api_error {
            return;
        }
        let texts = line.message.blocks.iter().filter_map(|block| block.text);
        let message: Vec<String> = texts.map(|text| text.plain().into_owned()).collect();
        let what = What::Error {
            message: self.draft.keep(&message.join("\n")),
            is_recoverable: false,
        };
        self.draft.push_known(uuid, line.at, agent, what);
    }

    fn call_of(&mut self, line: &Line<'_>, agent: AgentPlace, uuid: Identity) -> CallPlace {
        let Some(id) = line.message.id else {
            // Nothing but the line itself distinguishes such an answer from others.
            let marks = CallMarks {
                request: uuid,
                message: 0,
                output: -1,
                may_repeat: line.is_sidechain,
            };
            return self.draft.call(marks, agent);
        };
        let request = line.request.map_or(&b""[..], |request| request.raw());
        let marks = CallMarks {
            request: identity(&[b"call", id.raw(), request]),
            message: identity(&[b"message", id.raw()]),
            output: -1,
            may_repeat: line.is_sidechain,
        };
        self.draft.call(marks, agent)
    }

    fn take_block(
        &mut self,
        block: &Block<'_>,
        line: &Line<'_>,
        agent: AgentPlace,
        place: CallPlace,
        identity: Identity,
    ) {
        let Some(kind) = block.kind else { return };
        match kind.raw() {
            b"text" => {
                let text = self.draft.keep_text(block.text);
                self.draft
                    .push_known(identity, line.at, agent, What::Text(text, Some(place)));
            }
            b"thinking" | b"redacted_thinking" => {
                let text = self.draft.keep_text(block.text);
                self.draft
                    .push_known(identity, line.at, agent, What::Reasoning(text, Some(place)));
            }
            b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
                self.take_tool(block, line, agent, place);
            }
            b"web_search_tool_result"
            | b"mcp_tool_result"
            | b"web_fetch_tool_result"
            | b"code_execution_tool_result" => {
                self.take_result(block, line, agent);
            }
            _ => {}
        }
    }

    fn take_tool(
        &mut self,
        block: &Block<'_>,
        line: &Line<'_>,
        agent: AgentPlace,
        place: CallPlace,
    ) {
        let name = block.name.map(|name| name.plain()).unwrap_or_default();
        let tool = self.draft.tool_of(&name, block.input, Some(place));
        let id = block.id.map(|id| id.plain()).unwrap_or_default();
        self.draft.begin_tool(&id, line.at, agent, tool);
    }

    fn take_user(&mut self, line: &Line<'_>, agent: AgentPlace, uuid: Identity) {
        let message = &line.message;
        let mut has_result = false;
        for block in &message.blocks {
            if block.kind.is_some_and(|kind| kind.is("tool_result")) {
                has_result = true;
                self.take_result(block, line, agent);
            }
        }
        if has_result || line.is_meta || line.is_compact_summary {
            return;
        }
        let texts = message.blocks.iter().filter_map(|block| block.text);
        let texts: Vec<Text<'_>> = message.text.into_iter().chain(texts).collect();
        if texts.is_empty() || is_command_output(&texts) {
            return;
        }
        let text = match self.draft.is_full() {
            true => {
                let texts: Vec<String> =
                    texts.iter().map(|text| text.plain().into_owned()).collect();
                texts.join("\n")
            }
            false => String::new(),
        };
        self.draft
            .push_known(uuid, line.at, agent, What::Prompt(text));
    }

    fn take_result(&mut self, block: &Block<'_>, line: &Line<'_>, _agent: AgentPlace) {
        let Some(id) = block.id else { return };
        let id = id.plain();
        let is_error = block.is_error.unwrap_or(false);
        let output = flat_content(self.draft.keep_value(block.content));
        let error = (is_error && self.draft.is_full()).then(|| match &output {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let end = ToolEnd {
            at: line.at,
            output,
            success: Some(!is_error),
            error,
            duration_ms: None,
        };
        self.draft.end_tool(&id, end);
        if let Some(started) = line.started_agent {
            let place = self.draft.agent(&started.plain());
            self.describe_agent(place, Some(&id), None);
        }
    }

    fn take_system(&mut self, line: &Line<'_>, agent: AgentPlace, uuid: Identity) {
        match line.subtype.map(|subtype| subtype.raw()) {
            Some(b"compact_boundary") => {
                self.draft
                    .push_known(uuid, line.at, agent, What::Compaction);
            }
            Some(b"api_error") => {
                let message = match line.content_text {
                    Some(text) => self.draft.keep_text(Some(text)),
                    None => self
                        .draft
                        .keep("the API returned an error; the agent tried again"),
                };
                let what = What::Error {
                    message,
                    is_recoverable: true,
                };
                self.draft.push_known(uuid, line.at, agent, what);
            }
            _ => {}
        }
    }

    /// Claude Code describes a sub-agent beside its log.
    fn note_subagent_file(&mut self, path: &Path) {
        if self.has_main || self.draft.agents.len() != 1 {
            return;
        }
        let Ok(text) = std::fs::read(description_of(path)) else {
            return;
        };
        let mut kind = None;
        let mut tool = None;
        let _ = Json::new(&text).object(|json, key| {
            match key.raw() {
                b"agentType" => kind = json.text()?,
                b"toolUseId" => tool = json.text()?,
                _ => json.skip()?,
            }
            Ok(())
        });
        let tool = tool.map(|tool| tool.plain().into_owned());
        self.describe_agent(
            1,
            tool.as_deref(),
            kind.map(|kind| kind.plain().into_owned()),
        );
    }

    fn describe_agent(&mut self, place: AgentPlace, tool: Option<&str>, kind: Option<String>) {
        let asked = tool.and_then(|tool| self.draft.tool(tool)?.subject);
        let asked = asked.map(|name| self.draft.names.text(name).to_owned());
        let Some(agent) = self.draft.agents.get_mut(place as usize - 1) else {
            return;
        };
        agent.started_by = tool.map(str::to_owned).or(agent.started_by.take());
        agent.kind = kind.or(asked).or(agent.kind.take());
    }

    /// A file is named after its session; copied lines may carry the id of another.
    fn finish(mut self, path: &Path) -> Draft {
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        self.draft.id = match stem {
            Some(stem) if self.first_session == stem || self.last_session == stem => stem,
            Some(stem) if self.last_session.is_empty() => stem,
            _ => self.last_session,
        };
        if self.first_session != self.draft.id && !self.first_session.is_empty() {
            self.draft.origin.continued_from = Some(self.first_session);
        }
        let doubtful = self.draft.calls.iter().filter(|call| {
            let output = call.tokens.output;
            call.stop_reason.is_none() && output.is_some_and(|count| count < FEW_TOKENS)
        });
        self.draft.flaws.doubtful_calls = doubtful.count() as u64;
        self.draft
    }
}

fn description_of(log: &Path) -> PathBuf {
    log.with_extension("meta.json")
}

fn keep_first(place: &mut Option<String>, text: Option<Text<'_>>) {
    if place.is_none() {
        *place = text
            .filter(|text| !text.is_empty())
            .map(|text| text.plain().into_owned());
    }
}

fn block_identity(uuid: Identity, number: usize) -> Identity {
    match uuid {
        0 => 0,
        uuid => identity(&[
            b"block",
            &uuid.to_le_bytes(),
            &(number as u64).to_le_bytes(),
        ]),
    }
}

/// The output of a local command is kept as a message of the user.
fn is_command_output(texts: &[Text<'_>]) -> bool {
    texts.iter().all(|text| {
        let raw = text.raw();
        raw.starts_with(b"<local-command-") || raw.starts_with(b"<bash-stdout>")
    })
}

/// A list of texts is shown as one text.
fn flat_content(content: Value) -> Value {
    let Value::Array(parts) = &content else {
        return content;
    };
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => Value::String(texts.join("\n")),
        None => content,
    }
}
