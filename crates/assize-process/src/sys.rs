//! The few system calls without a safe wrapper. Everything unsafe in this crate is here.

#![expect(
    unsafe_code,
    reason = "fork, raw clone3 and signal dispositions have no safe wrapper"
)]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, Pid};

/// Gives every signal its default meaning again: a host started in the background by a script ignores SIGINT, and a
/// program that inherits that could not be asked to end politely.
pub(crate) fn reset_signals() {
    for each in Signal::iterator() {
        // SAFETY: the default disposition runs no code of ours. SIGKILL and SIGSTOP refuse, which is fine.
        let _ = unsafe { signal(each, SigHandler::SigDfl) };
    }
}

/// Closes whatever the host inherited beyond stdin, stdout and stderr, and this one, without meaning to pass it on.
pub(crate) fn close_inherited_files(kept: Option<&OwnedFd>) {
    #[cfg(target_os = "linux")]
    {
        const FIRST: u32 = 3;
        let kept = kept.and_then(|kept| u32::try_from(kept.as_raw_fd()).ok());
        let ranges = match kept {
            None => [Some((FIRST, u32::MAX)), None],
            Some(kept) => [
                (kept > FIRST).then(|| (FIRST, kept - 1)),
                Some((kept + 1, u32::MAX)),
            ],
        };
        for (first, last) in ranges.into_iter().flatten() {
            // SAFETY: called before the keeper opens any file, so no owned descriptor is closed behind its owner's back.
            let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = kept;
}

/// Forks the keeper, `None` in the child; only to be called from a single-threaded process.
pub(crate) fn fork() -> nix::Result<Option<Pid>> {
    // SAFETY: with one thread no lock can be held by a thread that does not exist in the child.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Starts a process that lends this one's memory, while this one waits, until it becomes another program or ends: a fork without
/// the cost of copying what is given up at once. It is born inside `cgroup` if there is one; moving it there afterwards would cost a
/// grace period of the kernel, up to ten milliseconds. An error where the system has no such call.
///
/// Only to be called from a single-threaded process with all signals blocked.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn spawn_lent(
    cgroup: Option<BorrowedFd<'_>>,
    child: &mut dyn FnMut(),
) -> nix::Result<Pid> {
    /// Ends in here in any case: the stack has nothing to return to.
    extern "C" fn run(child: *mut &mut dyn FnMut()) -> ! {
        // SAFETY: the pointer is that of the parameter below, and its owner waits.
        unsafe { (*child)() };
        exit_now(127)
    }

    const STACK: usize = 256 << 10;
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let mut child = child;
    let mut flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    let mut clone_args = [0_u64; 11];
    if let Some(cgroup) = cgroup {
        flags |= CLONE_INTO_CGROUP;
        clone_args[10] = cgroup.as_raw_fd() as u64;
    }
    clone_args[0] = flags;
    clone_args[4] = libc::SIGCHLD as u64;
    clone_args[5] = stack.as_mut_ptr() as u64;
    clone_args[6] = STACK as u64;
    let result: i64;
    // SAFETY: the array is laid out as `struct clone_args`. The new process begins on a stack of its own, aligned as calls need it,
    // and never leaves `run`; this one goes on only when that has given up the memory, with all registers as they were.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const clone_args,
            in("rsi") size_of_val(&clone_args),
            in("r12") &raw mut child,
            in("r13") run as extern "C" fn(*mut &mut dyn FnMut()) -> !,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match result {
        pid if pid > 0 => Ok(Pid::from_raw(pid as i32)),
        error => Err(Errno::from_raw(-error as i32)),
    }
}

/// Other processors need other instructions.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn spawn_lent(_: Option<BorrowedFd<'_>>, _: &mut dyn FnMut()) -> nix::Result<Pid> {
    Err(Errno::ENOSYS)
}

#[cfg(target_os = "linux")]
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks like [`fork`], with the child born inside a cgroup.
#[cfg(target_os = "linux")]
pub(crate) fn fork_into(cgroup: BorrowedFd<'_>) -> nix::Result<Option<Pid>> {
    let mut clone_args = [0_u64; 11];
    clone_args[0] = CLONE_INTO_CGROUP;
    clone_args[4] = libc::SIGCHLD as u64;
    clone_args[10] = cgroup.as_raw_fd() as u64;
    // SAFETY: the array is laid out as `struct clone_args`; without CLONE_VM this is a fork, see above.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const clone_args,
            size_of_val(&clone_args),
        )
    };
    match Errno::result(pid)? {
        0 => Ok(None),
        pid => Ok(Some(Pid::from_raw(pid as i32))),
    }
}

/// There are no cgroups to fork into.
#[cfg(not(target_os = "linux"))]
pub(crate) fn fork_into(cgroup: BorrowedFd<'_>) -> nix::Result<Option<Pid>> {
    let _ = cgroup.as_raw_fd();
    Err(Errno::ENOSYS)
}

/// Gives up, for the program that follows, what lets root around the rules of a guard: looking into other processes, raw
/// disks and memory, loading code into the kernel. Others than root have nothing to give up, and the calls fail.
#[cfg(target_os = "linux")]
pub(crate) fn drop_ways_around() {
    const MODULES: libc::c_ulong = 16;
    const RAW_IO: libc::c_ulong = 17;
    const PTRACE: libc::c_ulong = 19;
    const ADMIN: libc::c_ulong = 21;
    const BOOT: libc::c_ulong = 22;
    const MAKE_DEVICES: libc::c_ulong = 27;
    const PERFMON: libc::c_ulong = 38;
    const BPF: libc::c_ulong = 39;
    for capability in [
        MODULES,
        RAW_IO,
        PTRACE,
        ADMIN,
        BOOT,
        MAKE_DEVICES,
        PERFMON,
        BPF,
    ] {
        // SAFETY: numbers in, a number out.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// The version of Landlock's interface, or why there is none.
#[cfg(target_os = "linux")]
pub(crate) fn landlock_version() -> nix::Result<u32> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: asked for its version, the call reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    Errno::result(version).map(|version| u32::try_from(version).unwrap_or(0))
}

/// Puts this thread, and whatever it becomes and starts, inside a set of Landlock's rules. It must not be able to gain rights.
#[cfg(target_os = "linux")]
pub(crate) fn enter_landlock(rules: &OwnedFd) -> nix::Result<()> {
    // SAFETY: numbers in, a number out.
    let entered =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    Errno::result(entered).map(drop)
}

/// Takes precedence over other processes, where that is allowed: hundreds of them forking leave little to the keeper
/// that is to kill them.
pub(crate) fn hurry() {
    // SAFETY: a number in, a number out.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    // Where the scheduler shares by session, that number only counts within ours.
    let _ = std::fs::write("/proc/self/autogroup", "-20");
}

/// Makes a terminal the controlling one of this session, where opening it did not.
pub(crate) fn control_terminal(terminal: BorrowedFd<'_>) {
    // SAFETY: the request takes a number and touches no memory of ours.
    let _ = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY as _, 0) };
}

/// Ends this process without running anything else of it.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` touches no memory of ours.
    unsafe { libc::_exit(code) }
}

#[cfg(feature = "early-keeper")]
extern "C" fn answer_before_main() {
    crate::keeper::main_if_asked();
}

#[cfg(feature = "early-keeper")]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = answer_before_main;
