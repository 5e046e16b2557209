//! Random streams that depend on names and the seed only: not on threads, platforms or what else is computed.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

/// The generator handed to resampling code.
pub(crate) type Generator = Xoshiro256PlusPlus;

/// Replicates made from one generator. Fixed, so that the thread count cannot change the draws.
const CHUNK: usize = 512;

/// A named source of generators, one per chunk of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of a pair of modes for one purpose.
    pub(crate) fn for_pair(seed: u64, mode_a: &str, mode_b: &str, purpose: &str) -> Self {
        let mut hash = Fnv::new();
        hash.write(&seed.to_le_bytes());
        for name in [mode_a, mode_b, purpose] {
            // The length keeps ("ab", "c") and ("a", "bc") apart.
            hash.write(&(name.len() as u64).to_le_bytes());
            hash.write(name.as_bytes());
        }
        Self { key: hash.0 }
    }

    /// The stream of a function called without modes.
    pub(crate) fn for_purpose(seed: u64, purpose: &str) -> Self {
        Self::for_pair(seed, "", "", purpose)
    }

    pub(crate) fn generator(self, chunk: usize) -> Generator {
        let mut hash = Fnv(self.key);
        hash.write(&(chunk as u64).to_le_bytes());
        Generator::seed_from_u64(hash.0)
    }

    /// `count` independent draws, made in parallel, always in the same order.
    pub(crate) fn replicates<State: Send>(
        self,
        count: usize,
        state: impl Fn() -> State + Sync,
        draw: impl Fn(&mut Generator, &mut State) -> f64 + Sync,
    ) -> Vec<f64> {
        let mut replicates = vec![0.0; count];
        replicates
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, slots)| {
                let mut generator = self.generator(chunk);
                let mut state = state();
                slots
                    .iter_mut()
                    .for_each(|slot| *slot = draw(&mut generator, &mut state));
            });
        replicates
    }
}

/// A uniform index below `bound` by multiply and shift; the bias is below bound/2^64.
pub(crate) fn index(generator: &mut Generator, bound: usize) -> usize {
    ((u128::from(generator.next_u64()) * bound as u128) >> 64) as usize
}

/// A uniform number strictly between 0 and 1.
pub(crate) fn unit(generator: &mut Generator) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    ((generator.next_u64() >> 11) as f64 + 0.5) * STEP
}

/// Sixty-four fair coins.
pub(crate) fn coins(generator: &mut Generator) -> u64 {
    generator.next_u64()
}

/// FNV-1a, which is the same everywhere and for ever, unlike the standard library's hasher.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_join_to_the_same_text_have_different_streams() {
        let one = Stream::for_pair(1, "ab", "c", "x").generator(0).next_u64();
        let other = Stream::for_pair(1, "a", "bc", "x").generator(0).next_u64();
        assert_ne!(one, other);
    }

    #[test]
    fn a_stream_never_changes() {
        let first = Stream::for_pair(42, "fast", "direct", "bootstrap")
            .generator(0)
            .next_u64();
        assert_eq!(first, FIRST_OF_FAST_AGAINST_DIRECT);
    }

    // Written down once: a different number here means that every stored report would change.
    const FIRST_OF_FAST_AGAINST_DIRECT: u64 = 14_612_845_834_059_977_611;

    #[test]
    fn indices_cover_the_range_evenly() {
        let mut generator = Stream::for_purpose(7, "test").generator(0);
        let mut counts = [0_u32; 5];
        for _ in 0..50_000 {
            counts[index(&mut generator, 5)] += 1;
        }
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 500),
            "{counts:?}"
        );
    }
}
