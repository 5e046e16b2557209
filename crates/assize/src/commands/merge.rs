//! `assize merge`: the shards of a run become one run.

use crate::cli::MergeArguments;
use crate::commands::{UsageError, results};
use crate::exit::Exit;
use crate::terminal::{plain, print, say, warn};
use anyhow::Result;
use assize_engine::Shard;
use assize_engine::store::{Merged, RunFile, merge as merge_runs, runs_below};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Shards that are named one by one.
const MOST_NAMED: usize = 10;

pub(crate) fn merge(arguments: &MergeArguments) -> Result<Exit> {
    let merged = merge_from(&arguments.sources, &arguments.out)?;
    match arguments.json {
        true => print(described(&merged).to_string()),
        false => show(&merged),
    }
    Ok(match merged.rows == merged.planned {
        true => Exit::Done,
        false => Exit::Incomplete,
    })
}

/// Merges the runs in these places: directories, or URLs that shards were uploaded to.
pub(super) fn merge_from(sources: &[String], out: &Path) -> Result<Merged> {
    let mut runs = Vec::new();
    // Kept until everything is merged.
    let mut downloads = Vec::new();
    for source in sources {
        let mut found = match results::is_url(source) {
            true => {
                let download = results::download(source, out)?;
                let found = runs_below(download.path())?;
                downloads.push(download);
                found
            }
            false => runs_below(Path::new(source))?,
        };
        // The merged run of an earlier time may lie beside its shards.
        found.retain(|run| !is_same(run, out));
        if found.is_empty() {
            return Err(UsageError {
                message: format!("there is no run in `{source}`"),
                hint: Some("give directories of shards, or directories that hold them".to_owned()),
            }
            .into());
        }
        runs.append(&mut found);
    }
    Ok(merge_runs(&runs, out)?)
}

fn is_same(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

/// The part of the words that comes before a verdict.
pub(super) fn show_briefly(merged: &Merged) {
    show_remarks(merged);
    say(format!(
        "merged {} runs: {} of {} trials",
        merged.sources.len(),
        merged.rows,
        merged.planned
    ));
}

/// Says what was merged, what was done twice and what is missing.
fn show(merged: &Merged) {
    show_briefly(merged);
    let path = plain(&merged.run.path().display().to_string());
    print(format!("run     {path}"));
    match merged.rows == merged.planned {
        true => say(format!(
            "next:\n  assize report {path}\n  assize compare {path}"
        )),
        false => show_missing(merged),
    }
}

fn show_remarks(merged: &Merged) {
    for remark in &merged.remarks {
        warn(&plain(remark));
    }
    if merged.repeated > 0 {
        let times = match merged.repeated {
            1 => "1 trial was".to_owned(),
            times => format!("{times} trials were"),
        };
        warn(&format!(
            "{times} run more than once; the first that was finished counts, the others are in {}:",
            RunFile::Superseded.name()
        ));
        for again in merged.superseded.iter().take(MOST_NAMED) {
            say(format!(
                "  trial {}: {} counts, {} does not",
                again.position, again.taken_from, again.run_id
            ));
        }
    }
}

fn show_missing(merged: &Merged) {
    let missing = merged.planned - merged.rows;
    say(format!("{missing} trials are missing:"));
    let mut named = Vec::new();
    for shard in &merged.absent {
        named.push(format!("shard {shard}: nothing was found"));
    }
    for Unfinished {
        shard,
        done,
        planned,
    } in unfinished(merged)
    {
        named.push(format!(
            "shard {shard}: {done} of {planned} trials are done"
        ));
    }
    for name in named.iter().take(MOST_NAMED) {
        say(format!("  {}", plain(name)));
    }
    if named.len() > MOST_NAMED {
        say(format!("  and {} more", named.len() - MOST_NAMED));
    }
    say(format!(
        "to run exactly these here:\n  {}",
        plain(&resume_command(merged))
    ));
    let commands = shard_commands(merged);
    if !commands.is_empty() {
        say("or, where the shards run, after which they are merged again:");
        for command in commands.iter().take(MOST_NAMED) {
            say(format!("  {}", plain(command)));
        }
        if commands.len() > MOST_NAMED {
            say(format!(
                "  and so on for {} more",
                commands.len() - MOST_NAMED
            ));
        }
    }
}

/// A shard with open trials. It may have been found in several runs or parts.
struct Unfinished {
    shard: Shard,
    done: u64,
    planned: u64,
}

/// Shards that ended early.
fn unfinished(merged: &Merged) -> Vec<Unfinished> {
    let mut shards: BTreeMap<Shard, (u64, u64)> = BTreeMap::new();
    for source in &merged.sources {
        if let Some(shard) = source.shard {
            let (done, planned) = shards.entry(shard).or_default();
            *done += source.taken;
            *planned = source.planned;
        }
    }
    let open = shards
        .into_iter()
        .filter(|(_, (done, planned))| done < planned);
    open.map(|(shard, (done, planned))| Unfinished {
        shard,
        done,
        planned,
    })
    .collect()
}

fn suite_of(merged: &Merged) -> &str {
    let path = merged.run.manifest().provenance.get("suitePath");
    path.and_then(Value::as_str).unwrap_or("SUITE")
}

/// The merged run is an ordinary one, and resuming it runs what is missing.
fn resume_command(merged: &Merged) -> String {
    let path = merged.run.path().display().to_string();
    command(&["assize", "run", suite_of(merged), "--resume", &path])
}

fn shard_commands(merged: &Merged) -> Vec<String> {
    let absent = merged.absent.iter().copied();
    let open = unfinished(merged).into_iter().map(|open| open.shard);
    let mut shards: Vec<_> = absent.chain(open).collect();
    shards.sort_unstable();
    shards.dedup();
    let of_shard = |shard: Shard| {
        // Beside the directory of that shard, or of the others.
        let mut sources = merged
            .sources
            .iter()
            .filter(|source| source.shard.is_some());
        let first = sources.clone().next();
        let beside = sources.find(|source| source.shard == Some(shard)).or(first);
        let results = beside.and_then(|source| source.path.parent());
        let results = results.map(|path| path.display().to_string());
        let shard = shard.to_string();
        let mut parts = vec!["assize", "run", suite_of(merged), "--shard", &shard];
        parts.extend(["--resume", "auto"]);
        if let Some(results) = results.as_deref().filter(|results| !results.is_empty()) {
            parts.extend(["--output", results]);
        }
        command(&parts)
    };
    shards.into_iter().map(of_shard).collect()
}

fn command(parts: &[&str]) -> String {
    shlex::try_join(parts.iter().copied()).unwrap_or_else(|_| parts.join(" "))
}

fn described(merged: &Merged) -> Value {
    let sources: Vec<Value> = merged
        .sources
        .iter()
        .map(|source| {
            json!({
                "runId": source.run_id,
                "directory": source.path,
                "shard": source.shard.map(|shard| shard.to_string()),
                "done": source.done,
                "planned": source.planned,
                "taken": source.taken,
            })
        })
        .collect();
    let superseded: Vec<Value> = merged
        .superseded
        .iter()
        .map(|again| {
            json!({ "position": again.position, "runId": again.run_id, "takenFrom": again.taken_from })
        })
        .collect();
    let is_complete = merged.rows == merged.planned;
    json!({
        "runId": merged.run.id(),
        "directory": merged.run.path(),
        "rows": merged.rows,
        "planned": merged.planned,
        "missing": merged.planned - merged.rows,
        "sources": sources,
        "repeated": merged.repeated,
        "superseded": superseded,
        "absentShards": merged.absent.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "remarks": merged.remarks,
        "resume": (!is_complete).then(|| resume_command(merged)),
        "resumeShards": shard_commands(merged),
    })
}
