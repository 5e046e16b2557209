//! `assize check`: validate everything without running.

use crate::cli::CheckArguments;
use crate::commands::{oracle, preflight};
use crate::exit::Exit;
use crate::suite::{self, Selection};
use crate::terminal::{plain, print, say, warn};
use anyhow::Result;
use assize_contracts::Plugins;
use assize_secrets::{Removed, Secrets};

pub(crate) fn check(arguments: &CheckArguments, plugins: &Plugins) -> Result<Exit> {
    let suite = suite::load(&arguments.path, &Selection::default(), plugins)?;
    for remark in &suite.remarks {
        warn(remark);
    }
    let obstacles = preflight::foresee(&suite);
    for obstacle in &obstacles {
        warn(&obstacle.message);
        say(plain(&format!("      {}", obstacle.hint)));
    }
    if let Some(programs) = &suite.programs {
        programs.end();
    }
    let profile = &suite.profile;
    let plan = profile.plan()?;
    let subjects = [
        (plan.scenarios.len(), "scenario"),
        (plan.tasks as usize, "task"),
    ];
    let subjects = subjects.into_iter().filter(|(count, _)| *count > 0);
    let subjects: Vec<String> = subjects.map(|(count, what)| counted(count, what)).collect();
    print(format!(
        "{} is {}: {} in {} × {} = {} trials",
        plain(&suite.path.display().to_string()),
        match obstacles.is_empty() {
            true => "fine",
            false => "valid, but a run would stop at the problems noted above",
        },
        subjects.join(" and "),
        counted(plan.arms.len(), "mode"),
        counted(plan.repetitions as usize, "repetition"),
        plan.len(),
    ));
    if let Some(sentence) = removed(&profile.secrets) {
        print(sentence);
    }
    match arguments.oracle {
        true => oracle::oracle(&suite),
        false => Ok(Exit::Done),
    }
}

/// The values that will be removed, in one sentence. Absent when there are none.
fn removed(secrets: &Secrets) -> Option<String> {
    let in_words = |removed: &Removed| {
        let name = plain(&removed.name);
        format!("`{name}` ({})", removed.reason.in_words())
    };
    let mut names: Vec<String> = secrets.removed().iter().map(in_words).collect();
    names.dedup();
    let sentence = || {
        format!(
            "removed from everything that agents write: {}",
            names.join(", ")
        )
    };
    (!names.is_empty()).then(sentence)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
