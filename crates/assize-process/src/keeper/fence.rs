//! Puts a guard into force: a set of rules made by the keeper, entered by its child just before it becomes the program.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use nix::errno::Errno;

use crate::sys;
use crate::wire::GuardOrder;

/// Rules that are ready to be entered.
pub(super) struct Fence(RulesetCreated);

impl Fence {
    /// Paths that are gone by now are passed over: there is nothing left to allow.
    pub(super) fn new(order: &GuardOrder) -> Result<Self, Errno> {
        make(order).map(Self).map_err(refused)
    }

    /// From here on this process and its descendants are inside, for good. Where the kernel knows only some of the rules,
    /// those are in force.
    pub(super) fn enter(self) -> Result<(), Errno> {
        sys::drop_ways_around();
        let entered: Result<RestrictionStatus, _> = self.0.restrict_self();
        entered.map(drop).map_err(refused)
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

fn make(order: &GuardOrder) -> Result<RulesetCreated, RulesetError> {
    // Newer rules are left alone until they are tested with real agents.
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V3))?
        .scope(Scope::from_all(ABI::V6))?;
    if order.ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut rules = ruleset.create()?;
    for (paths, access) in [
        (&order.readable, READ),
        (&order.devices, USE),
        (&order.writable, CHANGE),
    ] {
        for path in paths {
            rules = with_path(rules, path, access)?;
        }
    }
    for port in order.ports.iter().flatten() {
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
