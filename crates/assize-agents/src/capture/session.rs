//! The traffic of one session: model calls and the results of their tools.

use super::Upstreams;
use super::agents::{Thread, Threads};
use super::cassette::SessionTape;
use super::skills::{Seen, WatchedSkill};
use crate::lock;
use assize_llm::{Api, Content, ModelAnswer, ResultInRequest, ToolResult};
use assize_secrets::{Redactor, Secrets};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Calls beyond this are counted, not kept.
const MOST_CALLS: usize = 20_000;

/// Text beyond this is not kept; tokens and times of calls still are.
const MOST_KEPT: usize = 256 << 20;

/// One request to a model and its answer, as they passed by.
#[derive(Debug, Clone)]
pub struct Call {
    /// Counted by when calls began.
    pub number: u64,
    /// The API spoken.
    pub api: Api,
    /// The arrival of the request, in milliseconds since 1970.
    pub started_ms: i64,
    /// From the request to the end of the answer.
    pub duration: Duration,
    /// The model asked for.
    pub model: Option<String>,
    /// The number of tools that the model could use.
    pub tools: usize,
    /// The same for every try of the same request. Known where it matters: of calls that failed, and of those that may repeat one.
    pub fingerprint: Option<[u8; 32]>,
    /// The same for every request of a conversation.
    pub(super) thread: Thread,
    /// The subagent that asks, by its own word.
    pub(super) subagent: Option<String>,
    /// Parts of the answer that call a tool which the request did not offer.
    pub(super) unknown_tools: Vec<usize>,
    /// The answer. Absent when there was none.
    pub answer: Option<ModelAnswer>,
    /// The end of the exchange.
    pub ending: Ending,
    /// The request was changed to ask for usage.
    pub asked_for_usage: bool,
    /// The answer came from a cassette.
    pub replayed: bool,
    /// The part that could not be read.
    pub unread: Option<String>,
}

/// The end of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The answer was passed on to its end.
    Complete,
    /// The upstream broke off.
    Cut(String),
    /// The agent went away before the end.
    ClientGone,
    /// The upstream could not be reached, or a cassette has no answer.
    NoAnswer(String),
}

impl Call {
    /// The status of the answer.
    pub fn status(&self) -> Option<u16> {
        self.answer.as_ref().map(|answer| answer.status)
    }

    /// Nothing was generated and nothing is billed: an error instead of an answer, or an endpoint that could not be reached.
    pub fn is_refused(&self) -> bool {
        match self.status() {
            Some(status) => status >= 400,
            None => matches!(self.ending, Ending::NoAnswer(_)),
        }
    }

    /// The agent gave up before the answer began. The model may have worked, and been billed, all the same.
    pub fn is_given_up(&self) -> bool {
        self.status().is_none() && !self.is_refused()
    }

    /// The agent has reason to ask again.
    pub(super) fn may_be_retried(&self) -> bool {
        self.is_refused() || self.is_cut()
    }

    /// The answer has no end of its own.
    pub fn is_cut(&self) -> bool {
        let complete = |answer: &ModelAnswer| answer.complete;
        !self.is_refused() && !self.answer.as_ref().is_some_and(complete)
    }

    fn size(&self) -> usize {
        let size = |answer: &ModelAnswer| {
            let parts = answer.parts.iter().map(|part| match &part.content {
                Content::Reasoning(text) | Content::Text(text) => text.len(),
                Content::Tool(tool) => tool.name.len() + tool.arguments.to_string().len(),
            });
            parts.sum()
        };
        self.answer.as_ref().map_or(0, size)
    }
}

/// A tool call: the number of the call that asked for it, and which part of the answer it is.
pub(super) type ToolPlace = (u64, usize);

/// The result of a tool, and the time at which the model received it.
#[derive(Debug, Clone)]
pub(super) struct Returned {
    pub(super) result: ToolResult,
    pub(super) received_ms: i64,
}

/// The content of a request beside its question.
pub(super) struct RequestContent {
    /// Results of tools, those of the whole conversation.
    pub(super) results: Vec<ResultInRequest>,
    /// The opening of the conversation.
    pub(super) opening: String,
    /// The text that contains the results.
    pub(super) body: Bytes,
}

/// Everything that is known of a session until now.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Model calls, in the order they began.
    pub calls: Vec<Call>,
    /// Requests that made no model generate: probes, token counts, lists of models.
    pub other_requests: u64,
    /// Calls whose end was not seen, or that were too many to keep.
    pub lost_calls: u64,
    pub(super) returned: HashMap<ToolPlace, Returned>,
    /// Subagents, by the numbers of their calls.
    pub(super) agents: HashMap<u64, String>,
    /// Skills that were looked for, and what was seen of them.
    pub(super) skills: Vec<(WatchedSkill, Seen)>,
}

/// A session while it goes on.
pub(super) struct Session {
    pub(super) upstreams: Upstreams,
    pub(super) tape: Option<SessionTape>,
    state: Mutex<State>,
    settled: Notify,
    listener: Option<mpsc::UnboundedSender<Call>>,
    skills: Arc<[WatchedSkill]>,
    /// Gets to know the keys in requests, so that they reach no record even where an agent repeats them.
    pub(super) secrets: Secrets,
    pub(super) redactor: Redactor,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<u64, Call>,
    begun: u64,
    under_way: u64,
    other_requests: u64,
    dropped: u64,
    kept: usize,
    returned: HashMap<ToolPlace, Returned>,
    /// Tool calls without a result yet.
    open_by_id: HashMap<String, ToolPlace>,
    ids: HashSet<String>,
    open_in_order: Vec<(ToolPlace, String)>,
    threads: Threads,
    /// As many as there are skills to look for.
    skills: Vec<Seen>,
    /// Failed calls whose requests are being compared.
    failing: u64,
    /// Requests that failed and have not succeeded since.
    failed: HashSet<[u8; 32]>,
}

impl Session {
    pub(super) fn new(
        upstreams: Upstreams,
        tape: Option<SessionTape>,
        listener: Option<mpsc::UnboundedSender<Call>>,
        secrets: Secrets,
        skills: Arc<[WatchedSkill]>,
    ) -> Self {
        let state = State {
            skills: vec![Seen::default(); skills.len()],
            ..State::default()
        };
        Self {
            upstreams,
            tape,
            state: Mutex::new(state),
            skills,
            settled: Notify::new(),
            listener,
            redactor: Redactor::new(&secrets),
            secrets,
        }
    }

    /// Counts a model call that begins. Every one must be ended.
    pub(super) fn begin_call(&self) -> u64 {
        let mut state = lock(&self.state);
        state.begun += 1;
        state.under_way += 1;
        state.begun
    }

    /// Takes a call that has ended, with the content of its request.
    pub(super) fn end_call(&self, call: Call, content: RequestContent) {
        if let Some(listener) = &self.listener {
            // The listener may be gone.
            let _ = listener.send(call.clone());
        }
        self.look_for_skills(&call, &content);
        lock(&self.state).end_call(call, content);
        self.settled.notify_waiters();
    }

    /// Outside the lock: a long conversation takes a moment to search.
    fn look_for_skills(&self, call: &Call, content: &RequestContent) {
        let Ok(body) = std::str::from_utf8(&content.body) else {
            return;
        };
        for (number, skill) in self.skills.iter().enumerate() {
            let shown = skill.shown_in(body);
            if let Some(seen) = lock(&self.state).skills.get_mut(number) {
                seen.take(shown, skill, call, body.len());
            }
        }
    }

    /// Notes that a call has failed; its end is reported when its request has been compared.
    pub(super) fn note_failure(&self) {
        lock(&self.state).failing += 1;
    }

    /// The comparison is over.
    pub(super) fn end_failed_call(&self, call: Call, content: RequestContent) {
        lock(&self.state).failing -= 1;
        self.end_call(call, content);
    }

    /// A request may be another try of one that failed.
    pub(super) fn may_repeat(&self) -> bool {
        let state = lock(&self.state);
        state.failing > 0 || !state.failed.is_empty()
    }

    pub(super) fn count_other_request(&self) {
        lock(&self.state).other_requests += 1;
    }

    /// Waits until no call is under way, but not forever.
    pub(super) async fn settle(&self, patience: Duration) {
        let settled = async {
            loop {
                let notified = self.settled.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                if lock(&self.state).under_way == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout(patience, settled).await;
    }

    pub(super) fn recording(&self) -> Recording {
        let state = lock(&self.state);
        Recording {
            calls: state.calls.values().cloned().collect(),
            other_requests: state.other_requests,
            lost_calls: state.under_way + state.dropped,
            returned: state.returned.clone(),
            agents: state.threads.agents(&state.calls),
            skills: self
                .skills
                .iter()
                .cloned()
                .zip(state.skills.iter().cloned())
                .collect(),
        }
    }
}

impl State {
    fn end_call(&mut self, mut call: Call, content: RequestContent) {
        self.under_way -= 1;
        if let Some(request) = call.fingerprint {
            match call.may_be_retried() {
                true => self.failed.insert(request),
                false => self.failed.remove(&request),
            };
        }
        if self.calls.len() >= MOST_CALLS {
            self.dropped += 1;
            return;
        }
        self.take_results(content.results, &content.body, call.started_ms);
        self.kept += call.size();
        if self.kept > MOST_KEPT
            && let Some(answer) = &mut call.answer
        {
            answer.parts.clear();
            answer.flaws.truncated = true;
        }
        self.open_tools(&call);
        self.threads.take(&call, &content.opening);
        self.calls.insert(call.number, call);
    }

    fn open_tools(&mut self, call: &Call) {
        let parts = call.answer.iter().flat_map(|answer| &answer.parts);
        for (index, part) in parts.enumerate() {
            let Content::Tool(tool) = &part.content else {
                continue;
            };
            let place = (call.number, index);
            match &tool.id {
                _ if tool.by_server => {}
                Some(id) => {
                    self.ids.insert(id.clone());
                    self.open_by_id.insert(id.clone(), place);
                }
                None => self.open_in_order.push((place, tool.name.clone())),
            }
        }
    }

    /// Every request repeats the whole conversation, so only results of open calls are new.
    fn take_results(&mut self, results: Vec<ResultInRequest>, body: &[u8], received_ms: i64) {
        // Agents may make up ids for calls that had none; those go by order, too.
        let is_known = |result: &ResultInRequest| {
            let id = result.id.as_ref();
            id.is_some_and(|id| self.ids.contains(id))
        };
        let (by_id, in_order): (Vec<_>, Vec<_>) = results.into_iter().partition(is_known);
        for result in by_id {
            let place = result.id.as_ref().and_then(|id| self.open_by_id.remove(id));
            if let Some(place) = place {
                self.keep(place, result.read(body), received_ms);
            }
        }
        self.take_in_order(in_order, body, received_ms);
    }

    /// The last results belong to the last calls.
    fn take_in_order(&mut self, mut results: Vec<ResultInRequest>, body: &[u8], received_ms: i64) {
        let mut still_open = Vec::new();
        for (place, name) in std::mem::take(&mut self.open_in_order).into_iter().rev() {
            let fits = |result: &ResultInRequest| result.name.as_deref().is_none_or(|n| n == name);
            match results.pop_if(|result| fits(result)) {
                Some(result) => self.keep(place, result.read(body), received_ms),
                None => still_open.push((place, name)),
            }
        }
        still_open.reverse();
        self.open_in_order = still_open;
    }

    fn keep(&mut self, place: ToolPlace, mut result: ToolResult, received_ms: i64) {
        self.kept += match &result.output {
            serde_json::Value::String(text) => text.len(),
            other => other.to_string().len(),
        };
        if self.kept > MOST_KEPT {
            result.output = serde_json::Value::Null;
        }
        self.returned.insert(
            place,
            Returned {
                result,
                received_ms,
            },
        );
    }
}
