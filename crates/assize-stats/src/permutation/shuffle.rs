//! Random relabelings, many at a time.
//!
//! A relabeling is a set of bits. For several batches of relabelings the entries are walked once, eight at a time: a table of the
//! 256 possible sums of those eight makes one lookup do the work of eight additions, for every relabeling and metric.

use rayon::prelude::*;

use super::column::{Column, Labels, Layout};
use crate::random::{Generator, Stream, coins, index};

/// Relabelings per batch, which are drawn from a generator of their own.
const BATCH: usize = 128;
/// Batches that share tables: enough to pay for them, few enough that their bits fit beside the data.
const TOGETHER: usize = 5;
const BITS: usize = 64;
const TABLE: usize = 256;
const TABLES: usize = BITS / 8;

/// For each column, how many of `permutations` random relabelings are at least as extreme as its observed labels.
///
/// All columns must have the same layout; they share the relabelings.
pub(super) fn count_extreme(columns: &[&Column], permutations: usize, stream: Stream) -> Vec<u64> {
    let Some(layout) = columns.first().map(|column| &column.layout) else {
        return Vec::new();
    };
    let is_varied = |column: &&Column| !column.is_constant();
    let varied: Vec<&Column> = columns.iter().copied().filter(is_varied).collect();
    let mut drawn = count_drawn(&varied, layout, permutations, stream).into_iter();
    let count = |column: &&Column| match column.is_constant() {
        true => u64::from(column.extreme.holds(0.0)) * permutations as u64,
        false => drawn.next().unwrap_or_default(),
    };
    columns.iter().map(count).collect()
}

/// The same by drawing.
fn count_drawn(
    columns: &[&Column],
    layout: &Layout,
    permutations: usize,
    stream: Stream,
) -> Vec<u64> {
    if columns.is_empty() {
        return Vec::new();
    }
    let coins: Vec<(Labels, Coin)> = layout
        .0
        .iter()
        .map(|labels| (*labels, Coin::new(*labels)))
        .collect();
    let draw = |batch: &usize| {
        let count = BATCH.min(permutations - batch * BATCH);
        Batch::draw(&coins, count, &mut stream.generator(*batch))
    };
    let batches: Vec<usize> = (0..permutations.div_ceil(BATCH)).collect();
    batches
        .par_chunks(TOGETHER)
        .map(|batches| {
            let chosen: Vec<Batch> = batches.iter().map(draw).collect();
            columns
                .iter()
                .map(|column| count_in(&chosen, column))
                .collect()
        })
        .reduce(
            || vec![0; columns.len()],
            |left: Vec<u64>, right| left.iter().zip(&right).map(|(l, r)| l + r).collect(),
        )
}

/// The entries that each relabeling of a batch chooses; word `w` of relabeling `p` is at `w * BATCH + p`.
struct Batch {
    words: Vec<u64>,
    count: usize,
}

impl Batch {
    fn draw(layout: &[(Labels, Coin)], count: usize, generator: &mut Generator) -> Self {
        let entries: usize = layout.iter().map(|(labels, _)| labels.runs).sum();
        let mut batch = Self {
            words: vec![0; entries.div_ceil(BITS) * BATCH],
            count,
        };
        let mut choice = Choice::default();
        for relabeling in 0..count {
            let mut start = 0;
            for (labels, coin) in layout {
                choice.draw(*labels, coin, generator);
                batch.paste(&choice.words, start, relabeling);
                start += labels.runs;
            }
        }
        batch
    }

    /// Writes the bits of one scenario at its place among the bits of one relabeling.
    fn paste(&mut self, bits: &[u64], start: usize, relabeling: usize) {
        let shift = start % BITS;
        for (position, &word) in (start / BITS..).zip(bits) {
            self.words[position * BATCH + relabeling] |= word << shift;
            let carried = if shift == 0 {
                0
            } else {
                word >> (BITS - shift)
            };
            if carried != 0 {
                self.words[(position + 1) * BATCH + relabeling] |= carried;
            }
        }
    }
}

/// The relabelings of these batches that are at least as extreme as the observed labels of a column.
fn count_in(batches: &[Batch], column: &Column) -> u64 {
    let sums = sums(batches, &column.entries);
    let is_extreme = |sum: &&f64| column.extreme.holds(**sum);
    let count = |(batch, sums): (&Batch, &[f64; BATCH])| {
        let sums = sums[..batch.count].iter();
        sums.filter(is_extreme).count() as u64
    };
    batches.iter().zip(&sums).map(count).sum()
}

/// The sums of the chosen entries, for each relabeling of each batch.
fn sums(batches: &[Batch], entries: &[f64]) -> Vec<[f64; BATCH]> {
    let mut sums = vec![[0.0; BATCH]; batches.len()];
    let mut tables = [[0.0; TABLE]; TABLES];
    for (place, chunk) in entries.chunks(BITS).enumerate() {
        for (position, table) in tables.iter_mut().enumerate() {
            fill_table(table, chunk.get(position * 8..).unwrap_or_default());
        }
        for (batch, sums) in batches.iter().zip(&mut sums) {
            let words = &batch.words[place * BATCH..][..BATCH];
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += look_up(&tables, word.to_le_bytes());
            }
        }
    }
    sums
}

/// Entry `m` becomes the sum of those of the first eight values whose bit is set in `m`.
fn fill_table(table: &mut [f64; TABLE], values: &[f64]) {
    for bit in 0..8 {
        let value = values.get(bit).copied().unwrap_or(0.0);
        let (without, with) = table.split_at_mut(1 << bit);
        for (target, source) in with.iter_mut().zip(without) {
            *target = *source + value;
        }
    }
}

fn look_up(tables: &[[f64; TABLE]; TABLES], bytes: [u8; TABLES]) -> f64 {
    let part = |position: usize| tables[position][usize::from(bytes[position])];
    ((part(0) + part(1)) + (part(2) + part(3))) + ((part(4) + part(5)) + (part(6) + part(7)))
}

/// A uniformly random choice of a given number of bits.
#[derive(Default)]
struct Choice {
    words: Vec<u64>,
}

impl Choice {
    /// Tosses a coin for every bit, then adds or removes random bits until the number is right. Given how many
    /// the coins chose, every set of that size is equally likely, and so it is after each correction.
    fn draw(&mut self, labels: Labels, coin: &Coin, generator: &mut Generator) {
        self.words.clear();
        self.words
            .extend((0..labels.runs.div_ceil(BITS)).map(|_| coin.toss(generator)));
        if let Some(last) = self.words.last_mut() {
            *last &= u64::MAX >> ((BITS - labels.runs % BITS) % BITS);
        }
        let mut chosen: usize = self
            .words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum();
        while chosen != labels.chosen {
            let bit = index(generator, labels.runs);
            let mask = 1 << (bit % BITS);
            let word = &mut self.words[bit / BITS];
            if chosen > labels.chosen && *word & mask != 0 {
                *word &= !mask;
                chosen -= 1;
            } else if chosen < labels.chosen && *word & mask == 0 {
                *word |= mask;
                chosen += 1;
            }
        }
    }
}

/// A coin that lands near the wanted share; the corrections make up for the rest.
struct Coin {
    /// The share in 2^-digits.
    share: u32,
    digits: u32,
}

impl Coin {
    fn new(labels: Labels) -> Self {
        // Finer than the chance error of the tosses is wasted; up to 2^-8 each digit halves the corrections.
        let wanted = labels.chosen as f64 / labels.runs as f64;
        let digits = if labels.runs < 256 { 4 } else { 8 };
        let share = libm::round(wanted * f64::from(1 << digits)) as u32;
        let spare = share.trailing_zeros().min(digits);
        Self {
            share: share >> spare,
            digits: digits - spare,
        }
    }

    /// Sixty-four tosses at once: from the last binary digit of the share to the first, 1 means OR and 0 means AND.
    fn toss(&self, generator: &mut Generator) -> u64 {
        if self.digits == 0 {
            return if self.share == 0 { 0 } else { u64::MAX };
        }
        (0..self.digits).fold(0, |tosses, digit| {
            let fair = coins(generator);
            if self.share >> digit & 1 == 1 {
                tosses | fair
            } else {
                tosses & fair
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest z score of the count of a bit over many draws.
    fn largest_z(labels: Labels) -> f64 {
        const DRAWS: usize = 20_000;
        let mut generator = Stream::for_purpose(9, "choice").generator(0);
        let mut choice = Choice::default();
        let mut counts = vec![0_u32; labels.runs];
        for _ in 0..DRAWS {
            choice.draw(labels, &Coin::new(labels), &mut generator);
            let chosen: u32 = choice.words.iter().map(|word| word.count_ones()).sum();
            assert_eq!(chosen as usize, labels.chosen);
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (choice.words[bit / BITS] >> (bit % BITS) & 1) as u32;
            }
        }
        let share = labels.chosen as f64 / labels.runs as f64;
        let spread = libm::sqrt(DRAWS as f64 * share * (1.0 - share));
        counts
            .iter()
            .map(|&count| (f64::from(count) - DRAWS as f64 * share).abs() / spread)
            .fold(0.0, f64::max)
    }

    #[test]
    fn every_run_is_chosen_equally_often() {
        for (runs, chosen) in [
            (2, 1),
            (10, 5),
            (10, 3),
            (64, 32),
            (65, 1),
            (130, 100),
            (300, 47),
        ] {
            let z = largest_z(Labels { runs, chosen });
            assert!(z < 4.5, "{chosen} of {runs}: {z}");
        }
    }

    #[test]
    fn every_pair_is_chosen_equally_often() {
        let mut generator = Stream::for_purpose(9, "pairs").generator(0);
        let mut choice = Choice::default();
        let mut counts = [0_u32; 64];
        for _ in 0..60_000 {
            let labels = Labels { runs: 4, chosen: 2 };
            choice.draw(labels, &Coin::new(labels), &mut generator);
            counts[choice.words[0] as usize] += 1;
        }
        let seen: Vec<u32> = counts.into_iter().filter(|&count| count > 0).collect();
        assert_eq!(seen.len(), 6);
        assert!(
            seen.iter().all(|count| count.abs_diff(10_000) < 450),
            "{seen:?}"
        );
    }

    #[test]
    fn tables_give_the_sum_of_the_chosen_entries() {
        let layout = [(37, 11), (100, 50)].map(|(runs, chosen)| {
            let labels = Labels { runs, chosen };
            (labels, Coin::new(labels))
        });
        let entries: Vec<f64> = (0..137).map(f64::from).collect();
        let batch = Batch::draw(
            &layout,
            5,
            &mut Stream::for_purpose(2, "tables").generator(0),
        );
        let sums = &sums(std::slice::from_ref(&batch), &entries)[0];
        for (relabeling, sum) in sums[..5].iter().enumerate() {
            let is_chosen =
                |bit: usize| batch.words[bit / BITS * BATCH + relabeling] >> (bit % BITS) & 1 == 1;
            let expected: f64 = (0..137)
                .filter(|&bit| is_chosen(bit))
                .map(|bit| entries[bit])
                .sum();
            assert_eq!(*sum, expected);
            assert_eq!((0..37).filter(|&bit| is_chosen(bit)).count(), 11);
        }
    }
}
