//! Descendants as /proc shows them.

use std::collections::HashMap;
use std::fs;

use nix::unistd::Pid;

/// Enough for any honest tree. One that forks without end would grow faster than it can be walked.
const LONGEST_WALK: usize = 2000;

/// Everything below `root`, parents before children, without the dead.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    // Without CONFIG_PROC_CHILDREN the whole of /proc has to be read, once.
    let by_parent = listed_children(root.as_raw()).is_none().then(all_by_parent);
    let children = |pid| match &by_parent {
        Some(by_parent) => of(by_parent, pid),
        None => listed_children(pid).unwrap_or_default(),
    };
    let mut found = Vec::new();
    let mut waiting = children(root.as_raw());
    for _ in 0..LONGEST_WALK {
        let Some(pid) = waiting.pop() else { break };
        if !is_dead(pid) {
            found.push(Pid::from_raw(pid));
            waiting.extend(children(pid));
        }
    }
    found
}

/// The children of a process, dead ones included.
pub(super) fn children(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw();
    let children = listed_children(pid).unwrap_or_else(|| of(&all_by_parent(), pid));
    children.into_iter().map(Pid::from_raw).collect()
}

/// The children of every thread. `None` if the kernel does not list them; empty if the process is gone.
fn listed_children(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Some(children);
    };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            ),
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

fn all_by_parent() -> HashMap<i32, Vec<i32>> {
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(stat) = Stat::read(pid) {
            by_parent.entry(stat.parent).or_default().push(pid);
        }
    }
    by_parent
}

fn of(by_parent: &HashMap<i32, Vec<i32>>, pid: i32) -> Vec<i32> {
    by_parent.get(&pid).cloned().unwrap_or_default()
}

fn is_dead(pid: i32) -> bool {
    Stat::read(pid).is_none_or(|stat| stat.is_dead())
}

struct Stat {
    state: char,
    parent: i32,
    threads: u32,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in the second field may hold anything, even `)`: what counts follows the last one.
    fn parse(line: &[u8]) -> Option<Self> {
        let end_of_name = line.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(&line[end_of_name + 1..]).ok()?;
        let mut fields = rest.split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
        })
    }

    /// A process whose first thread has ended looks like a zombie while its other threads go on.
    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], parent: i32, is_dead: bool) {
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.is_dead()), (parent, is_dead));
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        check(
            b"12 (a) Z 9 (\xff) S 7 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 9",
            7,
            false,
        );
    }

    #[test]
    fn a_zombie_with_threads_lives() {
        check(b"12 (a) Z 7 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 0 0 9", 7, true);
        check(
            b"12 (a) Z 7 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 9",
            7,
            false,
        );
    }

    #[test]
    fn both_ways_of_walking_agree() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (own, child_pid) = (std::process::id() as i32, child.id() as i32);
        let by_list = listed_children(own).is_none_or(|children| children.contains(&child_pid));
        let by_parent = of(&all_by_parent(), own).contains(&child_pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_list && by_parent);
    }
}
