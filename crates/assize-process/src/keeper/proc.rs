//! Descendants as /proc shows them.

use std::collections::HashMap;
use std::fs;

use nix::unistd::Pid;

/// Everything below `root`, parents before children, without the dead.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut next = children(root.as_raw());
    // Only without CONFIG_PROC_CHILDREN: then the whole of /proc has to be read, once.
    let parents = if next.is_none() {
        all_by_parent()
    } else {
        HashMap::new()
    };
    let mut waiting = next.take().unwrap_or_else(|| of(&parents, root.as_raw()));
    while let Some(pid) = waiting.pop() {
        if !is_dead(pid) {
            found.push(Pid::from_raw(pid));
        }
        waiting.extend(if parents.is_empty() {
            children(pid).unwrap_or_default()
        } else {
            of(&parents, pid)
        });
    }
    found
}

/// The children of every thread. `None` if the kernel does not tell; empty if the process is gone.
fn children(pid: i32) -> Option<Vec<i32>> {
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
    Stat::read(pid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'))
}

struct Stat {
    state: char,
    parent: i32,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in the second field may hold anything, even `)`: what counts follows the last one.
    fn parse(line: &[u8]) -> Option<Self> {
        let end_of_name = line.iter().rposition(|&byte| byte == b')')?;
        let mut fields = std::str::from_utf8(&line[end_of_name + 1..])
            .ok()?
            .split_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = Stat::parse(b"12 (a) Z 9 (\xff) S 7 12 12 0").unwrap();
        assert_eq!((stat.state, stat.parent), ('S', 7));
    }

    #[test]
    fn both_ways_of_walking_agree() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (own, child_pid) = (std::process::id() as i32, child.id() as i32);
        let by_list = children(own).is_none_or(|children| children.contains(&child_pid));
        let by_parent = of(&all_by_parent(), own).contains(&child_pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(by_list && by_parent);
    }
}
