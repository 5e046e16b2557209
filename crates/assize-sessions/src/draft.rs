//! A session while its log is read. Every format fills the same draft; what it comes to is decided here, once.

use crate::json::Text;
use crate::session::{Flaws, Origin};
use assize_contracts::{SessionTrace, TokenBreakdown, TraceEvent, Usd};
use foldhash::HashMap;
use foldhash::fast::FixedState;
use serde_json::Value;
use std::borrow::Cow;
use std::hash::BuildHasher;

/// The amount of a log that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Times, tokens, names of tools: all that totals need.
    Totals,
    /// Also texts, inputs and outputs.
    Full,
}

/// A number that stands for an id. 0 is no id.
pub(crate) type Identity = u64;

/// Two ids that differ have different numbers, but for one chance in 2^64.
pub(crate) fn identity(parts: &[&[u8]]) -> Identity {
    let state = FixedState::with_seed(0x5e55_1045);
    state.hash_one(parts).max(1)
}

/// The place of a name in [`Draft::names`].
pub(crate) type Name = u32;

/// One session, or the part of it that one file holds.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) detail: Detail,
    pub(crate) id: String,
    /// The session that started this one as a sub-agent.
    pub(crate) parent: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) names: Names,
    /// Sub-agents in the order of their first appearance.
    pub(crate) agents: Vec<Subagent>,
    pub(crate) calls: Vec<Call>,
    pub(crate) items: Vec<Item>,
    pub(crate) flaws: Flaws,
    /// Sums that the agent wrote down now and then: everything that its session took until then.
    pub(crate) claims: Vec<Claim>,
    /// The trace itself, where the log is one.
    pub(crate) whole: Option<Box<SessionTrace>>,
    places: HashMap<Identity, u32>,
    open_tools: HashMap<Identity, u32>,
}

/// An agent that the main one started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Subagent {
    pub(crate) id: String,
    /// The kind that was asked for, such as `Explore`.
    pub(crate) kind: Option<String>,
    /// The tool call of the main agent that started it.
    pub(crate) started_by: Option<String>,
}

/// The place of a sub-agent in [`Draft::agents`], from 1. 0 is the main agent.
pub(crate) type AgentPlace = u32;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) marks: CallMarks,
    pub(crate) id: Option<String>,
    pub(crate) agent: AgentPlace,
    pub(crate) model: Name,
    pub(crate) tokens: TokenBreakdown,
    pub(crate) cache_write_1h: Option<u64>,
    pub(crate) service_tier: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) api: Option<&'static str>,
    pub(crate) reported_cost: Option<Usd>,
    pub(crate) started: Option<i64>,
    /// The first and the last line of the answer.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
    pub(crate) ttft_ms: Option<f64>,
    pub(crate) duration_ms: Option<f64>,
    pub(crate) status: Option<u16>,
    pub(crate) is_side: bool,
    /// Taken back by the user; spent nevertheless.
    pub(crate) is_rewound: bool,
}

/// The identity of a call that several files contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CallMarks {
    /// The request: message and request id together. 0 where the log gives none.
    pub(crate) request: Identity,
    /// The message id alone. 0 where the log gives none.
    pub(crate) message: Identity,
    /// The output that the usage was taken with; -1 without usage.
    pub(crate) output: i64,
    /// Counts only if no other call has the same message: side chains and forks repeat answers under other requests.
    pub(crate) may_repeat: bool,
}

impl CallMarks {
    /// Marks of a call that is known by one id.
    pub(crate) fn of(request: Identity) -> Self {
        Self {
            request,
            ..Self::default()
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// By which a copy in another file is recognized. 0 where it is never copied.
    pub(crate) identity: Identity,
    pub(crate) at: Option<i64>,
    pub(crate) agent: AgentPlace,
    pub(crate) what: What,
}

/// The place of a call in [`Draft::calls`].
pub(crate) type CallPlace = u32;

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A message of the user. To a sub-agent it is the task it was given.
    Prompt(String),
    Reasoning(String, Option<CallPlace>),
    Text(String, Option<CallPlace>),
    Tool(Box<Tool>),
    Error {
        message: String,
        is_recoverable: bool,
    },
    /// The history was replaced by a summary.
    Compaction,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tool {
    pub(crate) name: Name,
    /// The skill or the kind of sub-agent that the call is about.
    pub(crate) subject: Option<Name>,
    pub(crate) call: Option<CallPlace>,
    pub(crate) call_id: Option<String>,
    pub(crate) input: Value,
    pub(crate) output: Value,
    pub(crate) ended: Option<i64>,
    /// As the agent measured it.
    pub(crate) duration_ms: Option<f64>,
    pub(crate) success: Option<bool>,
    pub(crate) error: Option<String>,
    pub(crate) has_result: bool,
}

/// A sum of the agent's own over its session so far, by model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) at: i64,
    pub(crate) model: Name,
    pub(crate) tokens: TokenBreakdown,
}

/// A usage of a call, as one line of the log has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) tokens: TokenBreakdown,
    pub(crate) cache_write_1h: Option<u64>,
}

impl Usage {
    pub(crate) fn of(tokens: TokenBreakdown) -> Self {
        Self {
            tokens: tokens.with_totals(),
            cache_write_1h: None,
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Default)]
pub(crate) struct ToolEnd {
    pub(crate) at: Option<i64>,
    pub(crate) output: Value,
    pub(crate) success: Option<bool>,
    pub(crate) error: Option<String>,
    pub(crate) duration_ms: Option<f64>,
}

/// Texts that occur often, each held once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    all: Vec<String>,
    places: HashMap<String, Name>,
}

impl Names {
    pub(crate) fn of(&mut self, text: &str) -> Name {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.all.len() as Name;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        self.all.get(name as usize).map_or("", String::as_str)
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.all
    }
}

impl Draft {
    pub(crate) fn new(agent: &'static str, detail: Detail) -> Self {
        let mut names = Names::default();
        // Name 0 is a model that the log does not name.
        names.of("");
        Self {
            detail,
            id: String::new(),
            parent: None,
            origin: Origin::of(agent),
            names,
            agents: Vec::new(),
            calls: Vec::new(),
            items: Vec::new(),
            flaws: Flaws::default(),
            claims: Vec::new(),
            whole: None,
            places: HashMap::default(),
            open_tools: HashMap::default(),
        }
    }

    /// A draft of a trace that is whole already.
    pub(crate) fn of_trace(agent: &'static str, trace: SessionTrace, detail: Detail) -> Self {
        let mut draft = Self::new(agent, detail);
        draft.id.clone_from(&trace.session_id);
        let moment =
            |at: &Option<assize_contracts::Timestamp>| at.as_ref().and_then(|at| at.unix_ms());
        let mut places: std::collections::HashMap<&str, CallPlace> = Default::default();
        for call in &trace.model_calls {
            let agent = call.agent_id.as_deref().map_or(0, |id| draft.agent(id));
            let id = identity(&[b"trace", trace.session_id.as_bytes(), call.id.as_bytes()]);
            let place = draft.new_call(CallMarks::of(id), agent);
            let usage = Usage {
                tokens: call.tokens,
                cache_write_1h: call.cache_write_1h,
            };
            draft.take_usage(place, &call.model, usage);
            let made = &mut draft.calls[place as usize];
            made.started = moment(&call.started_at);
            made.first = made.started;
            made.reported_cost = call.cost_usd;
            made.is_side = call.side;
            made.status = call.status;
            made.service_tier.clone_from(&call.service_tier);
            places.insert(&call.id, place);
        }
        for event in &trace.events {
            let at = event.timestamp().and_then(|at| at.unix_ms());
            let place = event.place();
            let agent = place.and_then(|place| place.agent_id.as_deref());
            let agent = agent.map_or(0, |id| draft.agent(id));
            let call = place.and_then(|place| places.get(place.call_ref.as_deref()?).copied());
            match &**event {
                TraceEvent::ToolCall {
                    name,
                    duration_ms,
                    success,
                    input,
                    ..
                } => {
                    let subject = match is_skill_tool(name) {
                        true => subject(name, input.to_string().as_bytes())
                            .map(|subject| draft.names.of(&subject)),
                        false => None,
                    };
                    let tool = Tool {
                        name: draft.names.of(name),
                        subject,
                        call,
                        duration_ms: duration_ms.map(|duration| duration.value()),
                        success: *success,
                        has_result: true,
                        ..Tool::default()
                    };
                    draft.push(at, agent, What::Tool(Box::new(tool)));
                }
                TraceEvent::Error {
                    message,
                    recoverable,
                    ..
                } => {
                    let what = What::Error {
                        message: draft.keep(message),
                        is_recoverable: *recoverable,
                    };
                    draft.push(at, agent, what);
                }
                _ => {}
            }
        }
        for turn in &trace.user_turns {
            draft.push(turn.started_at.unix_ms(), 0, What::Prompt(String::new()));
        }
        if trace.model_calls.is_empty() && trace.summary.total_tokens != TokenBreakdown::default() {
            // Only the sum is known; it stands for all calls.
            let place = draft.new_call(CallMarks::default(), 0);
            let usage = Usage {
                tokens: trace.summary.total_tokens,
                cache_write_1h: None,
            };
            draft.take_usage(place, "", usage);
            let last = draft.items.iter().filter_map(|item| item.at).max();
            draft.calls[place as usize].first = last;
        }
        draft.flaws.lines = 1;
        if detail == Detail::Full {
            draft.whole = Some(Box::new(trace));
        }
        draft
    }

    pub(crate) fn is_full(&self) -> bool {
        self.detail == Detail::Full
    }

    /// The place of a sub-agent, which is made known if it is new.
    pub(crate) fn agent(&mut self, id: &str) -> AgentPlace {
        let known = self.agents.iter().position(|agent| agent.id == id);
        let place = known.unwrap_or_else(|| {
            self.agents.push(Subagent {
                id: id.to_owned(),
                ..Subagent::default()
            });
            self.agents.len() - 1
        });
        place as AgentPlace + 1
    }

    /// The kind of the sub-agent whose session this is. It is known to its parent by its own id.
    pub(crate) fn name_child(&mut self, kind: &str) {
        let id = self.id.clone();
        let place = self.agent(&id) as usize;
        if let Some(agent) = self.agents.get_mut(place - 1) {
            agent.kind.get_or_insert_with(|| kind.to_owned());
        }
    }

    /// A sub-agent that a tool call started.
    pub(crate) fn note_agent(&mut self, id: &str, kind: Option<&str>, started_by: &str) {
        let place = self.agent(id) as usize;
        let call = (!started_by.is_empty()).then(|| started_by.to_owned());
        if let Some(agent) = self.agents.get_mut(place - 1) {
            agent.kind = agent.kind.take().or(kind.map(str::to_owned));
            agent.started_by = agent.started_by.take().or(call);
        }
    }

    /// The text, where texts are kept.
    pub(crate) fn keep(&self, text: &str) -> String {
        match self.is_full() {
            true => text.to_owned(),
            false => String::new(),
        }
    }

    /// The text of the log, where texts are kept.
    pub(crate) fn keep_text(&self, text: Option<Text<'_>>) -> String {
        match text {
            Some(text) if self.is_full() => text.plain().into_owned(),
            _ => String::new(),
        }
    }

    /// The value of a JSON text, where inputs and outputs are kept.
    pub(crate) fn keep_value(&self, raw: &[u8]) -> Value {
        match self.is_full() {
            true => serde_json::from_slice(raw)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(raw).into_owned())),
            false => Value::Null,
        }
    }

    pub(crate) fn push(&mut self, at: Option<i64>, agent: AgentPlace, what: What) {
        self.push_known(0, at, agent, what);
    }

    pub(crate) fn push_known(
        &mut self,
        identity: Identity,
        at: Option<i64>,
        agent: AgentPlace,
        what: What,
    ) {
        self.items.push(Item {
            identity,
            at,
            agent,
            what,
        });
    }

    /// The call with these marks, which is begun if it is new. A call without a request id is always new.
    pub(crate) fn call(&mut self, marks: CallMarks, agent: AgentPlace) -> CallPlace {
        if let Some(&place) = self.places.get(&marks.request)
            && marks.request != 0
        {
            return place;
        }
        self.new_call(marks, agent)
    }

    /// A call that is new, whatever its marks.
    pub(crate) fn new_call(&mut self, marks: CallMarks, agent: AgentPlace) -> CallPlace {
        let place = self.calls.len() as CallPlace;
        self.calls.push(Call {
            marks: CallMarks {
                output: -1,
                ..marks
            },
            agent,
            ..Call::default()
        });
        if marks.request != 0 {
            self.places.insert(marks.request, place);
        }
        place
    }

    /// Takes the usage of the line with the largest output, the later one among equals: lines of one answer repeat it as it grows.
    pub(crate) fn take_usage(&mut self, place: CallPlace, model: &str, usage: Usage) {
        let output = usage.tokens.output.map_or(-1, |count| count as i64);
        let model = self.names.of(model);
        let Some(call) = self.calls.get_mut(place as usize) else {
            return;
        };
        if output >= call.marks.output {
            call.marks.output = output;
            call.model = model;
            call.tokens = usage.tokens;
            call.cache_write_1h = usage.cache_write_1h;
        }
    }

    /// Notes the model of a line without usage, unless another line has named it.
    pub(crate) fn name_model(&mut self, place: CallPlace, model: &str) {
        let model = self.names.of(model);
        if let Some(call) = self.calls.get_mut(place as usize)
            && call.model == 0
        {
            call.model = model;
        }
    }

    /// An error that was not a tool's.
    pub(crate) fn push_error(&mut self, at: Option<i64>, message: &str, is_recoverable: bool) {
        let message = self.keep(message);
        let what = What::Error {
            message,
            is_recoverable,
        };
        self.push(at, 0, what);
    }

    /// A tool call with its input as JSON text, to be begun.
    pub(crate) fn tool_of(&mut self, name: &str, input: &[u8], call: Option<CallPlace>) -> Tool {
        Tool {
            name: self.names.of(name),
            subject: subject(name, input).map(|subject| self.names.of(&subject)),
            call,
            input: self.keep_value(input),
            ..Tool::default()
        }
    }

    /// Drops all calls, where only a sum of them is known.
    pub(crate) fn forget_calls(&mut self) {
        self.calls.clear();
        self.places.clear();
        for item in &mut self.items {
            match &mut item.what {
                What::Reasoning(_, call) | What::Text(_, call) => *call = None,
                What::Tool(tool) => tool.call = None,
                _ => {}
            }
        }
    }

    /// A tool call that begins. Its result is recognized by `id`.
    pub(crate) fn begin_tool(
        &mut self,
        id: &str,
        at: Option<i64>,
        agent: AgentPlace,
        mut tool: Tool,
    ) {
        let identity = identity(&[b"tool", id.as_bytes()]);
        let is_known = !id.is_empty();
        if is_known {
            if self.open_tools.contains_key(&identity) {
                return;
            }
            self.open_tools.insert(identity, self.items.len() as u32);
        }
        tool.call_id = (self.is_full() && is_known).then(|| id.to_owned());
        let identity = if is_known { identity } else { 0 };
        self.push_known(identity, at, agent, What::Tool(Box::new(tool)));
    }

    /// The tool call with this id, if it began in this log.
    pub(crate) fn tool(&mut self, id: &str) -> Option<&mut Tool> {
        let identity = identity(&[b"tool", id.as_bytes()]);
        let place = *self.open_tools.get(&identity)?;
        match &mut self.items.get_mut(place as usize)?.what {
            What::Tool(tool) => Some(&mut **tool),
            _ => None,
        }
    }

    pub(crate) fn end_tool(&mut self, id: &str, end: ToolEnd) {
        let Some(tool) = self.tool(id) else {
            return;
        };
        if tool.has_result {
            return;
        }
        tool.has_result = true;
        tool.ended = end.at;
        tool.output = end.output;
        tool.success = end.success;
        tool.error = end.error;
        tool.duration_ms = end.duration_ms.or(tool.duration_ms);
    }
}

/// The skill, or the kind of sub-agent, that the input of a tool call names.
pub(crate) fn subject<'a>(tool: &str, input: &'a [u8]) -> Option<Cow<'a, str>> {
    let keys: &[&str] = match tool {
        "Skill" | "skill" | "skills" => &["skill", "name", "command"],
        "Task" | "Agent" | "task" | "agent" | "spawn_agent" | "invoke_agent" => {
            &["subagent_type", "agent_type", "agent", "agent_name"]
        }
        _ => return None,
    };
    let mut found = None;
    let mut json = crate::json::Json::new(input);
    let _ = json.object(|json, key| {
        match keys.iter().any(|known| key.is(known)) {
            true => found = json.text()?.map(|text| text.plain()).or(found.take()),
            false => json.skip()?,
        }
        Ok(())
    });
    found
}

/// The MCP server of a tool, where the tool's name has it.
pub(crate) fn mcp_server(tool: &str) -> Option<&str> {
    let rest = tool.strip_prefix("mcp__")?;
    let (server, _) = rest.split_once("__")?;
    (!server.is_empty()).then_some(server)
}

/// True for a tool that loads a skill.
pub(crate) fn is_skill_tool(tool: &str) -> bool {
    matches!(tool, "Skill" | "skill" | "skills")
}
