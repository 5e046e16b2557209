//! The tools that a mode uses and the order of their calls: tools from early to late, arcs to the next tool.

use super::colour;
use crate::html::svg::{Anchor, Svg, at};
use crate::html::tools::{ToolFlow, ToolOrder};
use crate::quantity;
use maud::Markup;
use std::collections::BTreeMap;

const WIDTH: f64 = 360.0;
const LINE: f64 = 32.0;
const TOP: f64 = 20.0;
const NODES: f64 = 232.0;
const NAMES: f64 = 146.0;
const WIDEST_ARC: f64 = 9.0;

/// Tools drawn; the rest is one more.
const MOST_TOOLS: usize = 9;

/// Arcs drawn, the most frequent ones.
const MOST_ARCS: usize = 24;

struct Node {
    name: String,
    calls: u64,
    failed: u64,
    repeats: u64,
}

pub(crate) fn tool_flow(flow: &ToolFlow, order: &ToolOrder, mode: usize, name: &str) -> Markup {
    let (nodes, steps) = fold(flow, order);
    let height = TOP + nodes.len() as f64 * LINE + 8.0;
    let spoken: Vec<String> = nodes
        .iter()
        .map(|node| format!("{} {} times", node.name, node.calls))
        .collect();
    let mut svg = Svg::new(
        WIDTH,
        height,
        &format!("Tools of {name}, from early to late: {}", spoken.join(", ")),
    );
    let y = |place: usize| TOP + place as f64 * LINE + LINE / 2.0;
    let class = colour(mode);
    let most = steps.values().copied().max().unwrap_or(1) as f64;
    let mut arcs: Vec<(&(usize, usize), &u64)> =
        steps.iter().filter(|((a, b), _)| a != b).collect();
    arcs.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (&(from, to), &count) in arcs.into_iter().take(MOST_ARCS) {
        let title = format!(
            "{} then {}: {}",
            nodes[from].name,
            nodes[to].name,
            times(count)
        );
        let stroke = (count as f64 / most * WIDEST_ARC).max(0.8);
        // On to a later tool on the right, back to an earlier one on the left.
        svg.arc(
            &format!("{class} arc"),
            at(NODES, y(from)),
            at(NODES, y(to)),
            stroke,
            &title,
        );
    }
    svg.text(
        "tick",
        at(WIDTH - 4.0, 12.0),
        Anchor::End,
        "calls per trial",
    );
    for (place, node) in nodes.iter().enumerate() {
        let size = 3.0
            + 4.0
                * (node.calls as f64
                    / nodes.iter().map(|node| node.calls).max().unwrap_or(1) as f64)
                    .sqrt();
        let mut title = format!("{}: {}", node.name, times(node.calls));
        if node.failed > 0 {
            title.push_str(&format!(", {} failed", node.failed));
        }
        if node.repeats > 0 {
            title.push_str(&format!(", {} right after itself", times(node.repeats)));
        }
        svg.dot(&format!("{class} dot"), at(NODES, y(place)), size, &title);
        svg.text(
            "lane",
            at(NAMES, y(place) + 4.0),
            Anchor::End,
            &short(&node.name),
        );
        let per_trial = node.calls as f64 / flow.trials.max(1) as f64;
        svg.text(
            "tick",
            at(WIDTH - 4.0, y(place) + 4.0),
            Anchor::End,
            &quantity((per_trial * 10.0).round() / 10.0),
        );
    }
    svg.finish()
}

/// Names of tools differ at their ends.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() > 20 {
        true => {
            let (begin, end) = (&letters[..9], &letters[letters.len() - 10..]);
            begin.iter().chain(&['…']).chain(end).collect()
        }
        false => name.to_owned(),
    }
}

fn times(count: u64) -> String {
    crate::caution::count(count, "time", "times")
}

/// The most used tools in the shared order, the rest as one, and the steps between them.
fn fold(flow: &ToolFlow, shared: &ToolOrder) -> (Vec<Node>, BTreeMap<(usize, usize), u64>) {
    let mut order: Vec<usize> = (0..flow.tools.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(flow.tools[*place].calls));
    let (kept, rest) = order.split_at(order.len().min(MOST_TOOLS));
    let mut kept = kept.to_vec();
    kept.sort_by_key(|place| shared.get(&flow.tools[*place].name));
    let mut nodes: Vec<Node> = kept
        .iter()
        .map(|&place| Node {
            name: flow.tools[place].name.clone(),
            calls: flow.tools[place].calls,
            failed: flow.tools[place].failed,
            repeats: 0,
        })
        .collect();
    if !rest.is_empty() {
        let sum = |of: fn(&crate::html::tools::Tool) -> u64| {
            rest.iter().map(|&place| of(&flow.tools[place])).sum()
        };
        nodes.push(Node {
            name: format!("{} other tools", rest.len()),
            calls: sum(|tool| tool.calls),
            failed: sum(|tool| tool.failed),
            repeats: 0,
        });
    }
    let node_of = |tool: usize| {
        kept.iter()
            .position(|&place| place == tool)
            .unwrap_or(kept.len())
    };
    let mut steps: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (&(from, to), &count) in &flow.steps {
        let (from, to) = (node_of(from), node_of(to));
        *steps.entry((from, to)).or_default() += count;
        if from == to {
            nodes[from].repeats += count;
        }
    }
    (nodes, steps)
}
