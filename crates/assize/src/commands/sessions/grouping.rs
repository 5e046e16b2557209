//! Adding up: every event goes into exactly one row, so that the rows come to the total whatever they are grouped by.

use super::costs::{Cost, Costs};
use super::span;
use crate::cli::SessionsBy;
use assize_contracts::{TokenBreakdown, TokenSum};
use assize_sessions::{CallUse, Context, Occurrence, Uses};
use std::collections::{BTreeMap, HashMap, HashSet};

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
    pub(crate) session_count: u64,
    pub(crate) calls: u64,
    pub(crate) hidden_calls: u64,
    pub(crate) rewound_calls: u64,
    tokens: Option<TokenSum>,
    pub(crate) computed_usd: f64,
    pub(crate) reported_usd: f64,
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
            _ => {
                self.sessions.insert(session);
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
            let of_call = TokenSum {
                tokens: call.tokens,
                at_least: call.tokens.total.is_none().then(|| call.tokens.known()),
            };
            self.tokens = Some(self.tokens.map_or(of_call, |sum| sum.plus(&of_call)));
        }
        match cost {
            Cost::Computed(usd) => self.computed_usd += usd,
            Cost::Reported(usd) => self.reported_usd += usd,
            Cost::Unknown => self.unpriced_calls += 1,
        }
    }

    /// A sum is unknown when one call did not report its part; `at_least` holds the known part.
    pub(crate) fn tokens(&self) -> TokenSum {
        self.tokens.unwrap_or_default()
    }

    /// The known part of the tokens, class by class.
    pub(crate) fn known_tokens(&self) -> TokenBreakdown {
        self.tokens().known()
    }

    /// In dollars. Absent where no call has a cost.
    pub(crate) fn cost(&self) -> Option<f64> {
        let has_cost = self.calls > self.unpriced_calls;
        has_cost.then(|| ((self.computed_usd + self.reported_usd) * 1e12).round() / 1e12)
    }

    /// Errors of tools and others.
    pub(crate) fn all_errors(&self) -> u64 {
        self.failed_tools + self.errors
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
        let mut account = Self {
            by,
            ..Self::default()
        };
        let mut rows: Vec<(Vec<Option<String>>, Sums)> = Vec::new();
        let mut places: HashMap<Vec<Part<'_>>, usize> = HashMap::new();
        let mut last: Option<(Vec<Part<'_>>, usize)> = None;
        let mut key: Vec<Part<'_>> = Vec::new();
        uses.each(|context, occurrence| {
            if !wanted.has(context) {
                return;
            }
            let cost = match &occurrence {
                Occurrence::Call(call) => Some(costs.of(call)),
                _ => None,
            };
            if let (Occurrence::Call(call), Some(Cost::Unknown)) = (&occurrence, cost) {
                *account.unpriced.entry(call.model.to_owned()).or_default() += 1;
            }
            key.clear();
            key.extend(
                account
                    .by
                    .iter()
                    .map(|by| Part::of(*by, context, &occurrence)),
            );
            // Events of one session come together, so most are of the row before.
            let place = match &last {
                Some((known, place)) if *known == key => *place,
                _ => {
                    let place = *places.entry(key.clone()).or_insert_with(|| {
                        rows.push((key.iter().map(Part::text).collect(), Sums::default()));
                        rows.len() - 1
                    });
                    last = Some((key.clone(), place));
                    place
                }
            };
            rows[place].1.add(context.session, &occurrence, cost);
            account.total.add(context.session, &occurrence, cost);
        });
        for (key, mut sums) in rows {
            sums.session_count = std::mem::take(&mut sums.sessions).len() as u64;
            account.rows.insert(key, sums);
        }
        account.total.session_count = std::mem::take(&mut account.total.sessions).len() as u64;
        account
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

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some((*text).to_owned()),
            Self::Day(day) | Self::Week(day) => Some(span::day(day * DAY_MS)),
            Self::None => None,
        }
    }
}
