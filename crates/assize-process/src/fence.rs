//! Puts a guard into force: the host makes a set of rules, the program enters it just before it replaces the keeper's child.
//!
//! A rule takes some microseconds, and a suite in a crowded directory has hundreds of them for what lies around it. So sets are used
//! again, see `fence/shelf.rs`.

mod shelf;

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use nix::errno::Errno;

use crate::guard::{Guard, Surroundings};
use crate::sys;
use shelf::Set;

pub(crate) use shelf::{note_removed, note_renamed};

/// Rules that are ready to be entered, as the kernel knows them.
#[derive(Debug)]
pub(crate) struct Fence {
    rules: OwnedFd,
    /// To be used again, in the process that made it.
    set: Option<Set>,
}

impl Fence {
    /// Makes the rules of a guard. Paths that are gone by now are passed over: there is nothing left to allow.
    pub(crate) fn new(guard: &Guard) -> Result<Self, Errno> {
        let set = match shelf::take(guard) {
            Some(set) => set.renewed(&guard.surroundings),
            None => Set::new(guard),
        };
        let set = set.and_then(|set| set.with_own(guard)).map_err(refused)?;
        let rules = set.rules().map_err(|_| Errno::EMFILE)?;
        Ok(Self {
            rules: rules.ok_or(Errno::EOPNOTSUPP)?,
            set: Some(set),
        })
    }

    /// Rules that another process made.
    pub(crate) fn received(rules: OwnedFd) -> Self {
        Self { rules, set: None }
    }

    pub(crate) fn rules(&self) -> &OwnedFd {
        &self.rules
    }

    /// From here on this process and its descendants are inside, for good. Where the kernel knows only some of the rules,
    /// those are in force.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        sys::drop_ways_around();
        nix::sys::prctl::set_no_new_privs()?;
        sys::enter_landlock(&self.rules)
    }

    /// Lets the rules serve again. To be called when the program is inside: what is added to them from then on does not concern it.
    pub(crate) fn put_back(self, guard: &Guard) {
        if let Some(set) = self.set {
            shelf::put_back(set, guard);
        }
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

/// The rules for what lies around a program, and for the ports that it may connect to.
fn around(guard: &Guard) -> Result<RulesetCreated, RulesetError> {
    // Newer rules are left alone until they are tested with real agents.
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V3))?
        .scope(Scope::from_all(ABI::V6))?;
    if guard.ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut rules = ruleset.create()?;
    for (path, access) in entries(&guard.surroundings) {
        rules = with_path(rules, path, access)?;
    }
    for port in guard.ports.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
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
