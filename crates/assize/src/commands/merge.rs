//! `assize merge`: the shards of a run become one run.

use crate::cli::MergeArguments;
use crate::commands::rounds::{self, Standing};
use crate::commands::{UsageError, results, shards};
use crate::exit::Exit;
use crate::terminal::{plain, print, say, warn};
use anyhow::Result;
use assize_engine::Shard;
use assize_engine::store::{Merged, MergedShard, RunFile, merge as merge_runs, runs_below};
use serde_json::{Value, json};
use std::path::Path;

/// Shards that are named one by one.
const MOST_NAMED: usize = 10;

pub(crate) fn merge(arguments: &MergeArguments) -> Result<Exit> {
    let gathered = merge_from(&arguments.sources, &arguments.out)?;
    match arguments.json {
        true => print(gathered.described().to_string()),
        false => gathered.show(),
    }
    Ok(match gathered.is_complete() {
        true => Exit::Done,
        false => Exit::Incomplete,
    })
}

/// A merged run, where it was merged from, and how far it is.
pub(super) struct Gathered {
    pub(super) merged: Merged,
    pub(super) standing: Standing,
    /// The first URL that parts were downloaded from.
    url: Option<String>,
}

/// Merges the runs in these places: directories, or URLs that shards were uploaded to. Looks at the merged run where looks are declared.
pub(super) fn merge_from(sources: &[String], out: &Path) -> Result<Gathered> {
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
    let mut merged = merge_runs(&runs, out)?;
    let open = open_shards(&merged);
    let standing = rounds::advance(&mut merged, &open)?;
    let urls: Vec<&String> = sources
        .iter()
        .filter(|source| results::is_url(source))
        .collect();
    if standing.is_needed {
        let record = RunFile::Round.within(merged.run.path());
        let record = std::fs::read(&record)?;
        for url in &urls {
            // Where shards find it that share no disk with this machine.
            results::publish_round(url, &record)?;
        }
    }
    Ok(Gathered {
        url: urls.first().map(|url| (*url).clone()),
        merged,
        standing,
    })
}

fn is_same(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

impl Gathered {
    /// True if no trial is missing and no round is left.
    pub(super) fn is_complete(&self) -> bool {
        self.standing.is_finished && self.standing.missing == 0
    }

    /// The part of the words that comes before a verdict.
    pub(super) fn show_briefly(&self) {
        let Self {
            merged, standing, ..
        } = self;
        show_remarks(merged);
        let done = standing.planned - standing.missing;
        let trials = match standing.round {
            Some((round, of)) if standing.begins(merged) => {
                format!("{done} trials, round {} of {of} is complete", round - 1)
            }
            Some((round, of)) => format!(
                "{done} of {} trials up to the end of round {round} of {of}",
                standing.planned
            ),
            None => format!("{done} of {} trials", standing.planned),
        };
        say(format!("merged {} runs: {trials}", merged.sources.len()));
        for words in &standing.words {
            say(plain(words));
        }
    }

    /// Says what was merged, what was done twice and what is to be done.
    fn show(&self) {
        self.show_briefly();
        let path = plain(&self.merged.run.path().display().to_string());
        print(format!("run     {path}"));
        if self.is_complete() {
            if self.standing.round.is_some() {
                say("every look is made: no round is left");
            }
            say(format!(
                "next:\n  assize report {path}\n  assize compare {path}"
            ));
        } else if self.standing.begins(&self.merged) {
            self.show_next_round();
        } else {
            self.show_missing();
        }
    }

    fn show_next_round(&self) {
        let (round, of) = self.standing.round.unwrap_or((1, 1));
        say(format!(
            "round {round} of {of} is next, {} trials; on each machine its own, after which they are merged again:",
            self.standing.missing
        ));
        print_commands(&self.shard_commands());
    }

    fn show_missing(&self) {
        let merged = &self.merged;
        say(format!("{} trials are missing:", self.standing.missing));
        let mut named = Vec::new();
        for shard in &merged.absent {
            named.push(format!("shard {shard}: nothing was found"));
        }
        for MergedShard {
            shard,
            done,
            planned,
            ..
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
        let commands = self.shard_commands();
        if let Some(command) = self.resume_command() {
            say(format!("to run exactly these here:\n  {}", plain(&command)));
            if !commands.is_empty() {
                say("or, where the shards run, after which they are merged again:");
            }
        } else if !commands.is_empty() {
            say("to run exactly these where the shards run, after which they are merged again:");
        }
        print_commands(&commands);
    }

    /// The merged run is an ordinary one, and resuming it runs what is missing. Absent between rounds: that would go on to the end.
    fn resume_command(&self) -> Option<String> {
        let is_last = self.standing.round.is_none_or(|(round, of)| round == of);
        let path = self.merged.run.path().display().to_string();
        let suite = suite_of(&self.merged);
        (is_last && !self.is_complete())
            .then(|| command(&["assize", "run", suite, "--resume", &path]))
    }

    /// The commands of the shards that have something to do.
    fn shard_commands(&self) -> Vec<String> {
        let merged = &self.merged;
        let mut shards = match (self.is_complete(), self.standing.begins(merged)) {
            (true, _) => Vec::new(),
            (false, true) => {
                let newest = merged.shards.last().map_or(0, |shard| shard.shard.count);
                (1..=newest)
                    .map(|index| Shard {
                        index,
                        count: newest,
                    })
                    .collect()
            }
            (false, false) => open_shards(merged),
        };
        shards.sort_unstable();
        shards
            .into_iter()
            .map(|shard| self.command_of(shard))
            .collect()
    }

    fn command_of(&self, shard: Shard) -> String {
        let merged = &self.merged;
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
        let flags = shards::recorded_flags(merged.run.manifest());
        let mut parts = vec!["assize", "run", suite_of(merged)];
        parts.extend(flags.iter().map(String::as_str));
        parts.extend(["--shard", &shard, "--resume", "auto"]);
        let after = merged.run.path().display().to_string();
        match (&self.url, results.as_deref()) {
            // Shards find the record of the round in the store.
            (Some(url), _) => parts.extend(["--results", url]),
            (None, Some(results)) if !results.is_empty() => parts.extend(["--output", results]),
            _ => {}
        }
        if self.standing.is_needed && self.url.is_none() {
            parts.extend(["--after", &after]);
        }
        command(&parts)
    }

    fn described(&self) -> Value {
        let Self {
            merged, standing, ..
        } = self;
        let sources: Vec<Value> = merged
            .sources
            .iter()
            .map(|source| {
                json!({
                    "runId": source.run_id,
                    "directory": source.path,
                    "shard": source.shard.map(|shard| shard.to_string()),
                    "round": source.round,
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
        let begins = standing.begins(merged);
        let round = standing.round.map(|(round, of)| {
            json!({
                "number": round,
                "of": of,
                "isFinished": standing.is_finished,
                "begins": begins,
                "looks": standing.words,
            })
        });
        json!({
            "runId": merged.run.id(),
            "directory": merged.run.path(),
            "rows": merged.rows,
            "planned": standing.planned,
            "missing": standing.missing,
            "round": round,
            "sources": sources,
            "repeated": merged.repeated,
            "superseded": superseded,
            "absentShards": merged.absent.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "remarks": merged.remarks,
            "resume": self.resume_command(),
            "resumeShards": self.shard_commands(),
        })
    }
}

fn print_commands(commands: &[String]) {
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

/// Shards of the newest round that ended early.
fn unfinished(merged: &Merged) -> impl Iterator<Item = &MergedShard> {
    let newest = merged
        .shards
        .iter()
        .map(|shard| shard.round)
        .max()
        .flatten();
    let of_round = merged
        .shards
        .iter()
        .filter(move |shard| shard.round == newest);
    of_round.filter(|shard| shard.done < shard.planned)
}

/// Shards of the newest round with open trials, or of which nothing was found.
fn open_shards(merged: &Merged) -> Vec<Shard> {
    let absent = merged.absent.iter().copied();
    let mut shards: Vec<Shard> = absent
        .chain(unfinished(merged).map(|open| open.shard))
        .collect();
    shards.sort_unstable();
    shards.dedup();
    shards
}

fn suite_of(merged: &Merged) -> &str {
    let path = merged.run.manifest().provenance.get("suitePath");
    path.and_then(Value::as_str).unwrap_or("SUITE")
}

fn command(parts: &[&str]) -> String {
    shlex::try_join(parts.iter().copied()).unwrap_or_else(|_| parts.join(" "))
}
