//! Codex: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, also compressed, also in `archived_sessions`. Usage is
//! cumulative and repeated;
//! files of child threads begin with a replay of their parent's.

use super::document::Inclusive;
use super::{Head, LogFormat, Machine};
use crate::draft::{CallMarks, CallPlace, Detail, Draft, Identity, ToolEnd, Usage, What, identity};
use crate::json::{Json, Kind, Malformed, Text};
use crate::log::{Entry, LogFile, ReadError};
use crate::moment::moment;
use crate::session::Flaws;
use assize_contracts::TokenBreakdown;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) struct Codex;

const AGENT: &str = "codex";

/// Rows of a child that are stamped until so long after its creation are its parent's, where the log does not say where they end.
const REPLAY_MS: i64 = 1000;

impl LogFormat for Codex {
    fn agent(&self) -> &'static str {
        AGENT
    }

    fn places(&self, machine: &Machine) -> Vec<PathBuf> {
        let home = machine.directory("CODEX_HOME", ".codex");
        vec![home.join("sessions"), home.join("archived_sessions")]
    }

    fn is_log_name(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
    }

    fn recognizes(&self, head: &Head<'_>) -> bool {
        head.has_line_with(&["timestamp", "type", "payload"])
    }

    fn read(&self, log: &LogFile, detail: Detail) -> Result<Vec<Draft>, ReadError> {
        let mut reader = Reader::new(detail, log.path());
        log.each_line(|entry| reader.take(entry))?;
        Ok(vec![reader.finish()])
    }
}

/// The thread that a file is named after: `rollout-2026-11-02T09-00-00-<thread>.jsonl`. Names of other forms are taken whole.
fn thread_of_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split(".jsonl").next().unwrap_or_default();
    let tail = stem.len().checked_sub(UUID_LENGTH);
    let thread = tail.and_then(|from| stem.get(from..)).filter(|thread| {
        thread
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    });
    thread.unwrap_or(stem).to_owned()
}

const UUID_LENGTH: usize = 36;

/// Counts as Codex keeps them: input includes what came from the cache, output includes reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
}

impl Counts {
    fn parse(json: &mut Json<'_>) -> Result<Option<Self>, Malformed> {
        let kind = json.kind()?;
        let mut counts = Self::default();
        json.object(|json, key| {
            match key.raw() {
                b"input_tokens" => counts.input = json.count()?,
                b"cached_input_tokens" => counts.cached = json.count()?,
                b"cache_write_input_tokens" => counts.written = json.count()?,
                b"output_tokens" => counts.output = json.count()?,
                b"reasoning_output_tokens" => counts.reasoning = json.count()?,
                b"total_tokens" => counts.total = json.count()?,
                _ => json.skip()?,
            }
            Ok(())
        })?;
        Ok((kind == Kind::Object).then_some(counts))
    }

    fn all(&self) -> [Option<u64>; 6] {
        let Self {
            input,
            cached,
            written,
            output,
            reasoning,
            total,
        } = *self;
        [input, cached, written, output, reasoning, total]
    }

    fn of(all: [Option<u64>; 6]) -> Self {
        let [input, cached, written, output, reasoning, total] = all;
        Self {
            input,
            cached,
            written,
            output,
            reasoning,
            total,
        }
    }

    /// The context was full: a row that only says how large it is.
    fn is_context_full(&self) -> bool {
        let [input, cached, written, output, reasoning, total] = self.all();
        let parts = [input, cached, written, output, reasoning];
        parts.iter().all(|part| part.unwrap_or(0) == 0) && total.unwrap_or(0) > 0
    }

    /// The growth since an earlier total. Absent where one count went back.
    fn since(&self, earlier: &Self) -> Option<Self> {
        let mut growth = [None; 6];
        for ((growth, now), before) in growth.iter_mut().zip(self.all()).zip(earlier.all()) {
            *growth = match now {
                Some(now) => Some(now.checked_sub(before.unwrap_or(0))?),
                None => None,
            };
        }
        Some(Self::of(growth))
    }

    fn tokens(&self, flaws: &mut Flaws) -> TokenBreakdown {
        let counts = Inclusive {
            prompt: self.input,
            completion: self.output,
            cache_read: self.cached,
            cache_write: self.written,
            reasoning: self.reasoning,
        };
        counts.tokens(flaws)
    }
}

#[derive(Default)]
struct Row<'a> {
    at: Option<i64>,
    ordinal: Option<u64>,
    kind: Option<Text<'a>>,
    payload: Payload<'a>,
}

/// The fields of every kind of payload together; names do not clash.
#[derive(Default)]
struct Payload<'a> {
    kind: Option<Text<'a>>,
    id: Option<Text<'a>>,
    session: Option<Text<'a>>,
    parent: Option<Text<'a>>,
    forked_from: Option<Text<'a>>,
    history_start: Option<u64>,
    created: Option<i64>,
    cwd: Option<Text<'a>>,
    version: Option<Text<'a>>,
    model: Option<Text<'a>>,
    commit: Option<Text<'a>>,
    branch: Option<Text<'a>>,
    nickname: Option<Text<'a>>,
    role: Option<Text<'a>>,
    texts: Vec<Text<'a>>,
    content_kinds: Vec<Text<'a>>,
    name: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    arguments: &'a [u8],
    call: Option<Text<'a>>,
    output: &'a [u8],
    status: Option<Text<'a>>,
    thread: Option<Text<'a>>,
    response: Option<Text<'a>>,
    usage: Option<Counts>,
    total: Option<Counts>,
    last: Option<Counts>,
    has_info: bool,
    message: Option<Text<'a>>,
    reason: Option<Text<'a>>,
    ttft_ms: Option<f64>,
    item: Finished<'a>,
}

/// A finished item, as newer versions keep it beside the output of a tool.
#[derive(Default)]
struct Finished<'a> {
    id: Option<Text<'a>>,
    status: Option<Text<'a>>,
    exit_code: Option<f64>,
    duration_ms: Option<f64>,
}

impl<'a> Row<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        if json.kind()? != Kind::Object {
            json.note_odd();
        }
        json.object(|json, key| {
            match key.raw() {
                b"timestamp" => self.at = moment(json)?,
                b"ordinal" => self.ordinal = json.count()?,
                b"type" => self.kind = json.text()?,
                b"payload" => self.payload.parse(json)?,
                _ => json.skip()?,
            }
            Ok(())
        })
    }
}

impl<'a> Payload<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.raw() {
                b"type" => self.kind = json.text()?,
                b"id" => self.id = json.text()?,
                b"session_id" => self.session = json.text()?,
                b"parent_thread_id" => self.parent = json.text()?,
                b"forked_from_id" => self.forked_from = json.text()?,
                b"subagent_history_start_ordinal" => self.history_start = json.count()?,
                b"timestamp" => self.created = moment(json)?,
                b"cwd" => self.cwd = json.text()?,
                b"cli_version" => self.version = json.text()?,
                b"model" => self.model = json.text()?,
                b"agent_nickname" => self.nickname = json.text()?,
                b"git" if json.kind()? == Kind::Object => self.parse_git(json)?,
                b"source" if json.kind()? == Kind::Object => self.parse_source(json)?,
                b"role" => self.role = json.text()?,
                b"content" | b"summary" => self.parse_texts(json)?,
                b"name" => self.name = json.text()?,
                b"namespace" => self.namespace = json.text()?,
                b"arguments" | b"input" | b"action" => self.arguments = json.raw()?,
                b"call_id" => self.call = json.text()?,
                b"output" => self.output = json.raw()?,
                b"status" if json.kind()? == Kind::Text => self.status = json.text()?,
                b"thread_id" => self.thread = json.text()?,
                b"response_id" => self.response = json.text()?,
                b"usage" => self.usage = Counts::parse(json)?,
                b"info" => self.parse_info(json)?,
                b"message" if json.kind()? == Kind::Text => self.message = json.text()?,
                b"reason" if json.kind()? == Kind::Text => self.reason = json.text()?,
                b"time_to_first_token_ms" => self.ttft_ms = json.float()?,
                b"item" if json.kind()? == Kind::Object => self.item.parse(json)?,
                b"internal_chat_message_metadata_passthrough" if json.kind()? == Kind::Object => {
                    self.parse_metadata(json)?;
                }
                _ => json.skip()?,
            }
            Ok(())
        })
    }

    fn parse_git(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.raw() {
                b"commit_hash" => self.commit = json.text()?,
                b"branch" => self.branch = json.text()?,
                _ => json.skip()?,
            }
            Ok(())
        })
    }

    /// `{"subagent": {"thread_spawn": {"parent_thread_id": …}}}`
    fn parse_source(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| match key.raw() {
            b"parent_thread_id" => {
                self.parent = json.text()?.or(self.parent);
                Ok(())
            }
            b"agent_nickname" | b"agent_role" => {
                self.nickname = json.text()?.or(self.nickname);
                Ok(())
            }
            _ if json.kind()? == Kind::Object => self.parse_source(json),
            _ => json.skip(),
        })
    }

    fn parse_texts(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        match json.kind()? {
            Kind::Text => self.texts.extend(json.text()?),
            Kind::Array => json.array(|json| {
                if json.kind()? != Kind::Object {
                    return json.skip();
                }
                json.object(|json, key| {
                    match key.is("text") {
                        true => self.texts.extend(json.text()?),
                        false => json.skip()?,
                    }
                    Ok(())
                })
            })?,
            _ => json.skip()?,
        }
        Ok(())
    }

    fn parse_metadata(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.is("content_item_kinds") && json.kind()? == Kind::Array {
                true => json.array(|json| {
                    self.content_kinds.extend(json.text()?);
                    Ok(())
                })?,
                false => json.skip()?,
            }
            Ok(())
        })
    }

    fn parse_info(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        self.has_info = json.kind()? == Kind::Object;
        json.object(|json, key| {
            match key.raw() {
                b"total_token_usage" => self.total = Counts::parse(json)?,
                b"last_token_usage" => self.last = Counts::parse(json)?,
                _ => json.skip()?,
            }
            Ok(())
        })
    }
}

impl<'a> Finished<'a> {
    fn parse(&mut self, json: &mut Json<'a>) -> Result<(), Malformed> {
        json.object(|json, key| {
            match key.raw() {
                b"id" => self.id = json.text()?,
                b"status" if json.kind()? == Kind::Text => self.status = json.text()?,
                b"exit_code" => self.exit_code = json.float()?,
                b"duration" if json.kind()? == Kind::Object => {
                    let mut total = 0.0;
                    json.object(|json, key| {
                        let value = json.float()?.unwrap_or(0.0);
                        total += match key.raw() {
                            b"secs" => value * 1e3,
                            b"nanos" => value / 1e6,
                            _ => 0.0,
                        };
                        Ok(())
                    })?;
                    self.duration_ms = Some(total);
                }
                _ => json.skip()?,
            }
            Ok(())
        })
    }
}

struct Reader {
    draft: Draft,
    /// The thread that the file is named after.
    name: String,
    row: u64,
    has_meta: bool,
    replay: Replay,
    /// The total of the last row; nothing before the first.
    previous: Option<Counts>,
    /// The model wrote something in this thread.
    has_output: bool,
    /// Rows of usage that were kept call by call since the last total.
    has_records: bool,
    /// The call whose answer is being read.
    open: Option<CallPlace>,
    /// The first call of the turn, which the turn's time to the first token belongs to.
    first_of_turn: Option<CallPlace>,
    model: String,
}

/// The rows of a child that are its parent's.
#[derive(Default)]
struct Replay {
    is_child: bool,
    created: Option<i64>,
    /// The first row that is the child's own.
    starts_at: Option<u64>,
    /// Nothing says that the child got its parent's history.
    may_begin_anew: bool,
    is_over: bool,
}

impl Replay {
    fn holds(&mut self, row: &Row<'_>) -> bool {
        if !self.is_child || self.is_over {
            return false;
        }
        let is_replayed = match (self.starts_at, row.ordinal) {
            (Some(start), Some(ordinal)) => ordinal < start,
            // Versions that number their rows say where the history ends, if there is one.
            (None, Some(_)) if self.may_begin_anew => false,
            _ => match (self.created, row.at) {
                (Some(created), Some(at)) => at <= created.saturating_add(REPLAY_MS),
                _ => false,
            },
        };
        self.is_over = !is_replayed;
        is_replayed
    }
}

impl Reader {
    fn new(detail: Detail, path: &Path) -> Self {
        let mut draft = Draft::new(AGENT, detail);
        // Its first row may be damaged.
        draft.id = thread_of_name(path);
        Self {
            name: draft.id.clone(),
            draft,
            row: 0,
            has_meta: false,
            replay: Replay::default(),
            previous: None,
            has_output: false,
            has_records: false,
            open: None,
            first_of_turn: None,
            model: String::new(),
        }
    }

    fn take(&mut self, entry: Entry<'_>) {
        let Some((line, mut json)) = self.draft.flaws.take(entry) else {
            return;
        };
        let mut row = Row::default();
        let parsed = row.parse(&mut json).and_then(|()| json.end());
        self.row += 1;
        if self.draft.flaws.note(parsed, &json, &line) {
            self.use_row(&row);
        }
    }

    fn use_row(&mut self, row: &Row<'_>) {
        let Some(kind) = row.kind else { return };
        if kind.is("session_meta") {
            self.take_meta(row);
            return;
        }
        let is_replayed = self.replay.holds(row);
        match kind.raw() {
            b"turn_context" => self.take_context(&row.payload),
            b"response_item" if !is_replayed => self.take_item(row),
            b"token_usage_record" if !is_replayed => self.take_record(row),
            b"event_msg" => self.take_event(row, is_replayed),
            b"compacted" if !is_replayed => self.push(row.at, What::Compaction),
            _ => {}
        }
    }

    /// The first is the thread's own; a child repeats its parent's.
    fn take_meta(&mut self, row: &Row<'_>) {
        if std::mem::replace(&mut self.has_meta, true) {
            self.replay.may_begin_anew = false;
            return;
        }
        let meta = &row.payload;
        let text = |text: Option<Text<'_>>| text.map(|text| text.plain().into_owned());
        let id = text(meta.id).filter(|id| !id.is_empty());
        if self.row > 1 && self.name.len() == UUID_LENGTH && id.as_ref() != Some(&self.name) {
            // The thread's own row is damaged, and this is its parent's.
            self.replay = Replay {
                is_child: true,
                created: row.at,
                ..Replay::default()
            };
            return;
        }
        self.draft.id = id.unwrap_or_else(|| self.name.clone());
        let origin = &mut self.draft.origin;
        origin.agent_version = text(meta.version);
        origin.cwd = text(meta.cwd);
        origin.git_commit = text(meta.commit);
        origin.git_branch = text(meta.branch);
        origin.continued_from = text(meta.forked_from);
        let root = text(meta.session).filter(|root| *root != self.draft.id);
        self.draft.parent = text(meta.parent).or(root.filter(|_| meta.forked_from.is_none()));
        self.replay = Replay {
            is_child: self.draft.parent.is_some() || meta.forked_from.is_some(),
            created: meta.created.or(row.at),
            starts_at: meta.history_start,
            // A fork whose rows are numbered on from its origin's does not repeat them.
            may_begin_anew: meta.forked_from.is_none() || row.ordinal.is_some_and(|at| at > 0),
            is_over: false,
        };
        if let Some(nickname) = text(meta.nickname) {
            self.draft.name_child(&nickname);
        }
    }

    fn take_context(&mut self, context: &Payload<'_>) {
        if let Some(model) = context.model {
            self.model = model.plain().into_owned();
        }
        if self.draft.origin.cwd.is_none() {
            self.draft.origin.cwd = context.cwd.map(|cwd| cwd.plain().into_owned());
        }
    }

    fn push(&mut self, at: Option<i64>, what: What) {
        let identity = self.row_identity();
        self.draft.push_known(identity, at, 0, what);
    }

    /// The same row in a copy of the file.
    fn row_identity(&self) -> Identity {
        identity(&[b"codex", self.draft.id.as_bytes(), &self.row.to_le_bytes()])
    }

    fn take_item(&mut self, row: &Row<'_>) {
        let item = &row.payload;
        match item.kind.map(|kind| kind.raw()) {
            Some(b"message") => self.take_message(row),
            Some(b"reasoning") => {
                let call = self.open_call(row.at);
                let text = self.joined(&item.texts);
                self.push(row.at, What::Reasoning(text, Some(call)));
            }
            Some(
                b"function_call" | b"custom_tool_call" | b"local_shell_call" | b"web_search_call"
                | b"tool_search_call",
            ) => {
                self.take_tool(row);
            }
            Some(b"function_call_output" | b"custom_tool_call_output" | b"tool_search_output") => {
                self.take_output(row);
            }
            _ => {}
        }
    }

    fn take_message(&mut self, row: &Row<'_>) {
        let message = &row.payload;
        match message.role.map(|role| role.raw()) {
            Some(b"assistant") => {
                let call = self.open_call(row.at);
                let text = self.joined(&message.texts);
                self.push(row.at, What::Text(text, Some(call)));
            }
            Some(b"user") if is_of_user(message) => {
                let text = self.joined(&message.texts);
                self.push(row.at, What::Prompt(text));
            }
            _ => {}
        }
    }

    fn joined(&self, texts: &[Text<'_>]) -> String {
        if !self.draft.is_full() {
            return String::new();
        }
        let texts: Vec<String> = texts.iter().map(|text| text.plain().into_owned()).collect();
        texts.join("\n")
    }

    fn take_tool(&mut self, row: &Row<'_>) {
        let item = &row.payload;
        let call = self.open_call(row.at);
        let kind = item.kind.map(|kind| kind.plain()).unwrap_or_default();
        let name = match item.name {
            Some(name) => name.plain().into_owned(),
            None => kind.trim_end_matches("_call").to_owned(),
        };
        let name = match item
            .namespace
            .filter(|namespace| namespace.raw().starts_with(b"mcp__"))
        {
            Some(namespace) if !name.starts_with("mcp__") => {
                format!("{}__{name}", namespace.plain().trim_end_matches("__"))
            }
            _ => name,
        };
        let input = inner_json(item.arguments);
        let id = item.call.or(item.id).map(|id| id.plain().into_owned());
        let mut tool = self.draft.tool_of(&name, &input, Some(call));
        if kind == "web_search_call" {
            // The service searches; there is no output of its own.
            tool.has_result = true;
            tool.success = item.status.map(|status| status.is("completed"));
        }
        self.draft
            .begin_tool(&id.unwrap_or_default(), row.at, 0, tool);
    }

    fn take_output(&mut self, row: &Row<'_>) {
        let item = &row.payload;
        let Some(id) = item.call else { return };
        let output = inner_json(item.output);
        let exit = exit_code(&output);
        let success = exit.map(|code| code == 0);
        let output = shown_output(&output, self.draft.is_full());
        let error = match (success, &output) {
            (Some(false), Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let end = ToolEnd {
            at: row.at,
            output,
            success,
            error,
            duration_ms: None,
        };
        self.draft.end_tool(&id.plain(), end);
    }

    /// The call that an answer belongs to, which lasts until its usage is reported.
    fn open_call(&mut self, at: Option<i64>) -> CallPlace {
        self.has_output = true;
        let place = match self.open {
            Some(place) => place,
            None => {
                let request = identity(&[
                    b"codex call",
                    self.draft.id.as_bytes(),
                    &self.row.to_le_bytes(),
                ]);
                let place = self.draft.call(CallMarks::of(request), 0);
                let model = self.draft.names.of(&self.model);
                if let Some(call) = self.draft.calls.get_mut(place as usize) {
                    call.model = model;
                    call.api = Some("openai-responses");
                }
                self.open = Some(place);
                place
            }
        };
        self.first_of_turn.get_or_insert(place);
        if let Some(call) = self.draft.calls.get_mut(place as usize) {
            call.first = call.first.or(at);
            call.last = at.or(call.last);
        }
        place
    }

    fn close_call(&mut self, at: Option<i64>, counts: &Counts) -> CallPlace {
        let place = self.open_call(at);
        let usage = Usage::of(counts.tokens(&mut self.draft.flaws));
        let model = self.model.clone();
        self.draft.take_usage(place, &model, usage);
        self.open = None;
        place
    }

    /// Newer versions keep the usage of every answer, with its id and its thread.
    fn take_record(&mut self, row: &Row<'_>) {
        let record = &row.payload;
        let is_own = record.thread.is_none_or(|thread| thread.is(&self.draft.id));
        let Some(counts) = record.usage.filter(|_| is_own) else {
            return;
        };
        self.has_records = true;
        let place = self.close_call(row.at, &counts);
        let is_full = self.draft.is_full();
        if let (Some(call), Some(response)) =
            (self.draft.calls.get_mut(place as usize), record.response)
        {
            if is_full {
                call.id = Some(response.plain().into_owned());
            }
            call.marks.request = identity(&[b"codex response", response.raw()]);
        }
    }

    fn take_event(&mut self, row: &Row<'_>, is_replayed: bool) {
        let event = &row.payload;
        match event.kind.map(|kind| kind.raw()) {
            Some(b"token_count") => self.take_total(row, is_replayed),
            _ if is_replayed => {}
            Some(b"task_started" | b"turn_started") => self.first_of_turn = None,
            Some(b"task_complete" | b"turn_complete" | b"turn_completed") => self.end_turn(event),
            Some(b"turn_aborted") => {
                self.end_turn(event);
                let reason = event
                    .reason
                    .map(|reason| reason.plain())
                    .unwrap_or_default();
                let message = self.draft.keep(&format!("the turn was aborted: {reason}"));
                self.push(
                    row.at,
                    What::Error {
                        message,
                        is_recoverable: true,
                    },
                );
            }
            Some(b"error" | b"stream_error") => {
                let is_recoverable = event.kind.is_some_and(|kind| kind.is("stream_error"));
                let message = self.draft.keep_text(event.message);
                self.push(
                    row.at,
                    What::Error {
                        message,
                        is_recoverable,
                    },
                );
            }
            Some(b"item_completed") => self.take_finished(&event.item),
            _ => {}
        }
    }

    fn end_turn(&mut self, event: &Payload<'_>) {
        // An answer without usage stays a call with unknown tokens.
        self.open = None;
        let first = self.first_of_turn.take();
        if let Some(call) = first.and_then(|place| self.draft.calls.get_mut(place as usize)) {
            call.ttft_ms = event.ttft_ms.or(call.ttft_ms);
        }
    }

    /// The outcome of a command, which its output may not show.
    fn take_finished(&mut self, item: &Finished<'_>) {
        let Some(id) = item.id else { return };
        let (exit, duration) = (item.exit_code, item.duration_ms);
        let is_failed = item
            .status
            .is_some_and(|status| status.is("failed") || status.is("declined"));
        let Some(tool) = self.draft.tool(&id.plain()) else {
            return;
        };
        tool.duration_ms = duration.or(tool.duration_ms);
        if let Some(code) = exit {
            tool.success = Some(code == 0.0);
        } else if is_failed {
            tool.success = Some(false);
        }
    }

    /// Totals are cumulative, and repeated when a limit is refreshed.
    fn take_total(&mut self, row: &Row<'_>, is_replayed: bool) {
        let event = &row.payload;
        if !event.has_info {
            return;
        }
        let has_records = std::mem::take(&mut self.has_records);
        let Some(total) = event.total else {
            self.count(row.at, event.last, has_records);
            return;
        };
        let is_base = self.replay.is_child && !self.has_output && self.previous.is_none();
        let is_inherited = is_replayed || is_base;
        let previous = self.previous.replace(total);
        if is_inherited || total.is_context_full() || previous == Some(total) {
            return;
        }
        let usage = match previous {
            Some(previous) => total.since(&previous).or(event.last),
            // A child's total may hold its parent's.
            None if self.replay.is_child => event.last.or(Some(total)),
            None => Some(total),
        };
        self.count(row.at, usage, has_records);
    }

    fn count(&mut self, at: Option<i64>, usage: Option<Counts>, has_records: bool) {
        if let Some(usage) = usage.filter(|_| !has_records) {
            self.close_call(at, &usage);
        }
    }

    fn finish(self) -> Draft {
        self.draft
    }
}

/// The agent itself speaks in the user's name: about the environment, instructions, skills.
fn is_of_user(message: &Payload<'_>) -> bool {
    if !message.content_kinds.is_empty() {
        return message
            .content_kinds
            .iter()
            .any(|kind| kind.raw().starts_with(b"user."));
    }
    const INJECTED: [&[u8]; 8] = [
        b"<environment_context>",
        b"<user_instructions>",
        b"# AGENTS.md instructions",
        b"<INSTRUCTIONS>",
        b"<permissions instructions>",
        b"<skills_instructions>",
        b"<turn_aborted>",
        b"<subagent_notification>",
    ];
    let is_injected = |text: &Text<'_>| INJECTED.iter().any(|start| text.raw().starts_with(start));
    !message.texts.is_empty() && !message.texts.iter().all(is_injected)
}

/// Arguments are JSON inside a string; other inputs stay as they are.
fn inner_json(raw: &[u8]) -> Vec<u8> {
    let mut json = Json::new(raw);
    let Ok(Some(text)) = json.text() else {
        return raw.to_vec();
    };
    let plain = text.plain();
    let is_json = plain.trim_start().starts_with(['{', '[']) && {
        let mut inner = Json::new(plain.as_bytes());
        inner.skip().and_then(|()| inner.end()).is_ok()
    };
    match is_json {
        true => plain.into_owned().into_bytes(),
        false => raw.to_vec(),
    }
}

/// The exit code in the output of a command.
fn exit_code(output: &[u8]) -> Option<i64> {
    let value: Value = serde_json::from_slice(output).ok()?;
    if let Some(code) = value["metadata"]["exit_code"]
        .as_i64()
        .or(value["exit_code"].as_i64())
    {
        return Some(code);
    }
    if let Some(success) = value["success"].as_bool() {
        return Some(i64::from(!success));
    }
    let text = value.as_str().or(value["output"].as_str())?;
    // Only the head of an output is Codex's own; what follows is the command's.
    let head = text.split("\nOutput:").next().unwrap_or_default();
    [
        "Process exited with code ",
        "Exit code: ",
        "exited with code ",
    ]
    .iter()
    .find_map(|words| {
        let (_, rest) = head.split_once(words)?;
        let digits: String = rest
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '-')
            .collect();
        digits.parse().ok()
    })
}

fn shown_output(output: &[u8], is_full: bool) -> Value {
    if !is_full {
        return Value::Null;
    }
    match serde_json::from_slice::<Value>(output) {
        Ok(Value::Object(mut fields)) if fields.get("output").is_some_and(Value::is_string) => {
            fields.remove("output").unwrap_or_default()
        }
        Ok(value) => value,
        Err(_) => Value::Null,
    }
}
