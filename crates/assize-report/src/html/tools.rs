//! Counts which tool follows which.

use crate::Row;
use crate::row::Call;
use foldhash::fast::FixedState;
use std::borrow::Cow;
use std::collections::HashMap;

/// The most different tools that are counted separately in one mode; the rest are counted together.
const MOST_TOOLS: usize = 200;

/// The calls of all trials of one mode.
#[derive(Debug, Default)]
pub(crate) struct ToolFlow {
    /// Trials that called tools.
    pub(crate) trials: u64,
    pub(crate) tools: Vec<Tool>,
    places: HashMap<String, usize, FixedState>,
    /// The number of calls of the second tool right after the first.
    pub(crate) steps: HashMap<(usize, usize), u64, FixedState>,
}

#[derive(Debug, Default)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Sum over calls of how far into its trial each one came, from 0 to 1.
    pub(crate) lateness: f64,
}

/// A program that is reached through a shell says more than the shell.
fn label<'a>(call: &'a Call<'_>) -> Cow<'a, str> {
    match call.category.as_deref() {
        Some(category) if category != call.name && !category.is_empty() => {
            format!("{} ({category})", call.name).into()
        }
        _ => Cow::Borrowed(&call.name),
    }
}

/// Tools of all modes from early to late, by name.
pub(crate) type ToolOrder = HashMap<String, usize>;

/// One order for all modes, so that their pictures can be compared.
pub(crate) fn shared_order(flows: &[ToolFlow]) -> ToolOrder {
    let mut sums: HashMap<&str, (f64, u64)> = HashMap::new();
    for tool in flows.iter().flat_map(|flow| &flow.tools) {
        let sum = sums.entry(&tool.name).or_default();
        *sum = (sum.0 + tool.lateness, sum.1 + tool.calls);
    }
    let mut names: Vec<(&str, f64)> = sums
        .into_iter()
        .map(|(name, (lateness, calls))| (name, lateness / calls.max(1) as f64))
        .collect();
    names.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(b.0)));
    let numbered = names.into_iter().enumerate();
    numbered
        .map(|(place, (name, _))| (name.to_owned(), place))
        .collect()
}

impl ToolFlow {
    /// Adds the calls of a row. A row without calls in a known form adds nothing.
    pub(crate) fn add_row(&mut self, row: &Row<'_>) {
        let calls = row.calls().unwrap_or_default();
        let last = calls.len().saturating_sub(1).max(1) as f64;
        let mut before = None;
        for (number, call) in calls.iter().enumerate() {
            let place = self.place(&label(call));
            let tool = &mut self.tools[place];
            tool.calls += 1;
            tool.failed += u64::from(call.success == Some(false));
            tool.lateness += number as f64 / last;
            if let Some(before) = before.replace(place) {
                *self.steps.entry((before, place)).or_default() += 1;
            }
        }
        self.trials += u64::from(!calls.is_empty());
    }

    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let name = match self.tools.len() < MOST_TOOLS {
            true => name,
            false => "other tools",
        };
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.tools.push(Tool {
            name: name.to_owned(),
            ..Tool::default()
        });
        self.places.insert(name.to_owned(), self.tools.len() - 1);
        self.tools.len() - 1
    }
}
