//! The part of a log that totals need, without any text: small enough to keep for every log of a machine.

use crate::draft::{Call, CallMarks, Draft, Identity, Item, Name, Subagent, What};
use crate::session::{Flaws, Origin};
use assize_contracts::{TokenBreakdown, Usd};
use serde::{Deserialize, Serialize};

/// One session, or the part of it that one file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub(crate) struct Digest {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) names: Vec<String>,
    pub(crate) agents: Vec<DigestAgent>,
    pub(crate) calls: Vec<DigestCall>,
    pub(crate) items: Vec<DigestItem>,
    pub(crate) flaws: Flaws,
    pub(crate) claims: Vec<DigestClaim>,
}

/// The usage that the agent claims for its session until a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestClaim {
    pub(crate) at: i64,
    pub(crate) model: Name,
    pub(crate) counts: Counts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestAgent {
    pub(crate) id: String,
    pub(crate) kind: Option<String>,
}

/// Tokens in fewer bytes than a `TokenBreakdown` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) struct Counts {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) reasoning: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
}

impl Counts {
    pub(crate) fn of(tokens: &TokenBreakdown) -> Self {
        Self {
            input: tokens.input,
            output: tokens.output,
            reasoning: tokens.reasoning,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
        }
    }

    pub(crate) fn tokens(&self) -> TokenBreakdown {
        TokenBreakdown {
            input: self.input,
            output: self.output,
            reasoning: self.reasoning,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            ..TokenBreakdown::default()
        }
        .with_totals()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DigestCall {
    pub(crate) marks: CallMarks,
    pub(crate) agent: u32,
    pub(crate) model: Name,
    pub(crate) api: Option<Name>,
    pub(crate) tier: Option<Name>,
    pub(crate) counts: Counts,
    pub(crate) cache_write_1h: Option<u64>,
    pub(crate) reported_cost: Option<f64>,
    pub(crate) at: Option<i64>,
    pub(crate) status: Option<u16>,
    pub(crate) is_side: bool,
    pub(crate) is_rewound: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestItem {
    pub(crate) identity: Identity,
    pub(crate) at: Option<i64>,
    pub(crate) agent: u32,
    pub(crate) what: DigestWhat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DigestWhat {
    Prompt,
    Tool {
        name: Name,
        subject: Option<Name>,
        call: Option<u32>,
        duration_ms: Option<u32>,
        success: Option<bool>,
        has_result: bool,
    },
    Error,
    Compaction,
}

impl Digest {
    pub(crate) fn of(draft: &mut Draft) -> Self {
        let calls = std::mem::take(&mut draft.calls);
        let calls = calls
            .iter()
            .map(|call| DigestCall::of(call, draft))
            .collect();
        Self {
            id: std::mem::take(&mut draft.id),
            parent: draft.parent.take(),
            origin: std::mem::take(&mut draft.origin),
            agents: draft.agents.iter().map(DigestAgent::of).collect(),
            calls,
            items: draft.items.iter().filter_map(DigestItem::of).collect(),
            flaws: draft.flaws,
            claims: draft.claims.iter().map(DigestClaim::of).collect(),
            names: draft.names.all().to_vec(),
        }
    }

    pub(crate) fn name(&self, name: Name) -> &str {
        self.names.get(name as usize).map_or("", String::as_str)
    }

    /// The first moment, by which sessions are ordered.
    pub(crate) fn started(&self) -> Option<i64> {
        let of_calls = self.calls.iter().filter_map(|call| call.at);
        let of_items = self.items.iter().filter_map(|item| item.at);
        of_calls.chain(of_items).min()
    }
}

impl DigestClaim {
    fn of(claim: &crate::draft::Claim) -> Self {
        Self {
            at: claim.at,
            model: claim.model,
            counts: Counts::of(&claim.tokens),
        }
    }
}

impl DigestAgent {
    fn of(agent: &Subagent) -> Self {
        Self {
            id: agent.id.clone(),
            kind: agent.kind.clone(),
        }
    }
}

impl DigestCall {
    fn of(call: &Call, draft: &mut Draft) -> Self {
        Self {
            marks: call.marks,
            agent: call.agent,
            model: call.model,
            api: call.api.map(|api| draft.names.of(api)),
            tier: call
                .service_tier
                .as_deref()
                .map(|tier| draft.names.of(tier)),
            counts: Counts::of(&call.tokens),
            cache_write_1h: call.cache_write_1h,
            reported_cost: call.reported_cost.map(Usd::value),
            at: call.first.or(call.started),
            status: call.status,
            is_side: call.is_side,
            is_rewound: call.is_rewound,
        }
    }
}

impl DigestItem {
    /// Texts belong to their call and need no place of their own.
    fn of(item: &Item) -> Option<Self> {
        let what = match &item.what {
            What::Prompt(_) => DigestWhat::Prompt,
            What::Tool(tool) => DigestWhat::Tool {
                name: tool.name,
                subject: tool.subject,
                call: tool.call,
                duration_ms: crate::assemble::tool_duration(tool, item.at).map(|(ms, _)| ms as u32),
                success: tool.success,
                has_result: tool.has_result,
            },
            What::Error { .. } => DigestWhat::Error,
            What::Compaction => DigestWhat::Compaction,
            What::Reasoning(..) | What::Text(..) => return None,
        };
        Some(Self {
            identity: item.identity,
            at: item.at,
            agent: item.agent,
            what,
        })
    }
}
