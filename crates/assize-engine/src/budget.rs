//! The budget of a run: what was spent, what running blocks may still cost, and whether another block may start.
//!
//! A block starts only when what is left after everything spent and reserved covers it at the dearest block seen so far. Before
//! three are known, one runs at a time, unless the caller knows what blocks like these cost. A started block is finished, so
//! that no mode lacks a trial that the others have.

use assize_contracts::{Budget, ProfileRow, Spent};
use std::collections::HashMap;

/// Blocks that must be known before several run at once.
const KNOWN_BLOCKS: u32 = 3;

/// An amount of everything that can be limited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amounts {
    /// Dollars.
    pub usd: f64,
    pub tokens: f64,
    /// Milliseconds from the first trial of a block to its last.
    pub ms: f64,
}

impl Amounts {
    fn plus(self, other: Self) -> Self {
        Self {
            usd: self.usd + other.usd,
            tokens: self.tokens + other.tokens,
            ms: self.ms + other.ms,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            usd: self.usd.max(other.usd),
            tokens: self.tokens.max(other.tokens),
            ms: self.ms.max(other.ms),
        }
    }

    /// The difference to the other, never below 0.
    fn without(self, other: Self) -> Self {
        Self {
            usd: (self.usd - other.usd).max(0.0),
            tokens: (self.tokens - other.tokens).max(0.0),
            ms: (self.ms - other.ms).max(0.0),
        }
    }
}

/// The reason why no further block starts.
#[derive(Debug, Clone, PartialEq)]
pub enum BudgetStop {
    /// The rest of the budget does not cover another block.
    Reached {
        /// The limits.
        budget: Budget,
        /// Spent so far.
        spent: Amounts,
        /// The dearest block.
        dearest: Amounts,
    },
    /// A trial did not report its cost or tokens.
    Unknown {
        /// The unknown quantity: `cost` or `tokens`.
        what: &'static str,
    },
}

/// Spending of one run. Times are milliseconds since any fixed moment.
#[derive(Debug)]
pub struct Ledger {
    budget: Budget,
    spent: Amounts,
    /// Time that earlier starts of the run took.
    earlier_ms: f64,
    begun_at: f64,
    blocks: HashMap<u32, OpenBlock>,
    /// Blocks whose cost is known.
    known: u32,
    dearest: Amounts,
    /// The caller knows what blocks cost, so several may start at once from the beginning.
    is_expected: bool,
    unknown: Option<&'static str>,
}

/// A block that was started and is not finished.
#[derive(Debug, Default)]
struct OpenBlock {
    /// Cells that are not done: running or waiting.
    open: u32,
    spent: Amounts,
    started_at: f64,
}

impl Ledger {
    /// A ledger at the start of a run. `expected` is what a dear block of an earlier run cost.
    pub fn new(budget: Budget, expected: Option<Amounts>, now_ms: f64) -> Self {
        Self {
            budget,
            spent: Amounts::default(),
            earlier_ms: 0.0,
            begun_at: now_ms,
            blocks: HashMap::new(),
            known: 0,
            dearest: expected.unwrap_or_default(),
            is_expected: expected.is_some(),
            unknown: None,
        }
    }

    /// Takes over trials of earlier starts of the run. `open_of` returns the number of cells of a block that are still to be done.
    pub fn remember(&mut self, rows: &[ProfileRow], open_of: impl Fn(u32) -> u32) {
        let mut of_block: HashMap<u32, Amounts> = HashMap::new();
        for row in rows {
            let spent = self.known_part(row.spent());
            self.spent = self.spent.plus(spent);
            if let Some(block) = row.block.and_then(|block| u32::try_from(block).ok()) {
                let sum = of_block.entry(block).or_default();
                *sum = sum.plus(Amounts {
                    ms: row.duration_ms(),
                    ..spent
                });
            }
        }
        self.earlier_ms = time_of(rows);
        for (block, spent) in of_block {
            match open_of(block) {
                0 => self.note(spent),
                // Killed in the middle: it was started, so it is finished whatever is left.
                open => {
                    let begun = OpenBlock {
                        open,
                        spent,
                        started_at: self.begun_at,
                    };
                    self.blocks.insert(block, begun);
                }
            }
        }
    }

    /// Takes over the cost of something that belongs to no block, such as the warm-up.
    pub fn add(&mut self, spent: Spent) {
        let spent = self.known_part(spent);
        self.spent = self.spent.plus(spent);
    }

    /// True if the block was started and is not finished.
    pub fn is_open(&self, block: u32) -> bool {
        self.blocks.contains_key(&block)
    }

    /// True if a cell of the block may start: the block was started, or it may be.
    pub fn may_start(&self, block: u32, now_ms: f64) -> bool {
        self.blocks.contains_key(&block) || self.may_start_another(now_ms)
    }

    /// True if the budget covers one more block.
    pub fn may_start_another(&self, now_ms: f64) -> bool {
        if self.unknown.is_some() {
            return false;
        }
        let is_new = self.known < KNOWN_BLOCKS && !self.is_expected;
        if is_new && !self.blocks.is_empty() {
            return false;
        }
        let reserved = self
            .blocks
            .values()
            .map(|block| self.dearest.without(block.spent))
            .fold(Amounts::default(), Amounts::plus);
        let covers = |limit: Option<f64>, spent: f64, reserved: f64, next: f64| {
            // An unknown first block needs something to be left at all.
            limit.is_none_or(|limit| {
                let left = limit - spent - reserved;
                left >= next && left > 0.0
            })
        };
        covers(
            self.budget.usd,
            self.spent.usd,
            reserved.usd,
            self.dearest.usd,
        ) && covers(
            self.budget.tokens.map(|tokens| tokens as f64),
            self.spent.tokens,
            reserved.tokens,
            self.dearest.tokens,
        ) && covers(
            self.budget.minutes.map(|minutes| 60_000.0 * minutes),
            self.elapsed(now_ms),
            // Blocks run beside each other: time is not added up.
            0.0,
            self.dearest.ms,
        )
    }

    /// Starts a cell. `cells` is the number of open cells of its block.
    pub fn start(&mut self, block: u32, cells: u32, now_ms: f64) {
        self.blocks.entry(block).or_insert(OpenBlock {
            open: cells,
            spent: Amounts::default(),
            started_at: now_ms,
        });
    }

    /// Settles a trial that ended.
    pub fn settle(&mut self, block: u32, spent: Spent, now_ms: f64) {
        let spent = self.known_part(spent);
        self.spent = self.spent.plus(spent);
        if let Some(open) = self.blocks.get_mut(&block) {
            open.spent = open.spent.plus(spent);
        }
        self.close_cell(block, now_ms);
    }

    /// Gives up a cell that will not run, or was cut off.
    pub fn give_up(&mut self, block: u32, now_ms: f64) {
        self.close_cell(block, now_ms);
    }

    /// Spent so far; the time is that of all starts of the run.
    pub fn spent(&self, now_ms: f64) -> Amounts {
        Amounts {
            ms: self.elapsed(now_ms),
            ..self.spent
        }
    }

    /// The reason why no further trial starts. `None` while the budget allows more.
    pub fn stop(&self, now_ms: f64) -> Option<BudgetStop> {
        if let Some(what) = self.unknown {
            return Some(BudgetStop::Unknown { what });
        }
        (!self.may_start_another(now_ms)).then(|| BudgetStop::Reached {
            budget: self.budget,
            spent: self.spent(now_ms),
            dearest: self.dearest,
        })
    }

    fn elapsed(&self, now_ms: f64) -> f64 {
        self.earlier_ms + (now_ms - self.begun_at).max(0.0)
    }

    /// An unknown amount of something that is limited stops the run: a limit that is not known to hold is none.
    fn known_part(&mut self, spent: Spent) -> Amounts {
        if self.budget.usd.is_some() && spent.usd.is_none() {
            self.unknown.get_or_insert("cost");
        }
        if self.budget.tokens.is_some() && spent.tokens.is_none() {
            self.unknown.get_or_insert("tokens");
        }
        Amounts {
            usd: spent.usd.unwrap_or(0.0),
            tokens: spent.tokens.map_or(0.0, |tokens| tokens as f64),
            ms: 0.0,
        }
    }

    fn close_cell(&mut self, block: u32, now_ms: f64) {
        let Some(open) = self.blocks.get_mut(&block) else {
            return;
        };
        open.open = open.open.saturating_sub(1);
        if open.open == 0 {
            let done = Amounts {
                ms: (now_ms - open.started_at).max(0.0),
                ..open.spent
            };
            self.blocks.remove(&block);
            self.note(done);
        }
    }

    fn note(&mut self, block: Amounts) {
        self.known += 1;
        self.dearest = self.dearest.max(block);
    }
}

/// The time in which any of the trials ran, in milliseconds.
fn time_of(rows: &[ProfileRow]) -> f64 {
    let span = |row: &ProfileRow| Some((row.started_at.unix_ms()?, row.completed_at.unix_ms()?));
    let mut spans: Vec<(i64, i64)> = rows.iter().filter_map(span).collect();
    spans.sort_unstable();
    let (mut total, mut until) = (0, i64::MIN);
    for (start, end) in spans {
        let start = start.max(until);
        total += (end - start).max(0);
        until = until.max(end);
    }
    total as f64
}

/// The dearest block among the trials of a run, to start with when another run of the same kind begins. None where a part is unknown
/// that the budget limits.
pub fn dearest_block(rows: &[ProfileRow], budget: &Budget) -> Option<Amounts> {
    let mut blocks: HashMap<u64, Amounts> = HashMap::new();
    for row in rows {
        let spent = row.spent();
        let is_unknown = (budget.usd.is_some() && spent.usd.is_none())
            || (budget.tokens.is_some() && spent.tokens.is_none());
        if is_unknown {
            return None;
        }
        let sum = blocks.entry(row.block?).or_default();
        *sum = sum.plus(Amounts {
            usd: spent.usd.unwrap_or(0.0),
            tokens: spent.tokens.map_or(0.0, |tokens| tokens as f64),
            ms: row.duration_ms(),
        });
    }
    blocks.into_values().reduce(Amounts::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(usd: f64) -> Spent {
        Spent {
            usd: Some(usd),
            tokens: Some(1),
        }
    }

    fn ledger(usd: f64) -> Ledger {
        let budget = Budget {
            usd: Some(usd),
            ..Budget::default()
        };
        Ledger::new(budget, None, 0.0)
    }

    #[test]
    fn unknown_blocks_run_one_at_a_time_and_known_ones_together() {
        let mut ledger = ledger(10.0);
        for block in 0..3 {
            assert!(ledger.may_start(block, 0.0));
            ledger.start(block, 2, 0.0);
            assert!(!ledger.may_start(block + 1, 0.0), "one at a time");
            assert!(ledger.may_start(block, 0.0), "its other cell");
            ledger.settle(block, dollars(0.5), 1.0);
            ledger.settle(block, dollars(0.5), 2.0);
        }
        for block in 3..10 {
            assert!(ledger.may_start(block, 3.0), "{block}");
            ledger.start(block, 2, 3.0);
        }
        // 3 dollars are spent and 7 reserved.
        assert!(!ledger.may_start(10, 3.0));
        ledger.settle(3, dollars(0.1), 4.0);
        ledger.settle(3, dollars(0.1), 4.0);
        // The block was cheaper than reserved, but not by a whole block.
        assert!(!ledger.may_start(10, 5.0));
    }

    #[test]
    fn a_trial_of_unknown_cost_stops_the_run() {
        let mut ledger = ledger(10.0);
        ledger.start(0, 1, 0.0);
        ledger.settle(0, Spent::default(), 1.0);
        assert_eq!(ledger.stop(1.0), Some(BudgetStop::Unknown { what: "cost" }));
    }

    #[test]
    fn time_counts_for_a_whole_block() {
        let budget = Budget {
            minutes: Some(1.0),
            ..Budget::default()
        };
        let mut ledger = Ledger::new(budget, None, 0.0);
        ledger.start(0, 1, 0.0);
        ledger.settle(0, dollars(0.0), 25_000.0);
        assert!(ledger.may_start(1, 30_000.0));
        assert!(!ledger.may_start(1, 40_000.0));
    }

    /// Eight blocks at once, costs that vary tenfold: over the cap by at most the blocks under way.
    #[test]
    fn the_cap_holds_whatever_blocks_cost() {
        let mut state: u64 = 7;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut over_by_a_block = 0;
        for _ in 0..1000 {
            let mut ledger = ledger(20.0);
            let mut running: Vec<(u32, f64)> = Vec::new();
            let (mut next, mut spent, mut dearest) = (0, 0.0, 0.0_f64);
            loop {
                while running.len() < 8 && ledger.may_start(next, 0.0) {
                    ledger.start(next, 1, 0.0);
                    running.push((next, 10.0_f64.powf(random()) / 10.0));
                    next += 1;
                }
                if running.is_empty() {
                    break;
                }
                let place = (random() * running.len() as f64) as usize;
                let (block, cost) = running.swap_remove(place);
                ledger.settle(block, dollars(cost), 0.0);
                spent += cost;
                dearest = dearest.max(cost);
            }
            over_by_a_block += u32::from(spent > 20.0 + dearest);
            assert!(spent > 15.0, "{spent} of 20 is too careful");
            assert!(spent < 28.0, "{spent}");
        }
        assert!(over_by_a_block <= 10, "{over_by_a_block} of 1000");
    }
}
