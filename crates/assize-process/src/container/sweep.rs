//! Whose containers those are that are there: labels at their start, and the removal of what a killed Assize left.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Result;

use super::engine::Engine;

/// The label by which containers of Assize are found; its value names the process that owns them.
const OWNER: &str = "assize.owner";

/// The items that a sweep removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Names of the containers.
    pub removed: Vec<String>,
}

/// The labels of a container of this process.
pub(super) fn owner_labels(run: &str, trial: &str) -> Vec<(&'static str, String)> {
    let owner = Owner::of(std::process::id()).map_or_else(String::new, |owner| owner.label());
    vec![
        (OWNER, owner),
        ("assize.run", run.to_owned()),
        ("assize.trial", trial.to_owned()),
        ("assize.pid", std::process::id().to_string()),
    ]
}

impl Engine {
    /// Removes containers whose owner on this machine has ended. Those of others are left alone.
    pub async fn sweep(&self) -> Result<Swept> {
        let filter = format!("label={OWNER}");
        let list = ["ps", "--all", "--quiet", "--filter", &filter];
        let ids = self.call("list containers", list).await?;
        let ids: Vec<&str> = ids.split_whitespace().collect();
        let mut swept = Swept::default();
        for id in ids {
            let form = "{{.Name}} {{index .Config.Labels \"assize.owner\"}}";
            // One that has gone meanwhile is not ours to remove.
            let Ok(found) = self
                .call("inspect", ["inspect", "--format", form, id])
                .await
            else {
                continue;
            };
            let (name, owner) = found.trim().split_once(' ').unwrap_or((found.trim(), ""));
            if Owner::parse(owner).is_some_and(|owner| owner.has_ended()) {
                let removal = self.removal(id).into_iter().skip(1);
                self.call("remove a container", removal).await?;
                swept.removed.push(name.trim_start_matches('/').to_owned());
            }
        }
        Ok(swept)
    }
}

/// A process, distinguished from all others that had or will have its number.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    machine: String,
    boot: String,
    /// The namespace in which the number counts.
    namespace: u64,
    pid: u32,
    /// In ticks since the machine started.
    started: u64,
}

impl Owner {
    fn of(pid: u32) -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let machine = read("/etc/machine-id").or_else(|| read("/proc/sys/kernel/hostname"))?;
        Some(Self {
            machine: plain(&machine),
            boot: plain(&read("/proc/sys/kernel/random/boot_id")?),
            namespace: fs::metadata("/proc/self/ns/pid").ok()?.ino(),
            pid,
            started: started(pid)?,
        })
    }

    fn label(&self) -> String {
        let Self {
            machine,
            boot,
            namespace,
            pid,
            started,
        } = self;
        format!("{machine}:{boot}:{namespace}:{pid}:{started}")
    }

    fn parse(label: &str) -> Option<Self> {
        let parts: Vec<&str> = label.trim().split(':').collect();
        let [machine, boot, namespace, pid, started] = parts[..] else {
            return None;
        };
        Some(Self {
            machine: machine.to_owned(),
            boot: boot.to_owned(),
            namespace: namespace.parse().ok()?,
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    /// Known to have ended: on this machine, before it was started anew or where its number can be looked up.
    fn has_ended(&self) -> bool {
        let Some(own) = Self::of(std::process::id()) else {
            return false;
        };
        if own.machine != self.machine {
            return false;
        }
        own.boot != self.boot
            || (own.namespace == self.namespace && started(self.pid) != Some(self.started))
    }
}

fn plain(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-._".contains(*c);
    text.trim().chars().filter(is_plain).collect()
}

/// The 22nd field of a process's stat; the second one may hold spaces and parentheses.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Owner {
        Owner::of(std::process::id()).unwrap()
    }

    #[test]
    fn an_owner_that_lives_keeps_its_containers() {
        assert!(!Owner::parse(&own().label()).unwrap().has_ended());
    }

    #[test]
    fn a_number_that_was_given_away_again_is_another_process() {
        let earlier = Owner {
            started: own().started - 1,
            ..own()
        };
        assert!(earlier.has_ended());
        let before_boot = Owner {
            boot: "another".to_owned(),
            ..own()
        };
        assert!(before_boot.has_ended());
    }

    #[test]
    fn strangers_are_left_alone() {
        let elsewhere = Owner {
            machine: "other".to_owned(),
            started: 1,
            ..own()
        };
        let in_another_namespace = Owner {
            namespace: 1,
            started: 1,
            ..own()
        };
        assert!(!elsewhere.has_ended() && !in_another_namespace.has_ended());
        assert_eq!(Owner::parse("x"), None);
        assert_eq!(Owner::parse(""), None);
    }
}
