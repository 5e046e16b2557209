//! Sets of rules that are used again.
//!
//! A set holds the many rules for what lies around a program, and the few for what only that program may change. The kernel copies it
//! when a program enters, so that what is added later concerns only programs that enter later. What was added before cannot be taken
//! away; so a set waits until the places of the programs that had it are removed, or until another program has the same.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use landlock::{RulesetCreated, RulesetError};

use super::{around, entries, with_path};
use crate::guard::{Guard, Surroundings};

/// The kernel keeps removed places in mind as long as a rule names them, so a set serves only so often.
const MOST_USES: u32 = 64;

/// More sets than this do not wait.
const MOST_SETS: usize = 128;

/// Changes in the same tick of the clock cannot be distinguished.
const TICK: Duration = Duration::from_millis(20);

/// A set of rules.
#[derive(Debug)]
pub(super) struct Set {
    rules: RulesetCreated,
    seen: Seen,
    /// Places of programs that had it which may still be there.
    taken: BTreeSet<PathBuf>,
    uses: u32,
}

impl Set {
    /// A set for what lies around a program.
    pub(super) fn new(guard: &Guard) -> Result<Self, RulesetError> {
        // Looked at first: what is replaced meanwhile is another file later.
        let seen = Seen::new(&guard.surroundings);
        Ok(Self {
            rules: around(guard)?,
            seen,
            taken: BTreeSet::new(),
            uses: 0,
        })
    }

    /// The same with rules for what was replaced since: a directory that a hook builds anew, for example.
    pub(super) fn renewed(mut self, surroundings: &Surroundings) -> Result<Self, RulesetError> {
        let replaced = self.seen.look_again();
        if replaced.is_empty() {
            return Ok(self);
        }
        let replaced = entries(surroundings).filter(|(path, _)| replaced.contains(*path));
        for (path, access) in replaced {
            self.rules = with_path(self.rules, path, access)?;
        }
        Ok(self)
    }

    /// The same with what only this program may do.
    pub(super) fn with_own(mut self, guard: &Guard) -> Result<Self, RulesetError> {
        self.rules = super::with_own(self.rules, guard)?;
        Ok(self)
    }

    /// The rules to enter. `None` where the kernel knows none of them.
    pub(super) fn rules(&self) -> io::Result<Option<OwnedFd>> {
        Ok(self.rules.try_clone()?.into())
    }

    /// True if it allows nothing that this program may not do.
    fn fits(&self, guard: &Guard) -> bool {
        let mut taken = self.taken.iter();
        taken.all(|place| guard.writable.contains(place))
    }
}

/// The files around a program when rules were made for them. A rule is for a file, not for its name.
#[derive(Debug)]
struct Seen {
    at: SystemTime,
    /// By the directory they are in.
    directories: HashMap<PathBuf, Directory>,
}

#[derive(Debug, Default)]
struct Directory {
    state: Option<State>,
    /// The numbers of its files, by their names. The kernel gives the number of a file that a rule is for to no other.
    entries: HashMap<OsString, Option<u64>>,
}

/// Device and number of a directory, and its last change, which every file that is put there causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    device: u64,
    number: u64,
    changed: (i64, i64),
}

impl State {
    fn of(directory: &Path) -> Option<Self> {
        let found = directory.symlink_metadata().ok()?;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    fn changed_at(self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        UNIX_EPOCH + Duration::new(seconds.max(0) as u64, nanos as u32)
    }
}

impl Seen {
    fn new(surroundings: &Surroundings) -> Self {
        let mut directories: HashMap<PathBuf, Directory> = HashMap::new();
        for (path, _) in entries(surroundings) {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let directory = directories.entry(parent.to_owned()).or_default();
            directory.entries.insert(name.to_owned(), None);
        }
        let mut seen = Self {
            at: UNIX_EPOCH,
            directories,
        };
        seen.look_again();
        seen
    }

    /// The files that are other ones than before. They are looked for only in directories that were changed.
    fn look_again(&mut self) -> HashSet<PathBuf> {
        let (before, now) = (self.at, SystemTime::now());
        let mut replaced = HashSet::new();
        for (path, directory) in &mut self.directories {
            let state = State::of(path);
            let is_surely_old = |state: State| state.changed_at() + TICK < before;
            if state.is_some_and(is_surely_old) && state == directory.state {
                continue;
            }
            directory.state = state;
            for found in fs::read_dir(path).into_iter().flatten().flatten() {
                // The target of a link has its own place.
                if found.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    continue;
                }
                let number = Some(found.ino());
                if let Some(known) = directory.entries.get_mut(&found.file_name())
                    && *known != number
                {
                    *known = number;
                    replaced.insert(found.path());
                }
            }
        }
        self.at = now;
        replaced
    }
}

/// Sets for programs in the same surroundings that are shown the same and may connect to the same ports.
struct Shelf {
    surroundings: Arc<Surroundings>,
    shown: Vec<PathBuf>,
    ports: Option<Vec<u16>>,
    sets: Vec<Set>,
}

impl Shelf {
    fn is_for(&self, guard: &Guard) -> bool {
        Arc::ptr_eq(&self.surroundings, &guard.surroundings)
            && (&self.shown, &self.ports) == (&guard.shown, &guard.ports)
    }
}

static SHELVES: Mutex<Vec<Shelf>> = Mutex::new(Vec::new());

fn shelves() -> MutexGuard<'static, Vec<Shelf>> {
    SHELVES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a set that this program may have. The one that waited least: it has the fewest files to look at again.
pub(super) fn take(guard: &Guard) -> Option<Set> {
    let mut shelves = shelves();
    let shelf = shelves.iter_mut().find(|shelf| shelf.is_for(guard))?;
    let place = shelf.sets.iter().rposition(|set| set.fits(guard))?;
    Some(shelf.sets.remove(place))
}

/// Puts a set back that a program has entered. It can be had again when the places of that program are gone.
pub(super) fn put_back(mut set: Set, guard: &Guard) {
    set.uses += 1;
    set.taken.extend(guard.writable.iter().cloned());
    if set.uses >= MOST_USES {
        return;
    }
    let mut shelves = shelves();
    // Nobody else holds surroundings that were looked at anew since.
    shelves.retain(|shelf| Arc::strong_count(&shelf.surroundings) > 1);
    let place = shelves.iter().position(|shelf| shelf.is_for(guard));
    let place = place.unwrap_or_else(|| {
        shelves.push(Shelf {
            surroundings: Arc::clone(&guard.surroundings),
            shown: guard.shown.clone(),
            ports: guard.ports.clone(),
            sets: Vec::new(),
        });
        shelves.len() - 1
    });
    let shelf = &mut shelves[place];
    if shelf.sets.len() >= MOST_SETS {
        shelf.sets.remove(0);
    }
    shelf.sets.push(set);
}

/// Says that a place was removed and that nothing will have its name again.
pub(crate) fn note_removed(place: &Path) {
    for set in shelves().iter_mut().flat_map(|shelf| &mut shelf.sets) {
        set.taken.remove(place);
    }
}

/// Says that a place has another name now, which nothing had.
pub(crate) fn note_renamed(from: &Path, to: &Path) {
    for set in shelves().iter_mut().flat_map(|shelf| &mut shelf.sets) {
        if set.taken.remove(from) {
            set.taken.insert(to.to_owned());
        }
    }
}
