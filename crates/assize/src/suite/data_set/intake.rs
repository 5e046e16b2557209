//! Takes tasks one by one: chooses, samples, hashes, and remembers no more than where they lie.

use super::{Entry, Reading};
use crate::suite::file_error::{FileError, suggestion};
use assize_contracts::{ConfigError, Task};
use std::collections::{BTreeSet, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Reading stops at this number: more errors would not help.
const MOST_ERRORS: usize = 20;

type Examine<'a> = &'a dyn Fn(&Task) -> Vec<ConfigError>;

pub(super) struct Intake<'a> {
    reading: &'a Reading<'a>,
    examine: Examine<'a>,
    pub(super) errors: Vec<FileError>,
    entries: Vec<Entry>,
    priorities: Vec<i64>,
    sample: BinaryHeap<Drawn>,
    /// Hashes of all ids, to find those that come twice.
    ids: Vec<u64>,
    /// Ids that were asked for and met.
    met: BTreeSet<String>,
    hasher: blake3::Hasher,
}

/// A task in a sample. The largest rank leaves first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    rank: u64,
    number: usize,
    priority: i64,
    offset: u64,
    length: u32,
    file: u32,
}

/// The results of all tasks.
pub(super) struct Taken {
    pub(super) entries: Vec<Entry>,
    pub(super) priorities: Vec<i64>,
    pub(super) hash: String,
    pub(super) errors: Vec<FileError>,
    /// Hashes of ids that came twice.
    pub(super) twins: Vec<u64>,
    /// The hash is still to be made, of the sample alone.
    pub(super) is_sampled: bool,
}

impl<'a> Intake<'a> {
    pub(super) fn new(reading: &'a Reading<'a>, examine: Examine<'a>) -> Self {
        Self {
            reading,
            examine,
            errors: Vec::new(),
            entries: Vec::new(),
            priorities: Vec::new(),
            sample: BinaryHeap::new(),
            ids: reading.taken.iter().map(|id| hash_of(id)).collect(),
            met: BTreeSet::new(),
            hasher: blake3::Hasher::new(),
        }
    }

    /// True when reading on would only bring more errors.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    pub(super) fn offer(
        &mut self,
        task: &Task,
        entry: Entry,
        in_file: impl Fn(ConfigError) -> FileError,
    ) {
        self.ids.push(hash_of(task.id()));
        if self.reading.taken.contains(&task.id()) {
            let message = format!("the id `{}` is already taken by a scenario", task.id());
            self.errors.push(in_file(ConfigError::at(["id"], message)));
        }
        if !self.is_chosen(task) {
            return;
        }
        let found = (self.examine)(task);
        self.errors.extend(found.into_iter().map(in_file));
        match &self.reading.spec.sample {
            None => {
                hash_task(&mut self.hasher, task);
                self.take(entry, task.priority());
            }
            Some(sample) => {
                let seed = sample.seed.unwrap_or(self.reading.seed);
                self.draw(
                    rank_of(seed, task.id()),
                    task.priority(),
                    entry,
                    sample.n as usize,
                );
            }
        }
    }

    fn is_chosen(&mut self, task: &Task) -> bool {
        let chosen = self.reading.chosen;
        if !chosen.ids.is_empty() {
            if !chosen.ids.iter().any(|id| id == task.id()) {
                return false;
            }
            self.met.insert(task.id().to_owned());
        }
        chosen.tags.is_empty()
            || task
                .tags()
                .iter()
                .any(|tag| chosen.tags.iter().any(|known| known == tag))
    }

    fn take(&mut self, entry: Entry, priority: i64) {
        if priority != 0 && self.priorities.is_empty() {
            self.priorities = vec![0; self.entries.len()];
        }
        if priority != 0 || !self.priorities.is_empty() {
            self.priorities.push(priority);
        }
        self.entries.push(entry);
    }

    /// Keeps the `size` tasks of the smallest ranks: the same ones in whatever order they come.
    fn draw(&mut self, rank: u64, priority: i64, entry: Entry, size: usize) {
        self.sample.push(Drawn {
            rank,
            number: self.ids.len(),
            priority,
            offset: entry.offset,
            length: entry.length,
            file: entry.file,
        });
        if self.sample.len() > size {
            self.sample.pop();
        }
    }

    pub(super) fn finish(mut self) -> Taken {
        let is_sampled = self.reading.spec.sample.is_some();
        let mut drawn = std::mem::take(&mut self.sample).into_vec();
        drawn.sort_by_key(|drawn| drawn.number);
        for drawn in drawn {
            let entry = Entry {
                offset: drawn.offset,
                length: drawn.length,
                file: drawn.file,
            };
            self.take(entry, drawn.priority);
        }
        self.miss_asked_for();
        self.ids.sort_unstable();
        let mut twins: Vec<u64> = self
            .ids
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .collect();
        twins.dedup();
        twins.truncate(MOST_ERRORS);
        Taken {
            entries: self.entries,
            priorities: self.priorities,
            hash: hex(&self.hasher),
            errors: self.errors,
            twins,
            is_sampled,
        }
    }

    /// Ids that were asked for and that nothing has.
    fn miss_asked_for(&mut self) {
        for id in &self.reading.chosen.ids {
            let is_scenario = self.reading.taken.iter().any(|taken| {
                taken
                    .strip_prefix(id.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            });
            if !is_scenario && !self.met.contains(id) && self.errors.is_empty() {
                let mut error = FileError::new("tasks", format!("unknown task or scenario `{id}`"));
                error.hint = suggestion(id, &self.reading.taken);
                self.errors.push(error);
            }
        }
    }
}

pub(super) fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

fn rank_of(seed: u64, id: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(id.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

pub(super) fn hash_task(hasher: &mut blake3::Hasher, task: &Task) {
    // A hasher accepts all bytes.
    let _ = serde_json::to_writer(&mut *hasher, task);
    hasher.update(b"\n");
}

pub(super) fn hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}
