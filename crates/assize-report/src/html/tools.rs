//! Counts which tool follows which.

use serde::Deserialize;
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
    places: HashMap<String, usize>,
    /// The number of calls of the second tool right after the first.
    pub(crate) steps: HashMap<(usize, usize), u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// Sum over calls of how far into its trial each one came, from 0 to 1.
    pub(crate) lateness: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Calls<'a> {
    #[serde(borrow)]
    tool_calls: Option<Records<'a>>,
}

#[derive(Deserialize)]
struct Records<'a> {
    #[serde(borrow, default)]
    records: Vec<Record<'a>>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    category: Option<Cow<'a, str>>,
    #[serde(default)]
    success: Option<bool>,
}

impl Record<'_> {
    /// A program that is reached through a shell says more than the shell.
    fn label(&self) -> Cow<'_, str> {
        match self.category.as_deref() {
            Some(category) if category != self.name && !category.is_empty() => {
                format!("{} ({category})", self.name).into()
            }
            _ => Cow::Borrowed(&self.name),
        }
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
    pub(crate) fn add_row(&mut self, json: &[u8]) {
        let Ok(calls) = serde_json::from_slice::<Calls<'_>>(json) else {
            return;
        };
        let records = calls.tool_calls.map(|calls| calls.records);
        let records = records.unwrap_or_default();
        let last = records.len().saturating_sub(1).max(1) as f64;
        let mut before = None;
        for (number, record) in records.iter().enumerate() {
            let place = self.place(&record.label());
            let tool = &mut self.tools[place];
            tool.calls += 1;
            tool.failed += u64::from(record.success == Some(false));
            tool.lateness += number as f64 / last;
            if let Some(before) = before.replace(place) {
                *self.steps.entry((before, place)).or_default() += 1;
            }
        }
        self.trials += u64::from(!records.is_empty());
    }

    fn place(&mut self, name: &str) -> usize {
        let name = match self.tools.len() < MOST_TOOLS || self.places.contains_key(name) {
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
