//! Adding up: every event goes into exactly one row, so that the rows come to the total whatever they are grouped by.

use super::costs::{Cost, Costs};
use super::span;
use crate::cli::SessionsBy;
use assize_contracts::{TokenBreakdown, TokenSum};
use assize_sessions::{CallUse, Context, Occurrence, Uses};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The events that are counted.
pub(crate) struct Wanted<'a> {
    pub(crate) agents: &'a [String],
    /// A part of the project's path.
    pub(crate) project: Option<&'a str>,
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

impl Wanted<'_> {
    fn has(&self, context: &Context<'_>) -> bool {
        let is_agent =
            self.agents.is_empty() || self.agents.iter().any(|agent| agent == context.agent);
        let is_project = self.project.is_none_or(|part| {
            context
                .project
                .is_some_and(|project| project.contains(part))
        });
        // An event without a time is of no span.
        let is_in_time = match context.at_ms {
            Some(at) => {
                self.since.is_none_or(|since| at >= since)
                    && self.until.is_none_or(|until| at < until)
            }
            None => self.since.is_none() && self.until.is_none(),
        };
        is_agent && is_project && is_in_time
    }
}

/// All rows and their sum.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) by: Vec<SessionsBy>,
    /// By their keys, one for each of `by`. Absent: unknown, or none.
    pub(crate) rows: BTreeMap<Vec<Option<String>>, Sums>,
    pub(crate) total: Sums,
    /// Calls without a price, by model.
    pub(crate) unpriced: BTreeMap<String, u64>,
}

/// The sums of a row.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sums {
    sessions: HashSet<usize>,
    /// The one that was added last: events of one session come together.
    last_session: Option<usize>,
    pub(crate) session_count: u64,
    pub(crate) calls: u64,
    pub(crate) hidden_calls: u64,
    pub(crate) rewound_calls: u64,
    tokens: Tokens,
    /// In units of 1e-12 dollars: whole numbers add up to the same in any order.
    computed: u128,
    reported: u128,
    pub(crate) unpriced_calls: u64,
    pub(crate) prompts: u64,
    pub(crate) tools: u64,
    pub(crate) failed_tools: u64,
    pub(crate) unknown_tools: u64,
    pub(crate) errors: u64,
    pub(crate) compactions: u64,
    pub(crate) work_ms: i64,
}

impl Sums {
    fn add(&mut self, session: usize, occurrence: &Occurrence<'_>, cost: Option<Cost>) {
        match occurrence {
            Occurrence::Work(_) => {}
            _ if self.last_session == Some(session) => {}
            _ => {
                self.sessions.insert(session);
                self.last_session = Some(session);
            }
        }
        match occurrence {
            Occurrence::Call(call) => self.add_call(call, cost.unwrap_or(Cost::Unknown)),
            Occurrence::Tool(tool) => {
                self.tools += 1;
                self.failed_tools += u64::from(tool.success == Some(false));
                self.unknown_tools += u64::from(tool.success.is_none());
            }
            Occurrence::Prompt => self.prompts += 1,
            Occurrence::Error => self.errors += 1,
            Occurrence::Compaction => self.compactions += 1,
            Occurrence::Work(milliseconds) => {
                self.work_ms = self.work_ms.saturating_add(*milliseconds);
            }
        }
    }

    fn add_call(&mut self, call: &CallUse<'_>, cost: Cost) {
        self.calls += 1;
        self.hidden_calls += u64::from(call.is_hidden);
        self.rewound_calls += u64::from(call.is_rewound);
        let is_refused = call.status.is_some_and(|status| status >= 400);
        if !is_refused {
            self.tokens.add(&call.tokens);
        }
        match cost {
            Cost::Computed(picos) => self.computed += picos,
            Cost::Reported(picos) => self.reported += picos,
            Cost::Unknown => self.unpriced_calls += 1,
        }
    }

    /// Both together.
    fn plus(&mut self, other: &Self) {
        self.sessions.extend(&other.sessions);
        self.tokens.plus(&other.tokens);
        self.computed += other.computed;
        self.reported += other.reported;
        self.work_ms = self.work_ms.saturating_add(other.work_ms);
        for (sum, count) in [
            (&mut self.calls, other.calls),
            (&mut self.hidden_calls, other.hidden_calls),
            (&mut self.rewound_calls, other.rewound_calls),
            (&mut self.unpriced_calls, other.unpriced_calls),
            (&mut self.prompts, other.prompts),
            (&mut self.tools, other.tools),
            (&mut self.failed_tools, other.failed_tools),
            (&mut self.unknown_tools, other.unknown_tools),
            (&mut self.errors, other.errors),
            (&mut self.compactions, other.compactions),
        ] {
            *sum += count;
        }
    }

    /// A sum is unknown when one call did not report its part; `at_least` holds the known part, also of classes that only some agents report.
    pub(crate) fn tokens(&self) -> TokenSum {
        self.tokens.sum()
    }

    /// The known part of the tokens, class by class.
    pub(crate) fn known_tokens(&self) -> TokenBreakdown {
        self.tokens().known()
    }

    /// In dollars. Absent where no call has a cost.
    pub(crate) fn cost(&self) -> Option<f64> {
        let has_cost = self.calls > self.unpriced_calls;
        has_cost.then(|| dollars(self.computed + self.reported))
    }

    /// The part of the cost that comes from price tables.
    pub(crate) fn computed_usd(&self) -> f64 {
        dollars(self.computed)
    }

    /// The part of the cost that agents report.
    pub(crate) fn reported_usd(&self) -> f64 {
        dollars(self.reported)
    }

    /// Errors of tools and others.
    pub(crate) fn all_errors(&self) -> u64 {
        self.failed_tools + self.errors
    }
}

fn dollars(picos: u128) -> f64 {
    picos as f64 / 1e12
}

/// The tokens of a row, added up so that the order does not matter.
#[derive(Debug, Default, Clone, Copy)]
struct Tokens {
    /// A count that one call does not report is unknown. Absent without any call.
    exact: Option<TokenBreakdown>,
    /// The total of a call is unknown.
    has_unknown: bool,
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
    active: u64,
}

impl Tokens {
    fn add(&mut self, tokens: &TokenBreakdown) {
        let known = |count: Option<u64>| count.unwrap_or(0);
        self.plus(&Self {
            exact: Some(*tokens),
            has_unknown: tokens.total.is_none(),
            input: known(tokens.input),
            output: known(tokens.output),
            reasoning: known(tokens.reasoning),
            cache_read: known(tokens.cache_read),
            cache_write: known(tokens.cache_write),
            active: known(tokens.active.or_else(|| tokens.known().active)),
        });
    }

    /// Both together.
    fn plus(&mut self, other: &Self) {
        self.exact = match (self.exact, other.exact) {
            (Some(sum), Some(next)) => Some(sum.plus(&next)),
            (sum, next) => sum.or(next),
        };
        self.has_unknown |= other.has_unknown;
        for (sum, count) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.active, other.active),
        ] {
            *sum = sum.saturating_add(count);
        }
    }

    fn sum(&self) -> TokenSum {
        let tokens = self.exact.unwrap_or_default();
        let known = TokenBreakdown {
            input: Some(self.input),
            output: Some(self.output),
            reasoning: Some(self.reasoning),
            cache_read: Some(self.cache_read),
            cache_write: Some(self.cache_write),
            ..TokenBreakdown::default()
        };
        // A class is known of some calls only.
        let is_part = [
            (self.input, tokens.input),
            (self.output, tokens.output),
            (self.reasoning, tokens.reasoning),
            (self.cache_read, tokens.cache_read),
            (self.cache_write, tokens.cache_write),
        ]
        .iter()
        .any(|(known, exact)| exact.is_none() && *known > 0);
        let at_least = match self.has_unknown {
            true => Some(TokenBreakdown {
                active: Some(self.active),
                ..known.with_totals()
            }),
            false => is_part.then_some(TokenBreakdown {
                total: tokens.total,
                active: tokens.active,
                ..known
            }),
        };
        TokenSum { tokens, at_least }
    }
}

impl Account {
    pub(crate) fn of(
        uses: &Uses<'_>,
        by: &[SessionsBy],
        wanted: &Wanted<'_>,
        costs: &mut Costs<'_>,
    ) -> Self {
        let usual = [
            SessionsBy::Day,
            SessionsBy::Project,
            SessionsBy::Agent,
            SessionsBy::Model,
        ];
        let by = match by.is_empty() {
            true => usual.to_vec(),
            false => by.to_vec(),
        };
        let parts = uses.parts();
        let share = parts.div_ceil(rayon::current_num_threads() * SHARES);
        let shares: Vec<usize> = (0..parts).step_by(share).collect();
        let shares: Vec<Share<'_>> = shares
            .into_par_iter()
            .map(|from| {
                let parts = from..(from + share).min(parts);
                Share::of(uses, parts, &by, wanted, costs.fork())
            })
            .collect();
        let mut account = Self {
            by,
            ..Self::default()
        };
        for share in shares {
            for (key, sums) in share.rows {
                account.rows.entry(key).or_default().plus(&sums);
            }
            for (model, calls) in share.unpriced {
                *account.unpriced.entry(model).or_default() += calls;
            }
            costs.join(share.costs);
        }
        for sums in account.rows.values_mut() {
            account.total.plus(sums);
            sums.session_count = std::mem::take(&mut sums.sessions).len() as u64;
        }
        account.total.session_count = std::mem::take(&mut account.total.sessions).len() as u64;
        account
    }
}

/// So many shares of the work are made for every core: they are not equally large.
const SHARES: usize = 2;

/// The rows of some parts of the logs.
struct Share<'p> {
    rows: Vec<(Vec<Option<String>>, Sums)>,
    unpriced: BTreeMap<String, u64>,
    costs: Costs<'p>,
}

impl<'p> Share<'p> {
    fn of(
        uses: &Uses<'_>,
        parts: Range<usize>,
        by: &[SessionsBy],
        wanted: &Wanted<'_>,
        mut costs: Costs<'p>,
    ) -> Self {
        let mut unpriced: BTreeMap<String, u64> = BTreeMap::new();
        let mut rows: Vec<(Vec<Option<String>>, Sums)> = Vec::new();
        let mut places: HashMap<Vec<Part<'_>>, usize> = HashMap::new();
        let mut last: Vec<Part<'_>> = Vec::new();
        let mut last_place = 0;
        let mut key: Vec<Part<'_>> = Vec::new();
        uses.each_in(parts, |context, occurrence| {
            if !wanted.has(context) {
                return;
            }
            let cost = match &occurrence {
                Occurrence::Call(call) => Some(costs.of(call)),
                _ => None,
            };
            if let (Occurrence::Call(call), Some(Cost::Unknown)) = (&occurrence, cost) {
                *unpriced.entry(call.model.to_owned()).or_default() += 1;
            }
            key.clear();
            key.extend(by.iter().map(|by| Part::of(*by, context, &occurrence)));
            // Events of one session come together, so most are of the row before.
            let is_last = last.len() == key.len() && last.iter().zip(&key).all(|(a, b)| a.is(b));
            if !is_last {
                last_place = match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        rows.push((key.iter().map(Part::text).collect(), Sums::default()));
                        places.insert(key.clone(), rows.len() - 1);
                        rows.len() - 1
                    }
                };
                last.clone_from(&key);
            }
            rows[last_place].1.add(context.session, &occurrence, cost);
        });
        Self {
            rows,
            unpriced,
            costs,
        }
    }
}

/// A part of a row's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part<'a> {
    Text(&'a str),
    /// Days since 1970.
    Day(i64),
    /// The first day of a week.
    Week(i64),
    None,
}

const DAY_MS: i64 = 86_400_000;

impl<'a> Part<'a> {
    fn of(by: SessionsBy, context: &Context<'a>, occurrence: &Occurrence<'a>) -> Self {
        let text = |text: Option<&'a str>| {
            text.filter(|text| !text.is_empty())
                .map_or(Self::None, Self::Text)
        };
        match by {
            SessionsBy::Day => context
                .at_ms
                .map_or(Self::None, |at| Self::Day(at.div_euclid(DAY_MS))),
            SessionsBy::Week => context.at_ms.map_or(Self::None, |at| {
                let day = at.div_euclid(DAY_MS);
                Self::Week(day - (day + 3).rem_euclid(7))
            }),
            SessionsBy::Project => text(context.project),
            SessionsBy::Agent => text(Some(context.agent)),
            SessionsBy::Model => text(Some(context.model)),
            SessionsBy::Subagent => text(context.subagent.or(Some("main agent"))),
            SessionsBy::Skill => text(context.skill),
            SessionsBy::Mcp => text(context.mcp),
            SessionsBy::Session => text(Some(context.session_id)),
            SessionsBy::Tool => match occurrence {
                Occurrence::Tool(tool) => text(Some(tool.name)),
                _ => Self::None,
            },
        }
    }

    /// True for the same text in the same place, which is faster than comparing texts. Equal texts elsewhere are found by their hash.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), Self::Text(other)) => std::ptr::eq(*text, *other),
            _ => self == other,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some((*text).to_owned()),
            Self::Day(day) | Self::Week(day) => Some(span::day(day * DAY_MS)),
            Self::None => None,
        }
    }
}
