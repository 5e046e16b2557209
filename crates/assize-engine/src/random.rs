//! Seeded choices that are the same on every machine and in every version.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seed for one purpose, derived from the run's seed and the names of what it is for.
pub(crate) fn derive_seed(seed: u64, names: &[&str]) -> u64 {
    // Hashed at once: every trial derives seeds, and a hasher that is fed bit by bit is slow.
    let mut text = Vec::with_capacity(256);
    text.extend(seed.to_le_bytes());
    for name in names {
        // The length keeps ("ab", "c") apart from ("a", "bc").
        text.extend((name.len() as u64).to_le_bytes());
        text.extend(name.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(&text).as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// The seed of one attempt at a cell, given by scenario, mode and model. The same in every run with the same seed.
pub(crate) fn attempt_seed(seed: u64, cell: [&str; 3], iteration: i64, attempt: usize) -> u64 {
    let [scenario, mode, model] = cell;
    let (iteration, attempt) = (iteration.to_string(), attempt.to_string());
    derive_seed(seed, &[scenario, mode, model, &iteration, &attempt])
}

/// Shuffles in place. Written out, because the shuffle of a library may change between versions.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for last in (1..items.len()).rev() {
        let range = last as u128 + 1;
        let chosen = (u128::from(random.next_u64()) * range) >> 64;
        items.swap(last, chosen as usize);
    }
}
