//! Values by key in the order of the keys' first appearance, which is the order in which findings are shown.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::Hash;

/// Keys come from agents and are hashed on every trace: quick, and seeded against chosen collisions.
pub(super) type FastMap<K, V> = HashMap<K, V, RandomState>;

pub(super) struct Grouped<K, V> {
    positions: FastMap<K, usize>,
    pub(super) groups: Vec<(K, V)>,
}

impl<K: Hash + Eq + Clone, V: Default> Grouped<K, V> {
    pub(super) fn new() -> Self {
        let positions = FastMap::default();
        let groups = Vec::new();
        Self { positions, groups }
    }

    /// The position of the key's group, which is made if it is new.
    pub(super) fn position(&mut self, key: K) -> usize {
        let next = self.groups.len();
        let position = *self.positions.entry(key.clone()).or_insert(next);
        if position == next {
            self.groups.push((key, V::default()));
        }
        position
    }

    pub(super) fn of(&mut self, key: K) -> &mut V {
        let position = self.position(key);
        &mut self.groups[position].1
    }
}

/// Counts each distinct thing.
pub(super) fn tally<T: Hash + Eq + Copy>(things: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = Grouped::new();
    for thing in things {
        *counts.of(thing) += 1;
    }
    counts.groups
}
