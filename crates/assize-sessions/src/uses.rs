//! The events of all sessions of a library, each once, for callers that add them up.

use crate::digest::{Digest, DigestCall, DigestWhat};
use crate::draft::{is_skill_tool, mcp_server};
use crate::library::Library;
use crate::session::Flaws;
use assize_contracts::{ModelCall, TokenBreakdown};
use foldhash::HashMap;
use std::ops::Range;
use std::path::Path;

/// Longer gaps are taken as time without work.
const LONGEST_GAP_MS: i64 = 30 * 60_000;

/// A session's events belong to a session, an agent, perhaps a sub-agent and a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context<'a> {
    /// The number of the session in its library.
    pub session: usize,
    /// The session's own id.
    pub session_id: &'a str,
    /// The agent whose log it is.
    pub agent: &'a str,
    /// The directory that the session worked in.
    pub project: Option<&'a str>,
    /// The model of the call, or of the call that a tool belongs to. Empty where the log names none.
    pub model: &'a str,
    /// The kind of the sub-agent, or its id. Absent for the main agent.
    pub subagent: Option<&'a str>,
    /// The skill that was loaded last since the user's message.
    pub skill: Option<&'a str>,
    /// The MCP server whose results the call was the first to read; of a tool, its server.
    pub mcp: Option<&'a str>,
    /// Milliseconds since 1970.
    pub at_ms: Option<i64>,
}

/// A model call.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallUse<'a> {
    /// The model that answered. Empty where the log names none.
    pub model: &'a str,
    /// The API it was asked through.
    pub api: Option<&'a str>,
    /// The class of service, where it is not the usual one.
    pub service_tier: Option<&'a str>,
    /// Tokens of the call.
    pub tokens: TokenBreakdown,
    /// The part of the cache writes that is kept for an hour.
    pub cache_write_1h: Option<u64>,
    /// HTTP status, where the log has it.
    pub status: Option<u16>,
    /// The agent's own figure, in US dollars.
    pub reported_usd: Option<f64>,
    /// The user took it back. It was spent nevertheless.
    pub is_rewound: bool,
    /// No line of the log shows it; only the agent's own sums do.
    pub is_hidden: bool,
}

impl CallUse<'_> {
    /// The same as prices want it.
    pub fn model_call(&self) -> ModelCall {
        ModelCall {
            model: self.model.to_owned(),
            api: self.api.map(str::to_owned),
            service_tier: self.service_tier.map(str::to_owned),
            tokens: self.tokens,
            cache_write_1h: self.cache_write_1h,
            status: self.status,
            ..ModelCall::default()
        }
    }
}

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct ToolUse<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// Absent where the agent does not report it.
    pub success: Option<bool>,
    /// Time from the call to its result.
    pub duration_ms: Option<u32>,
}

/// Something that is counted.
#[derive(Debug, Clone, Copy)]
pub enum Occurrence<'a> {
    /// A model call.
    Call(CallUse<'a>),
    /// A tool call.
    Tool(ToolUse<'a>),
    /// A message of the user to the main agent.
    Prompt,
    /// An error that was not a tool's.
    Error,
    /// The history was replaced by a summary.
    Compaction,
    /// Time in which the agent worked, in milliseconds.
    Work(i64),
}

/// A view on a library for adding up.
pub struct Uses<'a> {
    library: &'a Library,
    digests: Vec<&'a Digest>,
    roots: Vec<usize>,
    /// The directory of every session.
    projects: Vec<Option<&'a str>>,
    /// The kinds of sub-agents by their ids: a session knows those of the sub-agents it started.
    kinds: HashMap<(&'a str, &'a str), &'a str>,
}

impl<'a> Uses<'a> {
    /// A view on all sessions.
    pub fn of(library: &'a Library) -> Self {
        let digests = library.digests();
        let mut kinds = HashMap::default();
        for digest in &digests {
            for agent in &digest.agents {
                if let Some(kind) = &agent.kind {
                    let id = (digest.origin.agent.as_str(), agent.id.as_str());
                    kinds.entry(id).or_insert(kind.as_str());
                }
            }
        }
        let roots = library.roots_of_digests();
        Self {
            kinds,
            projects: projects(&digests, &roots, library.len()),
            digests,
            roots,
            library,
        }
    }

    /// The defects of the logs, file by file.
    pub fn flaws(&self) -> impl Iterator<Item = (&'a Path, &'a Flaws)> {
        let library = self.library;
        let digests = self.digests.iter().enumerate();
        digests.map(|(place, digest)| (library.path_of_digest(place), &digest.flaws))
    }

    /// The number of parts that can be visited each by itself, by several threads at once.
    pub fn parts(&self) -> usize {
        // The last one has the calls that no line shows.
        self.digests.len() + 1
    }

    /// Calls `visit` for everything that counts.
    pub fn each(&self, visit: impl FnMut(&Context<'a>, Occurrence<'a>)) {
        self.each_in(0..self.parts(), visit);
    }

    /// Calls `visit` for everything that counts in these parts, part by part.
    pub fn each_in(
        &self,
        parts: Range<usize>,
        mut visit: impl FnMut(&Context<'a>, Occurrence<'a>),
    ) {
        for part in parts {
            match self.digests.get(part) {
                Some(digest) => self.each_of_digest(part, digest, &mut visit),
                None => self.each_hidden(&mut visit),
            }
        }
    }

    fn each_of_digest(
        &self,
        part: usize,
        digest: &'a Digest,
        visit: &mut impl FnMut(&Context<'a>, Occurrence<'a>),
    ) {
        let root = self.roots[part];
        let walk = Walk {
            uses: self,
            digest,
            part: part as u32,
            base: Context {
                session: root,
                session_id: self.library.root_id(root),
                agent: &digest.origin.agent,
                project: self.projects[root],
                model: "",
                subagent: None,
                skill: None,
                mcp: None,
                at_ms: None,
            },
            is_child: digest.id != self.library.root_id(root),
        };
        walk.each(visit);
    }

    fn each_hidden(&self, visit: &mut impl FnMut(&Context<'a>, Occurrence<'a>)) {
        for hidden in self.library.hidden() {
            let part = hidden.part as usize;
            let root = self.roots[part];
            let context = Context {
                session: root,
                session_id: self.library.root_id(root),
                agent: &self.digests[part].origin.agent,
                project: self.projects[root],
                model: &hidden.model,
                subagent: None,
                skill: None,
                mcp: None,
                at_ms: Some(hidden.at),
            };
            let call = CallUse {
                model: &hidden.model,
                tokens: hidden.counts.tokens(),
                is_hidden: true,
                ..CallUse::default()
            };
            visit(&context, Occurrence::Call(call));
        }
    }
}

/// The directory of every session: of its earliest part that names one.
fn projects<'a>(digests: &[&'a Digest], roots: &[usize], sessions: usize) -> Vec<Option<&'a str>> {
    let mut projects = vec![None; sessions];
    for (digest, root) in digests.iter().zip(roots) {
        let project = &mut projects[*root];
        if project.is_none() {
            *project = digest.origin.cwd.as_deref();
        }
    }
    projects
}

/// One digest on its way through time.
struct Walk<'w, 'a> {
    uses: &'w Uses<'a>,
    digest: &'a Digest,
    part: u32,
    base: Context<'a>,
    is_child: bool,
}

/// The state of one agent.
#[derive(Clone, Copy, Default)]
struct Thread<'a> {
    skill: Option<&'a str>,
    /// Servers whose results the next call reads first.
    mcp: Option<&'a str>,
}

/// A moment of a digest: a call, an item, or the end of a tool.
#[derive(Clone, Copy)]
enum Moment {
    Call(u32),
    Item(u32),
    ToolEnd(u32),
}

impl<'a> Walk<'_, 'a> {
    fn each(&self, visit: &mut impl FnMut(&Context<'a>, Occurrence<'a>)) {
        let mut threads: Vec<Thread<'a>> = vec![Thread::default(); self.digest.agents.len() + 1];
        let mut last: Option<i64> = None;
        // A call without a model of its own belongs to the current model.
        let first = self
            .digest
            .calls
            .iter()
            .map(|call| call.model)
            .find(|model| *model != 0);
        let mut model = first.map_or("", |model| self.digest.name(model));
        for (at, moment) in self.moments() {
            let (context, is_idle) = match moment {
                Moment::Call(number) => {
                    let call = &self.digest.calls[number as usize];
                    let thread = self.thread(&mut threads, call.agent);
                    let context = Context {
                        model: self.digest.name(call.model),
                        skill: thread.skill,
                        mcp: thread.mcp.take(),
                        ..self.context(call.agent, call.at)
                    };
                    if !context.model.is_empty() {
                        model = context.model;
                    }
                    self.visit_call(number, call, context, visit);
                    (context, false)
                }
                Moment::Item(number) | Moment::ToolEnd(number) => {
                    let item = &self.digest.items[number as usize];
                    let is_end = matches!(moment, Moment::ToolEnd(_));
                    let thread = self.thread(&mut threads, item.agent);
                    let mut context = Context {
                        model,
                        skill: thread.skill,
                        ..self.context(item.agent, item.at)
                    };
                    match item.what {
                        DigestWhat::Tool {
                            name,
                            subject,
                            call,
                            duration_ms,
                            success,
                            has_result,
                        } => {
                            let name = self.digest.name(name);
                            context.mcp = mcp_server(name);
                            let of_call =
                                call.and_then(|call| self.digest.calls.get(call as usize));
                            context.model =
                                of_call.map_or(model, |call| self.digest.name(call.model));
                            if is_skill_tool(name) {
                                thread.skill = subject
                                    .map(|subject| self.digest.name(subject))
                                    .or(thread.skill);
                                context.skill = thread.skill;
                            }
                            thread.mcp = context.mcp.or(thread.mcp);
                            let success = if has_result {
                                success
                            } else {
                                success.or(Some(false))
                            };
                            if !is_end && self.counts(item.identity) {
                                let tool = ToolUse {
                                    name,
                                    success,
                                    duration_ms,
                                };
                                visit(&context, Occurrence::Tool(tool));
                            }
                            (context, false)
                        }
                        DigestWhat::Prompt => {
                            *thread = Thread::default();
                            context.skill = None;
                            let is_main = item.agent == 0 && !self.is_child;
                            if is_main && self.counts(item.identity) {
                                visit(&context, Occurrence::Prompt);
                            }
                            (context, is_main)
                        }
                        DigestWhat::Error => {
                            if self.counts(item.identity) {
                                visit(&context, Occurrence::Error);
                            }
                            (context, false)
                        }
                        DigestWhat::Compaction => {
                            if self.counts(item.identity) {
                                visit(&context, Occurrence::Compaction);
                            }
                            (context, false)
                        }
                    }
                }
            };
            let gap = last.map_or(0, |last| at.saturating_sub(last));
            if gap > 0 && gap <= LONGEST_GAP_MS && !is_idle && self.is_own(moment) {
                visit(&context, Occurrence::Work(gap));
            }
            last = last.max(Some(at));
        }
    }

    /// Calls and items in the order of time; of one moment, a call comes before its tools.
    fn moments(&self) -> Vec<(i64, Moment)> {
        let mut moments = Vec::with_capacity(self.digest.calls.len() + self.digest.items.len() * 2);
        let mut last = i64::MIN;
        for (number, call) in (0_u32..).zip(&self.digest.calls) {
            last = call.at.unwrap_or(last);
            moments.push((last, Moment::Call(number)));
        }
        last = i64::MIN;
        for (number, item) in (0_u32..).zip(&self.digest.items) {
            last = item.at.unwrap_or(last);
            moments.push((last, Moment::Item(number)));
            if let (
                DigestWhat::Tool {
                    duration_ms: Some(duration),
                    ..
                },
                Some(at),
            ) = (item.what, item.at)
            {
                moments.push((
                    at.saturating_add(i64::from(duration)),
                    Moment::ToolEnd(number),
                ));
            }
        }
        moments.sort_by_key(|(at, _)| *at);
        // Moments without a time come first.
        moments
    }

    fn thread<'t>(&self, threads: &'t mut [Thread<'a>], agent: u32) -> &'t mut Thread<'a> {
        let place = (agent as usize).min(threads.len() - 1);
        &mut threads[place]
    }

    fn context(&self, agent: u32, at: Option<i64>) -> Context<'a> {
        let known = (agent as usize)
            .checked_sub(1)
            .and_then(|place| self.digest.agents.get(place));
        let subagent = match known {
            Some(agent) => Some(agent.kind.as_deref().unwrap_or(&agent.id)),
            None if self.is_child => {
                let id = self.digest.id.as_str();
                let kind = self.uses.kinds.get(&(self.base.agent, id)).copied();
                Some(kind.unwrap_or(id))
            }
            None => None,
        };
        Context {
            subagent,
            at_ms: at,
            ..self.base
        }
    }

    fn counts(&self, identity: u64) -> bool {
        self.uses.library.ownership().has_item(self.part, identity)
    }

    fn is_own(&self, moment: Moment) -> bool {
        match moment {
            Moment::Call(number) => self
                .uses
                .library
                .ownership()
                .usage_of(self.part, number)
                .is_some(),
            Moment::Item(number) | Moment::ToolEnd(number) => {
                self.counts(self.digest.items[number as usize].identity)
            }
        }
    }

    fn visit_call(
        &self,
        number: u32,
        call: &DigestCall,
        mut context: Context<'a>,
        visit: &mut impl FnMut(&Context<'a>, Occurrence<'a>),
    ) {
        let Some(spot) = self.uses.library.ownership().usage_of(self.part, number) else {
            return;
        };
        let digest = self.uses.digests[spot.part as usize];
        let best = &digest.calls[spot.call as usize];
        context.model = digest.name(best.model);
        let call = CallUse {
            model: context.model,
            api: best.api.map(|api| digest.name(api)),
            service_tier: best.tier.map(|tier| digest.name(tier)),
            tokens: best.counts.tokens(),
            cache_write_1h: best.cache_write_1h,
            status: best.status,
            reported_usd: best.reported_cost,
            is_rewound: call.is_rewound,
            is_hidden: false,
        };
        visit(&context, Occurrence::Call(call));
    }
}
