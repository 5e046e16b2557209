//! Shards: a plan divided into parts of whole blocks that different machines run. Pure: every machine divides alike.

use crate::plan::{Arm, Plan};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// One of the parts that a plan is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// The number of parts.
    pub count: u32,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.index, self.count)
    }
}

impl Shard {
    /// The end of the ids of its runs in a round.
    pub(crate) fn suffix(self, round: Option<&Round>) -> String {
        let round = round.map_or_else(String::new, |round| format!("-r{}", round.number));
        format!("-{}of{}{round}", self.index, self.count)
    }
}

/// The part of a plan between two looks. Shards run it, are merged, and the merged run is looked at before the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Its first repetition, from 0.
    pub from: u32,
    /// The repetitions that are done when it is.
    pub to: u32,
    /// Arms that earlier looks have stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Arm>,
}

impl Round {
    /// The round in the id of a shard's run. Absent where the run has none.
    pub fn number_in(run_id: &str) -> Option<u32> {
        let (rest, number) = run_id.rsplit_once("-r")?;
        let is_shard = rest
            .rsplit_once('-')
            .is_some_and(|(_, shard)| shard.contains("of"));
        number.parse().ok().filter(|_| is_shard)
    }
}

/// The text is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected I/N with I from 1 to N, for example 3/40")]
pub struct ShardError;

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError)?;
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u32>().map_err(|_| ShardError),
            false => Err(ShardError),
        };
        let (index, count) = (number(index)?, number(count)?);
        match (1..=count).contains(&index) {
            true => Ok(Self { index, count }),
            false => Err(ShardError),
        }
    }
}

/// A part of a plan, and the expected cost of every subject that the division is balanced by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardPlan {
    /// The part.
    pub shard: Shard,
    /// The expected cost of one block of each subject (scenarios, then tasks), in any unit. Subjects beyond the end cost as much as
    /// the last; without any, all cost the same.
    pub costs: Vec<u64>,
    /// Each round is divided for itself, so that all shards have a part of it. Absent: the whole plan at once.
    pub round: Option<Round>,
}

impl ShardPlan {
    /// The places of the shard's cells, in the order of the plan.
    pub fn cells(&self, plan: &Plan) -> Vec<u32> {
        let blocks = self.blocks(plan);
        let stopped = self.round.as_ref().map(|round| &round.stopped);
        let is_on: Vec<bool> = plan
            .arms
            .iter()
            .map(|arm| stopped.is_none_or(|stopped| !stopped.contains(arm)))
            .collect();
        let is_ours = |position: &u32| {
            let cell = plan.cell(*position);
            blocks[cell.block as usize] && is_on[cell.arm as usize]
        };
        (0..plan.len()).filter(is_ours).collect()
    }

    /// The end of the ids of its runs.
    pub(crate) fn suffix(&self) -> String {
        self.shard.suffix(self.round.as_ref())
    }

    /// A number that is equal for equal divisions of one plan.
    pub fn division(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.shard.count.to_le_bytes());
        for cost in &self.costs {
            hasher.update(&cost.to_le_bytes());
        }
        if let Some(round) = &self.round {
            let text = serde_json::to_vec(round).expect("a round is plain data");
            hasher.update(&text);
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// Marks the blocks of the shard, by their numbers.
    fn blocks(&self, plan: &Plan) -> Vec<bool> {
        let (subjects, repetitions) = (plan.subjects(), plan.repetitions);
        let mut ours = vec![false; subjects as usize * repetitions as usize];
        let mut mark = |subject: u32, iteration: u32, shard: u32| {
            if shard + 1 == self.shard.index {
                ours[plan.block(subject, iteration) as usize] = true;
            }
        };
        let mut order: Vec<u32> = (0..subjects).collect();
        // Expensive blocks first, each to the shard with the least so far: no shard ends up more than one block above another.
        order.sort_by_key(|subject| Reverse(self.cost(*subject)));
        let is_even = self.cost(order[0]) == self.cost(order[order.len() - 1]);
        let mut loads: BinaryHeap<Reverse<(u128, u32)>> = match is_even {
            true => BinaryHeap::new(),
            false => (0..self.shard.count)
                .map(|shard| Reverse((0, shard)))
                .collect(),
        };
        let iterations = match &self.round {
            Some(round) => round.from..round.to.min(repetitions),
            None => 0..repetitions,
        };
        let mut next = 0;
        for subject in order {
            for iteration in iterations.clone() {
                let shard = match loads.pop() {
                    None => {
                        let shard = next % self.shard.count;
                        next = shard + 1;
                        shard
                    }
                    Some(Reverse((load, shard))) => {
                        let load = load + u128::from(self.cost(subject));
                        loads.push(Reverse((load, shard)));
                        shard
                    }
                };
                mark(subject, iteration, shard);
            }
        }
        ours
    }

    /// At least 1: blocks without cost would all go to one shard.
    fn cost(&self, subject: u32) -> u64 {
        let cost = self.costs.get(subject as usize).or(self.costs.last());
        cost.copied().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arm, Order};
    use proptest::prelude::*;

    fn plan(subjects: usize, arms: usize, repetitions: u32, order: Order) -> Plan {
        let arm = |number| Arm {
            mode: format!("m{number}"),
            model: "x".into(),
        };
        let names = (0..subjects).map(|number| format!("s{number}")).collect();
        Plan::new(names, (0..arms).map(arm).collect(), repetitions, order, 7).unwrap()
    }

    fn divide(plan: &Plan, count: u32, costs: &[u64]) -> Vec<Vec<u32>> {
        let shard = |index| ShardPlan {
            shard: Shard { index, count },
            costs: costs.to_vec(),
            round: None,
        };
        (1..=count).map(|index| shard(index).cells(plan)).collect()
    }

    proptest! {
        #[test]
        fn shards_are_whole_blocks_and_hold_every_cell_once(
            subjects in 1usize..12, arms in 1usize..5, repetitions in 1u32..6, count in 1u32..20,
            order in prop::sample::select(vec![Order::Blocked, Order::Sequential, Order::Random]),
            costs in prop::collection::vec(0u64..1000, 0..12),
        ) {
            let plan = plan(subjects, arms, repetitions, order);
            let shards = divide(&plan, count, &costs);
            let mut all: Vec<u32> = shards.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..plan.len()).collect::<Vec<_>>());
            let cost = |block: u32| {
                let subject = block % subjects as u32;
                costs.get(subject as usize).or(costs.last()).copied().unwrap_or(1).max(1)
            };
            let mut loads = Vec::new();
            let mut most = 0;
            for cells in shards {
                let mut blocks: Vec<u32> = cells.iter().map(|position| plan.cell(*position).block).collect();
                blocks.sort_unstable();
                prop_assert!(blocks.chunk_by(|a, b| a == b).all(|cells| cells.len() == arms));
                blocks.dedup();
                most = most.max(blocks.iter().map(|block| cost(*block)).max().unwrap_or(0));
                loads.push(blocks.iter().map(|block| cost(*block)).sum::<u64>());
            }
            let (least, largest) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            prop_assert!(largest - least <= most, "{loads:?}");
        }
    }

    #[test]
    fn expensive_subjects_do_not_meet_in_one_shard() {
        let plan = plan(4, 2, 1, Order::Blocked);
        let shards = divide(&plan, 2, &[100, 1, 100, 1]);
        let subjects = |cells: &[u32]| -> Vec<u32> {
            let mut subjects: Vec<u32> = cells.iter().map(|at| plan.cell(*at).scenario).collect();
            subjects.dedup();
            subjects
        };
        assert_eq!(subjects(&shards[0]), [0, 1]);
        assert_eq!(subjects(&shards[1]), [2, 3]);
    }

    #[test]
    fn more_shards_than_blocks_leave_some_empty() {
        let plan = plan(2, 2, 1, Order::Blocked);
        let sizes: Vec<usize> = divide(&plan, 5, &[]).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 0, 0, 0]);
    }

    #[test]
    fn every_round_is_divided_over_all_shards_without_stopped_arms() {
        let plan = plan(4, 3, 6, Order::Blocked);
        let cells = |from, to, stopped: Vec<Arm>| -> Vec<Vec<u32>> {
            let shard = |index| ShardPlan {
                shard: Shard { index, count: 2 },
                costs: vec![100, 1, 100, 1],
                round: Some(Round {
                    number: 1,
                    from,
                    to,
                    stopped: stopped.clone(),
                }),
            };
            (1..=2).map(|index| shard(index).cells(&plan)).collect()
        };
        let mut all: Vec<u32> = Vec::new();
        for (from, to) in [(0, 2), (2, 5), (5, 6)] {
            let shards = cells(from, to, Vec::new());
            let difference = shards[0].len().abs_diff(shards[1].len());
            assert!(difference <= 3, "{shards:?}");
            all.extend(shards.concat());
        }
        all.sort_unstable();
        assert_eq!(all, (0..plan.len()).collect::<Vec<_>>());
        let fewer = cells(2, 5, vec![plan.arms[1].clone()]);
        assert!(fewer.concat().iter().all(|at| plan.cell(*at).arm != 1));
        assert_eq!(fewer.concat().len(), 4 * 2 * 3);
    }

    #[test]
    fn ids_of_runs_tell_their_round() {
        let shard = Shard {
            index: 3,
            count: 40,
        };
        let round = Round {
            number: 2,
            from: 4,
            to: 8,
            stopped: Vec::new(),
        };
        let id = |round: Option<&Round>| format!("20261118-010203-00ff{}", shard.suffix(round));
        assert_eq!(Round::number_in(&id(Some(&round))), Some(2));
        assert_eq!(Round::number_in(&id(None)), None);
        assert_eq!(Round::number_in("20261118-010203-r1"), None);
    }

    #[test]
    fn a_shard_is_written_as_its_place_among_all() {
        assert_eq!(
            "3/40".parse(),
            Ok(Shard {
                index: 3,
                count: 40
            })
        );
        for wrong in [
            "0/4", "5/4", "3", "/", "a/b", "1/0", "-1/2", "+1/2", "1/2/3",
        ] {
            assert_eq!(wrong.parse::<Shard>(), Err(ShardError), "{wrong}");
        }
    }
}
