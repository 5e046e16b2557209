//! Puts a guard into force: the host makes a set of rules, the program enters it just before it replaces the keeper's child.
//!
//! A rule takes some microseconds, and a suite in a crowded directory has hundreds of them for what lies around it. So the host keeps
//! sets with those rules in stock: a start takes one, adds the few rules of its own trial, and another is made while the program
//! runs. A set is used once: it holds paths that only one trial may change.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use nix::errno::Errno;

use crate::guard::{Guard, Surroundings};
use crate::sys;

/// Rules that are ready to be entered, as the kernel knows them.
#[derive(Debug)]
pub(crate) struct Fence(OwnedFd);

impl Fence {
    /// Makes the rules of a guard. Paths that are gone by now are passed over: there is nothing left to allow.
    pub(crate) fn new(guard: &Guard) -> Result<Self, Errno> {
        let limits_ports = guard.ports.is_some();
        let rules = match take(&guard.surroundings, limits_ports) {
            Some(stocked) => stocked.renewed(&guard.surroundings),
            None => around(&guard.surroundings, limits_ports),
        };
        let rules = rules
            .and_then(|rules| with_own(rules, guard))
            .map_err(refused)?;
        let rules: Option<OwnedFd> = rules.into();
        rules.map(Self).ok_or(Errno::EOPNOTSUPP)
    }

    /// Rules that another process made.
    pub(crate) fn received(rules: OwnedFd) -> Self {
        Self(rules)
    }

    pub(crate) fn rules(&self) -> &OwnedFd {
        &self.0
    }

    /// From here on this process and its descendants are inside, for good. Where the kernel knows only some of the rules,
    /// those are in force.
    pub(crate) fn enter(self) -> Result<(), Errno> {
        sys::drop_ways_around();
        nix::sys::prctl::set_no_new_privs()?;
        sys::enter_landlock(&self.0)
    }
}

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

const USE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | Truncate});

/// Without devices: one of a disk would show everything on it.
const CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    Execute | ReadFile | ReadDir | WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir | MakeReg
    | MakeSock | MakeFifo | MakeSym | Refer
});

/// The rules for what lies around a program.
fn around(surroundings: &Surroundings, limits_ports: bool) -> Result<RulesetCreated, RulesetError> {
    // Newer rules are left alone until they are tested with real agents.
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V3))?
        .scope(Scope::from_all(ABI::V6))?;
    if limits_ports {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut rules = ruleset.create()?;
    for (path, access) in entries(surroundings) {
        rules = with_path(rules, path, access)?;
    }
    Ok(rules)
}

fn entries(surroundings: &Surroundings) -> impl Iterator<Item = (&Path, BitFlags<AccessFs>)> {
    let lists = [
        (&surroundings.readable, READ),
        (&surroundings.devices, USE),
        (&surroundings.writable, CHANGE),
    ];
    let entries = lists
        .into_iter()
        .flat_map(|(paths, access)| paths.iter().map(move |path| (path, access)));
    entries.map(|(path, access)| (path.as_path(), access))
}

/// Adds what only this program may do.
fn with_own(mut rules: RulesetCreated, guard: &Guard) -> Result<RulesetCreated, RulesetError> {
    for (paths, access) in [(&guard.shown, READ), (&guard.writable, CHANGE)] {
        for path in paths {
            rules = with_path(rules, path, access)?;
        }
    }
    for port in guard.ports.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

fn with_path(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(file) => rules.add_rule(PathBeneath::new(file, access)),
        Err(_) => Ok(rules),
    }
}

/// The host knows no more of it than of other reasons not to start a program.
fn refused(_: RulesetError) -> Errno {
    match Errno::last() {
        Errno::UnknownErrno => Errno::EPERM,
        errno => errno,
    }
}

/// Sets that wait for a program. One is for the next start, one for another that comes while the first is replaced.
const STOCK: usize = 2;

/// A set of rules that waits. A rule is for a file, not for its name, so that the files are remembered.
struct Stocked {
    rules: RulesetCreated,
    files: Vec<Option<FileId>>,
}

/// Device and number of a file, which a new one may have again, and its last change. Absent for links, whose targets have their own
/// places.
#[derive(PartialEq, Eq)]
struct FileId {
    device: u64,
    number: u64,
    changed: (i64, i64),
}

fn file_id(path: &Path) -> Option<FileId> {
    let found = path.symlink_metadata().ok()?;
    (!found.is_symlink()).then(|| FileId {
        device: found.dev(),
        number: found.ino(),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

impl Stocked {
    fn new(surroundings: &Surroundings, limits_ports: bool) -> Result<Self, RulesetError> {
        // Looked at first: what is replaced meanwhile has another number later.
        let files = entries(surroundings).map(|(path, _)| file_id(path));
        Ok(Self {
            files: files.collect(),
            rules: around(surroundings, limits_ports)?,
        })
    }

    /// The rules, with those for what was replaced since: a directory that a hook builds anew, for example. A rule that is there
    /// already does no harm.
    fn renewed(self, surroundings: &Surroundings) -> Result<RulesetCreated, RulesetError> {
        let mut rules = self.rules;
        for ((path, access), known) in entries(surroundings).zip(self.files) {
            let found = file_id(path);
            if found.is_some() && found != known {
                rules = with_path(rules, path, access)?;
            }
        }
        Ok(rules)
    }
}

/// Sets of rules for the same surroundings.
struct Shelf {
    surroundings: Arc<Surroundings>,
    limits_ports: bool,
    sets: Vec<Stocked>,
    /// Sets that are being made.
    awaited: usize,
}

impl Shelf {
    fn is_for(&self, surroundings: &Arc<Surroundings>, limits_ports: bool) -> bool {
        self.limits_ports == limits_ports && Arc::ptr_eq(&self.surroundings, surroundings)
    }
}

static SHELVES: Mutex<Vec<Shelf>> = Mutex::new(Vec::new());

/// Takes a set, if there is one, and orders its replacement. Outside of a runtime no task can make one, so there is no stock.
fn take(surroundings: &Arc<Surroundings>, limits_ports: bool) -> Option<Stocked> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    let mut shelves = SHELVES.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody else holds surroundings that were looked at anew since.
    shelves.retain(|shelf| Arc::strong_count(&shelf.surroundings) > 1);
    let place = shelves
        .iter()
        .position(|shelf| shelf.is_for(surroundings, limits_ports));
    let place = place.unwrap_or_else(|| {
        shelves.push(Shelf {
            surroundings: Arc::clone(surroundings),
            limits_ports,
            sets: Vec::new(),
            awaited: 0,
        });
        shelves.len() - 1
    });
    let shelf = &mut shelves[place];
    let taken = shelf.sets.pop();
    if shelf.sets.len() + shelf.awaited < STOCK {
        shelf.awaited += 1;
        let surroundings = Arc::clone(surroundings);
        runtime.spawn_blocking(move || restock(&surroundings, limits_ports));
    }
    taken
}

fn restock(surroundings: &Arc<Surroundings>, limits_ports: bool) {
    let made = Stocked::new(surroundings, limits_ports);
    let mut shelves = SHELVES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut shelves = shelves.iter_mut();
    if let Some(shelf) = shelves.find(|shelf| shelf.is_for(surroundings, limits_ports)) {
        shelf.awaited -= 1;
        // What cannot be made is tried again, and reported, by the next start.
        shelf.sets.extend(made.ok());
    }
}
