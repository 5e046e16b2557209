//! A session as an ATIF document.

use super::VERSION;
use crate::session::{Session, UserMessage};
use assize_contracts::{ModelCall, Timestamp, TokenBreakdown, TraceEvent, Usd};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// Writes a session as a document of version 1.7.
pub fn write(session: &Session) -> Value {
    let drafts = Drafts::of(session);
    let mut document = trajectory(session, &drafts, None);
    let embedded: Vec<Value> = drafts
        .subagents()
        .into_iter()
        .map(|agent| trajectory(session, &drafts, Some(agent)))
        .collect();
    if !embedded.is_empty() {
        document["subagent_trajectories"] = embedded.into();
    }
    document["extra"] = json!({ "assize": own_facts(session, &drafts) });
    document
}

/// A step before it has its number.
struct Draft<'t> {
    agent: Option<&'t str>,
    call: Option<(usize, &'t ModelCall)>,
    /// Events with their place among all events.
    events: Vec<(usize, &'t TraceEvent)>,
    user: Option<&'t UserMessage>,
}

impl Draft<'_> {
    fn start(&self) -> Option<&Timestamp> {
        let called = self.call.and_then(|(_, call)| call.started_at.as_ref());
        let sent = self.user.and_then(|message| message.at.as_ref());
        let happened = || self.events.iter().find_map(|(_, event)| event.timestamp());
        called.or(sent).or_else(happened)
    }

    fn start_ms(&self) -> Option<i64> {
        self.start().and_then(Timestamp::unix_ms)
    }

    fn is_error(&self) -> bool {
        matches!(self.events.as_slice(), [(_, TraceEvent::Error { .. })])
    }
}

/// The key that groups events into one step.
#[derive(PartialEq, Eq, Hash)]
enum Key<'t> {
    Call(&'t str),
    Turn(Option<&'t str>, usize),
}

/// All steps of a session, in order.
struct Drafts<'t> {
    steps: Vec<Draft<'t>>,
    /// Beginnings of turns in which nothing happened.
    idle: Vec<(usize, &'t TraceEvent)>,
}

impl<'t> Drafts<'t> {
    fn of(session: &'t Session) -> Self {
        let mut drafts = Self::of_events(session);
        drafts.add_calls(session);
        drafts.add_user_messages(session);
        drafts
    }

    /// One model call is one step; events that name no call are grouped by turn. An error is a step of its own.
    fn of_events(session: &'t Session) -> Self {
        let calls: HashMap<&str, (usize, &ModelCall)> = session
            .trace
            .model_calls
            .iter()
            .enumerate()
            .map(|(index, call)| (call.id.as_str(), (index, call)))
            .collect();
        let mut steps: Vec<Draft<'t>> = Vec::new();
        let mut places: HashMap<Key<'t>, usize> = HashMap::new();
        let mut idle = Vec::new();
        let mut turn = 0;
        for (index, event) in session.trace.events.iter().enumerate() {
            let event = &**event;
            let place = event.place();
            let agent = place.and_then(|place| place.agent_id.as_deref());
            let call = place.and_then(|place| calls.get(place.call_ref.as_deref()?));
            let step = match event {
                TraceEvent::TurnBoundary { .. } => {
                    turn += 1;
                    idle.push((index, event));
                    continue;
                }
                TraceEvent::Error { .. } => {
                    steps.push(Draft {
                        agent,
                        call: None,
                        events: vec![(index, event)],
                        user: None,
                    });
                    continue;
                }
                _ => {
                    let key = match call {
                        Some((_, call)) => Key::Call(&call.id),
                        None => Key::Turn(agent, turn),
                    };
                    *places.entry(key).or_insert_with(|| {
                        let agent =
                            call.map_or(agent, |(_, call)| call.agent_id.as_deref().or(agent));
                        steps.push(Draft {
                            agent,
                            call: call.copied(),
                            events: Vec::new(),
                            user: None,
                        });
                        steps.len() - 1
                    })
                }
            };
            if let Some(step) = steps.get_mut(step) {
                step.events.append(&mut idle);
                step.events.push((index, event));
            }
        }
        Self { steps, idle }
    }

    /// Calls that no event names. Where events name none at all, turns and calls are paired in order.
    fn add_calls(&mut self, session: &'t Session) {
        let taken: BTreeSet<usize> = self
            .steps
            .iter()
            .filter_map(|step| Some(step.call?.0))
            .collect();
        let open: Vec<(usize, &ModelCall)> = session
            .trace
            .model_calls
            .iter()
            .enumerate()
            .filter(|(index, _)| !taken.contains(index))
            .collect();
        let is_main = |(_, call): &&(usize, &ModelCall)| !call.side && call.agent_id.is_none();
        let main: Vec<(usize, &ModelCall)> = open.iter().filter(is_main).copied().collect();
        let mut turns: Vec<&mut Draft<'t>> = self
            .steps
            .iter_mut()
            .filter(|step| step.agent.is_none() && !step.is_error())
            .collect();
        let mut paired = BTreeSet::new();
        if taken.is_empty() && turns.len() == main.len() {
            for (turn, call) in turns.iter_mut().zip(main) {
                paired.insert(call.0);
                turn.call = Some(call);
            }
        }
        for (index, call) in open
            .into_iter()
            .filter(|(index, _)| !paired.contains(index))
        {
            self.insert(Draft {
                agent: call.agent_id.as_deref(),
                call: Some((index, call)),
                events: Vec::new(),
                user: None,
            });
        }
    }

    fn add_user_messages(&mut self, session: &'t Session) {
        for (number, message) in session.user_messages.iter().enumerate() {
            let draft = Draft {
                agent: None,
                call: None,
                events: Vec::new(),
                user: Some(message),
            };
            match number {
                0 => self.steps.insert(0, draft),
                _ => self.insert(draft),
            }
        }
    }

    /// Puts a step before the first one that began later.
    fn insert(&mut self, draft: Draft<'t>) {
        let start = draft.start_ms();
        let is_later = |step: &Draft<'t>| {
            step.start_ms()
                .zip(start)
                .is_some_and(|(its, own)| its > own)
        };
        let place = self
            .steps
            .iter()
            .position(is_later)
            .unwrap_or(self.steps.len());
        self.steps.insert(place, draft);
    }

    fn subagents(&self) -> Vec<&'t str> {
        let mut found: Vec<&'t str> = Vec::new();
        for agent in self.steps.iter().filter_map(|step| step.agent) {
            if !found.contains(&agent) {
                found.push(agent);
            }
        }
        found
    }
}

fn trajectory(session: &Session, drafts: &Drafts<'_>, agent: Option<&str>) -> Value {
    let subagents: BTreeSet<&str> = drafts.subagents().into_iter().collect();
    let own: Vec<&Draft<'_>> = drafts
        .steps
        .iter()
        .filter(|step| step.agent == agent)
        .collect();
    let mut steps: Vec<Value> = own.iter().map(|draft| step(draft, &subagents)).collect();
    if steps.is_empty() {
        // A trajectory has at least one step.
        steps.push(json!({ "source": "system", "message": "nothing was recorded" }));
    }
    for (number, step) in steps.iter_mut().enumerate() {
        let mut numbered = Map::from_iter([("step_id".to_owned(), json!(number + 1))]);
        if let Value::Object(fields) = step {
            numbered.append(fields);
        }
        *step = numbered.into();
    }
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), VERSION.into());
    document.insert(
        "session_id".to_owned(),
        session.trace.session_id.clone().into(),
    );
    if let Some(agent) = agent {
        document.insert("trajectory_id".to_owned(), agent.into());
    }
    document.insert("agent".to_owned(), agent_of(session, &own));
    let total_steps = steps.len();
    document.insert("steps".to_owned(), steps.into());
    let all = match agent {
        // The money of subagents is the parent's money, too.
        None => drafts.steps.iter().collect(),
        Some(_) => own.clone(),
    };
    let mut totals = final_metrics(&own, &all, total_steps);
    if agent.is_none() && session.trace.model_calls.is_empty() {
        add_session_totals(&mut totals, session);
    }
    document.insert("final_metrics".to_owned(), totals);
    document.into()
}

/// Totals of a session whose model calls were not seen one by one.
fn add_session_totals(totals: &mut Value, session: &Session) {
    let tokens = &session.trace.summary.total_tokens;
    let counts = [
        ("total_prompt_tokens", prompt(tokens)),
        ("total_completion_tokens", completion(tokens)),
        ("total_cached_tokens", tokens.cache_read),
    ];
    for (key, count) in counts {
        if let Some(count) = count {
            totals[key] = count.into();
        }
    }
    if let Some(cost) = session.cost() {
        totals["total_cost_usd"] = json!(cost);
    }
}

fn agent_of(session: &Session, steps: &[&Draft<'_>]) -> Value {
    let used = steps
        .iter()
        .find_map(|step| step.call)
        .map(|(_, call)| call.model.as_str());
    let model = session
        .model
        .as_deref()
        .or(used)
        .filter(|model| !model.is_empty());
    let mut agent = json!({
        "name": session.agent(),
        // The format demands one.
        "version": session.agent_version.as_deref().unwrap_or("unknown"),
    });
    if let Some(model) = model {
        agent["model_name"] = model.into();
    }
    agent
}

fn step(draft: &Draft<'_>, subagents: &BTreeSet<&str>) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    let source = match draft.user {
        Some(_) => "user",
        None if draft.is_error() => "system",
        None => "agent",
    };
    put("source", source.into());
    if let Some(start) = draft.start().filter(|start| start.unix_ms().is_some()) {
        put("timestamp", start.as_str().into());
    }
    if let Some(message) = draft.user {
        put("message", message.text.clone().into());
        return fields.into();
    }
    if let Some((_, call)) = draft.call.filter(|(_, call)| !call.model.is_empty()) {
        put("model_name", call.model.clone().into());
    }
    let content = Content::of(draft, subagents);
    put("message", content.message());
    if !content.thoughts.is_empty() {
        put("reasoning_content", content.thoughts.join(SEPARATOR).into());
    }
    if !content.tool_calls.is_empty() {
        put("tool_calls", content.tool_calls.into());
    }
    if !content.results.is_empty() {
        put("observation", json!({ "results": content.results }));
    }
    let mut own = Map::new();
    if let Some((index, call)) = draft.call {
        put("metrics", metrics(call));
        put("llm_call_count", 1.into());
        own.insert("modelCall".to_owned(), json!(call));
        own.insert("modelCallIndex".to_owned(), index.into());
    }
    own.insert("events".to_owned(), content.entries.into());
    put("extra", json!({ "assize": own }));
    fields.into()
}

/// Stands between thoughts that become one.
pub(super) const SEPARATOR: &str = "\n\n";

/// The events of a step, sorted into the places that the format has.
#[derive(Default)]
struct Content<'t> {
    texts: Vec<&'t str>,
    thoughts: Vec<&'t str>,
    tool_calls: Vec<Value>,
    results: Vec<Value>,
    /// Everything else about each event, in order.
    entries: Vec<Value>,
}

impl<'t> Content<'t> {
    fn of(draft: &Draft<'t>, subagents: &BTreeSet<&str>) -> Self {
        let mut content = Self::default();
        let mut ids = BTreeSet::new();
        for (index, event) in &draft.events {
            let mut entry = json!(event);
            entry["index"] = (*index).into();
            let mut without = |key: &str| {
                if let Value::Object(fields) = &mut entry {
                    fields.shift_remove(key);
                }
            };
            match event {
                TraceEvent::Reasoning { content: text, .. } => {
                    without("content");
                    entry["length"] = text.chars().count().into();
                    content.thoughts.push(text);
                }
                TraceEvent::TextOutput { content: text, .. } => {
                    without("content");
                    content.texts.push(text);
                }
                TraceEvent::Error { message, .. } => {
                    without("message");
                    content.texts.push(message);
                }
                TraceEvent::ToolCall {
                    name,
                    input,
                    output,
                    ..
                } => {
                    ["name", "input", "output"]
                        .into_iter()
                        .for_each(&mut without);
                    let id = unique_id(event, *index, &mut ids);
                    let arguments = match input {
                        Value::Object(_) => input.clone(),
                        other => {
                            entry["isWrapped"] = true.into();
                            json!({ "value": other })
                        }
                    };
                    match output {
                        Value::String(_) => {}
                        Value::Null => entry["outputIsNull"] = true.into(),
                        _ => entry["outputIsJson"] = true.into(),
                    }
                    content.tool_calls.push(json!({
                        "tool_call_id": id, "function_name": name, "arguments": arguments,
                    }));
                    content.results.extend(result(event, &id, subagents));
                }
                TraceEvent::TurnBoundary { .. } => {}
            }
            content.entries.push(entry);
        }
        content
    }

    /// One text is a string, several are parts.
    fn message(&self) -> Value {
        match self.texts.as_slice() {
            [] => "".into(),
            [text] => (*text).into(),
            texts => texts
                .iter()
                .map(|text| json!({ "type": "text", "text": text }))
                .collect(),
        }
    }
}

fn unique_id(event: &TraceEvent, index: usize, taken: &mut BTreeSet<String>) -> String {
    let own = event.place().and_then(|place| place.call_id.clone());
    let id = own.filter(|id| !id.is_empty() && !taken.contains(id));
    let id = id.unwrap_or_else(|| format!("call-{index}"));
    taken.insert(id.clone());
    id
}

/// The result of a tool call. None where none was seen.
fn result(event: &TraceEvent, id: &str, subagents: &BTreeSet<&str>) -> Option<Value> {
    let TraceEvent::ToolCall {
        output,
        success,
        error,
        ..
    } = event
    else {
        return None;
    };
    let content = match output {
        Value::Null => error.clone(),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let is_starter = subagents.contains(id);
    if content.is_none() && success.is_none() && !is_starter {
        return None;
    }
    let mut result = json!({ "source_call_id": id });
    if let Some(content) = content {
        result["content"] = content.into();
    }
    if is_starter {
        result["subagent_trajectory_ref"] = json!([{ "trajectory_id": id }]);
    }
    if let Some(success) = success {
        result["extra"] = json!({ "assize": { "success": success } });
    }
    Some(result)
}

/// Input and output as the format counts them: everything included.
fn metrics(call: &ModelCall) -> Value {
    let tokens = &call.tokens;
    let mut metrics = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            metrics.insert(key.to_owned(), value);
        }
    };
    put("prompt_tokens", prompt(tokens).map(Value::from));
    put("completion_tokens", completion(tokens).map(Value::from));
    put("cached_tokens", tokens.cache_read.map(Value::from));
    put("cost_usd", call.cost_usd.map(|cost| json!(cost)));
    let mut extra = Map::new();
    for (key, count) in [
        ("cache_creation_input_tokens", tokens.cache_write),
        ("reasoning_tokens", tokens.reasoning),
    ] {
        if let Some(count) = count {
            extra.insert(key.to_owned(), count.into());
        }
    }
    if !extra.is_empty() {
        metrics.insert("extra".to_owned(), extra.into());
    }
    metrics.into()
}

fn prompt(tokens: &TokenBreakdown) -> Option<u64> {
    let cached = [tokens.cache_read, tokens.cache_write]
        .into_iter()
        .flatten();
    Some(cached.fold(tokens.input?, u64::saturating_add))
}

fn completion(tokens: &TokenBreakdown) -> Option<u64> {
    Some(tokens.output?.saturating_add(tokens.reasoning.unwrap_or(0)))
}

/// Totals; one with an unknown part is left out.
fn final_metrics(own: &[&Draft<'_>], all: &[&Draft<'_>], total_steps: usize) -> Value {
    let calls = |steps: &[&Draft<'_>]| -> Vec<ModelCall> {
        let calls = steps.iter().filter_map(|step| step.call);
        calls.map(|(_, call)| call.clone()).collect()
    };
    let (own, all) = (calls(own), calls(all));
    let sum = |count: fn(&TokenBreakdown) -> Option<u64>| -> Option<u64> {
        let billed = own.iter().filter(|call| !call.is_refused());
        let counts: Option<Vec<u64>> = billed.map(|call| count(&call.tokens)).collect();
        let counts = counts.filter(|counts| !counts.is_empty())?;
        Some(counts.into_iter().fold(0, u64::saturating_add))
    };
    let billed = all.iter().filter(|call| !call.is_refused());
    let costs: Option<Vec<Usd>> = billed.map(|call| call.cost_usd).collect();
    let cost = costs.and_then(|costs| costs.into_iter().reduce(|sum, cost| sum + cost));
    let mut metrics = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            metrics.insert(key.to_owned(), value);
        }
    };
    put("total_prompt_tokens", sum(prompt).map(Value::from));
    put("total_completion_tokens", sum(completion).map(Value::from));
    put(
        "total_cached_tokens",
        sum(|tokens| tokens.cache_read).map(Value::from),
    );
    put("total_cost_usd", cost.map(|cost| json!(cost)));
    put("total_steps", Some(total_steps.into()));
    metrics.into()
}

/// Facts about the whole session that the format has no place for.
fn own_facts(session: &Session, drafts: &Drafts<'_>) -> Value {
    let trace = &session.trace;
    let mut facts = json!({
        "trace": {
            "schemaVersion": trace.schema_version,
            "summary": trace.summary,
            "answer": trace.answer,
            "userTurns": trace.user_turns,
            "simulated": trace.simulated,
        },
    });
    if !drafts.idle.is_empty() {
        let entries = drafts.idle.iter().map(|(index, event)| {
            let mut entry = json!(event);
            entry["index"] = (*index).into();
            entry
        });
        facts["events"] = entries.collect();
    }
    if let Some(trial) = &session.trial {
        let row = &trial.row;
        facts["trial"] = json!({
            "runId": row.run_id, "suite": trial.suite, "scenarioId": row.scenario_id, "mode": row.mode,
            "model": row.model, "iteration": row.iteration, "position": row.position, "success": row.success,
            "outcome": row.outcome, "checks": row.checkpoint_details.iter()
                .map(|check| json!({ "id": check.id, "passed": check.passed })).collect::<Vec<_>>(),
        });
    }
    facts
}
