//! Rounds of a run that is divided into shards: the shards run up to the next declared look, are merged, the merged run is looked at, and
//! `round.json` holds what the next shards need: the round, the arms that looks have stopped, and the rest of the budget.

use crate::commands::looks::{Until, UntilSteering, stopped_in};
use crate::commands::{Obstructed, UsageError, results};
use anyhow::{Context, Result};
use assize_contracts::{Budget, LookRecord, ProfileRow, Spent};
use assize_engine::store::{Manifest, Merged, RunDirectory, RunFile, read_looks};
use assize_engine::{After, Arm, ProfileSuite, Round, Shard};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

const FORMAT: &str = "assize-round";

/// The facts about a merged run that the shards after it need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoundRecord {
    pub(crate) format: String,
    /// The plan of the merged run. Absent before the first merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan_fingerprint: Option<String>,
    /// The round that shards run now, from 1. Always 1 where no looks are declared.
    pub(crate) round: u32,
    /// Rounds at most. Absent where no looks are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<u32>,
    /// Everything is decided, or the last look was made.
    #[serde(default)]
    pub(crate) is_finished: bool,
    /// The looks at the merged run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) looks: Vec<LookRecord>,
    /// The sum that all trials so far have spent. Absent before the first merge, and where nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spent: Option<SpentRecord>,
    /// Shards of the round that have begun, or should have, and have open trials. Empty: all of them begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<String>,
}

/// Spending up to a merge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpentRecord {
    /// Dollars. Null where a part is unknown.
    pub(crate) usd: Option<f64>,
    /// Tokens. Null where a part is unknown.
    pub(crate) tokens: Option<u64>,
    /// Minutes in which trials of earlier rounds ran.
    pub(crate) minutes: f64,
    /// The end of the last trial that is counted, as it is written in rows.
    pub(crate) until: String,
}

impl RoundRecord {
    /// Before anything is merged.
    pub(crate) fn first() -> Self {
        Self {
            format: FORMAT.to_owned(),
            round: 1,
            ..Self::default()
        }
    }

    /// The record in a merged run, or in a file that was copied from one.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = match path.is_dir() {
            true => RunFile::Round.within(path),
            false => path.to_owned(),
        };
        let text = std::fs::read(&file).map_err(|error| {
            let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            UsageError {
                message: format!("--after: cannot read `{}`: {error}", file.display()),
                hint: Some(match is_empty {
                    true => "the directory is empty; leave --after out in the first round".to_owned(),
                    false => "name the run that `assize merge` made, or its round.json; in the first round leave --after out".to_owned(),
                }),
            }
        })?;
        Self::parse(&text, &file.display().to_string())
    }

    fn parse(text: &[u8], place: &str) -> Result<Self> {
        let refused = |reason: String| Obstructed {
            message: format!("`{place}` is not the record of a round: {reason}"),
            hint: "`assize merge` writes it as round.json into the merged run".to_owned(),
        };
        let read: Self =
            serde_json::from_slice(text).map_err(|error| refused(error.to_string()))?;
        match read.format == FORMAT && read.round > 0 {
            true => Ok(read),
            false => Err(refused(format!("it does not say `\"format\": \"{FORMAT}\"`")).into()),
        }
    }

    /// The record that a shard was given, or that lies beside its results in the object store.
    pub(crate) fn of_shard(after: Option<&Path>, url: Option<&str>) -> Result<Option<Self>> {
        match (after, url) {
            (Some(path), _) => Self::read(path).map(Some),
            (None, Some(url)) => match results::round(url)? {
                Some(text) => {
                    Self::parse(&text, &format!("{url}/{}", RunFile::Round.name())).map(Some)
                }
                None => Ok(None),
            },
            (None, None) => Ok(None),
        }
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("a record is plain data");
        text.push(b'\n');
        text
    }

    /// The part that the engine checks and keeps. Absent before the first merge.
    pub(crate) fn after(&self) -> Option<After> {
        let plan_fingerprint = self.plan_fingerprint.clone()?;
        Some(After {
            plan_fingerprint,
            looks: self.of.map_or(Vec::new(), |_| self.looks.clone()),
        })
    }

    fn stopped(&self) -> Vec<Arm> {
        let stopped = stopped_in(&self.looks).into_iter();
        stopped
            .map(|stop| Arm {
                mode: stop.mode,
                model: stop.model,
            })
            .collect()
    }

    /// The share of a shard: an even part of what is left, and what its own run has spent of that before.
    pub(crate) fn share(&self, budget: &Budget, shard: Shard, own: &Own) -> Result<Budget> {
        let Some(spent) = &self.spent else {
            return Ok(budget.divided(shard.count));
        };
        let sharing = match self.open.len() {
            0 => shard.count,
            open => u32::try_from(open).unwrap_or(shard.count),
        };
        let unknown = |what: &str| UsageError {
            message: format!(
                "some trials before this round did not report their {what}, so the rest of the budget is unknown"
            ),
            hint: Some("limit something else, or leave the limit out".to_owned()),
        };
        let mut share = *budget;
        if let Some(limit) = budget.usd {
            let spent = spent.usd.ok_or_else(|| unknown("cost"))?;
            let left = (limit - spent).max(0.0);
            share.usd = Some(left / f64::from(sharing) + own.usd);
        }
        if let Some(limit) = budget.tokens {
            let spent = spent.tokens.ok_or_else(|| unknown("tokens"))?;
            let left = limit.saturating_sub(spent);
            share.tokens = Some(left / u64::from(sharing) + own.tokens);
        }
        share.minutes = budget
            .minutes
            .map(|minutes| (minutes - spent.minutes).max(0.0));
        Ok(share)
    }
}

/// The sum that the run of a shard had spent when the runs were merged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Own {
    pub(crate) usd: f64,
    pub(crate) tokens: u64,
}

impl Own {
    pub(crate) fn of(run: &RunDirectory, record: &RoundRecord) -> Result<Self> {
        let Some(until) = record.spent.as_ref().map(|spent| spent.until.as_str()) else {
            return Ok(Self::default());
        };
        let mut own = Self::default();
        let mut add = |spent: Spent| {
            own.usd += spent.usd.unwrap_or(0.0);
            own.tokens = own.tokens.saturating_add(spent.tokens.unwrap_or(0));
        };
        // Times of one form sort as text.
        let is_counted = |row: &ProfileRow| row.completed_at.as_str() <= until;
        for row in run.warmup_rows().iter().filter(|row| is_counted(row)) {
            add(row.spent());
        }
        for row in run.rows()? {
            let row = row?;
            if is_counted(&row) {
                add(row.spent());
            }
        }
        Ok(own)
    }
}

/// The round that a shard of this suite runs now. Absent where no looks are declared.
pub(crate) fn round_of(
    profile: &ProfileSuite,
    record: Option<&RoundRecord>,
) -> Result<Option<Round>> {
    let declared = profile.reading.until.as_ref();
    let until = Until::of(declared, profile.execution.repetitions);
    let of = until.as_ref().map(|until| until.rounds.len() as u32);
    let is_other = |record: &RoundRecord| record.plan_fingerprint.is_some() && record.of != of;
    if record.is_some_and(is_other) {
        return Err(UsageError {
            message: "`execution.until` was declared before the first trial and cannot change"
                .to_owned(),
            hint: Some("restore it in the suite, or start anew without --after".to_owned()),
        }
        .into());
    }
    let Some(until) = until else {
        return Ok(None);
    };
    let (number, stopped) = match record {
        None => (1, Vec::new()),
        Some(record) => (record.round, record.stopped()),
    };
    let round = until.round(number, stopped).with_context(|| {
        format!(
            "round {number} is beyond the {} that `execution.until` declares",
            until.rounds.len()
        )
    })?;
    Ok(Some(round))
}

/// All rounds as if nothing were stopped. One of everything where no looks are declared.
pub(crate) fn all(profile: &ProfileSuite) -> Vec<Option<Round>> {
    let declared = profile.reading.until.as_ref();
    match Until::of(declared, profile.execution.repetitions) {
        None => vec![None],
        Some(until) => (1..)
            .map_while(|number| until.round(number, Vec::new()))
            .map(Some)
            .collect(),
    }
}

/// The progress of a merged run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// The round that is to be done now, of so many. Absent where no looks are declared.
    pub(crate) round: Option<(u32, u32)>,
    /// Planned trials up to the end of that round that are not there.
    pub(crate) missing: u64,
    /// Trials up to the end of that round.
    pub(crate) planned: u64,
    /// Everything is decided, or the last look was made.
    pub(crate) is_finished: bool,
    /// The looks that were made just now, in words.
    pub(crate) words: Vec<String>,
    /// Shards need `round.json` to go on rightly: looks or budgets are declared.
    pub(crate) is_needed: bool,
}

impl Standing {
    /// The next round begins now: nothing of it is there, and nothing is missing before it.
    pub(crate) fn begins(&self, merged: &Merged) -> bool {
        let newest = merged
            .shards
            .iter()
            .map(|shard| shard.round)
            .max()
            .flatten();
        let round = self.round.map(|(round, _)| round);
        !self.is_finished && round.is_some() && newest < round
    }
}

/// Looks at a merged run as far as its rounds are complete, and writes what the next shards need to know.
pub(crate) fn advance(merged: &mut Merged, open: &[Shard]) -> Result<Standing> {
    let run = &mut merged.run;
    let manifest = run.manifest().clone();
    let is_limited = manifest.provenance.contains_key(BUDGET);
    let declared = manifest.reading()?.until;
    let until = Until::of(declared.as_ref(), manifest.plan.repetitions);
    let mut standing = match &until {
        None => Standing {
            missing: merged.planned - merged.rows,
            planned: merged.planned,
            is_finished: merged.planned == merged.rows,
            ..Standing::default()
        },
        Some(until) => look(run, &manifest, until)?,
    };
    standing.is_needed = until.is_some() || is_limited;
    if !standing.is_needed {
        return Ok(standing);
    }
    if standing.is_finished && standing.missing == 0 && until.is_some() {
        run.mark_complete()?;
    }
    let begun = match standing.begins(merged) {
        true => &[][..],
        false => open,
    };
    let (number, of) = standing.round.unzip();
    let from = until.as_ref().zip(number).and_then(|(until, number)| {
        let round = until.round(number, Vec::new())?;
        Some(round.from)
    });
    let record = RoundRecord {
        plan_fingerprint: Some(manifest.plan_fingerprint()),
        round: number.unwrap_or(1),
        of,
        is_finished: standing.is_finished,
        looks: read_looks(merged.run.path()),
        spent: match is_limited {
            true => Some(spent(&merged.run, from.unwrap_or(0))?),
            false => None,
        },
        open: begun.iter().map(ToString::to_string).collect(),
        ..RoundRecord::first()
    };
    let file = RunFile::Round.within(merged.run.path());
    write_whole(&file, &record.text())?;
    Ok(standing)
}

/// The key of the manifest's provenance that says what the whole run may spend.
pub(crate) const BUDGET: &str = "budget";

/// Makes every look whose round is complete and that was not made before.
fn look(run: &RunDirectory, manifest: &Manifest, until: &Until) -> Result<Standing> {
    let counts = count_trials(run)?;
    let arms = &manifest.plan.arms;
    let tasks = manifest.plan.tasks.as_ref().map_or(0, |tasks| tasks.count);
    let subjects = manifest.plan.scenarios.len() as u64 + u64::from(tasks);
    let steering = UntilSteering::new(until.clone(), arms.clone(), "merge");
    let of = until.rounds.len() as u32;
    let mut words = Vec::new();
    loop {
        let looks = read_looks(run.path());
        let is_made = |rounds: &&u32| {
            let is_it = |look: &LookRecord| (look.rounds - f64::from(**rounds)).abs() < 1e-9;
            looks.iter().any(|look| look.declared && is_it(look))
        };
        let made = until.rounds.iter().take_while(is_made).count();
        let stopped = stopped_in(&looks);
        let after = |arm: &Arm| {
            let mut stops = stopped.iter();
            let stop = stops.find(|stop| stop.mode == arm.mode && stop.model == arm.model);
            stop.map(|stop| stop.after)
        };
        let is_finished = made == until.rounds.len() || arms.iter().all(|arm| after(arm).is_some());
        let number = match is_finished {
            true => made,
            false => made + 1,
        };
        let to = number.checked_sub(1).map_or(0, |place| until.rounds[place]);
        let (mut planned, mut missing) = (0, 0);
        for arm in arms {
            for iteration in 0..after(arm).unwrap_or(to).min(to) {
                let key = (arm.mode.clone(), arm.model.clone(), i64::from(iteration));
                planned += subjects;
                missing += subjects - counts.get(&key).copied().unwrap_or(0).min(subjects);
            }
        }
        if missing == 0 && !is_finished {
            let found = steering.decide(run.path(), to)?;
            words.extend(found.text);
            let is_kept = read_looks(run.path()).len() > looks.len();
            if !is_kept {
                return Err(Obstructed {
                    message: format!(
                        "the look after {to} repetitions could not be kept in the merged run"
                    ),
                    hint: "make its directory writable, then merge again".to_owned(),
                }
                .into());
            }
            continue;
        }
        return Ok(Standing {
            round: Some((number as u32, of)),
            missing,
            planned,
            is_finished,
            words,
            is_needed: true,
        });
    }
}

/// Trials by mode, model and repetition.
fn count_trials(run: &RunDirectory) -> Result<HashMap<(String, String, i64), u64>> {
    #[derive(Deserialize)]
    struct Trial<'a> {
        #[serde(borrow)]
        mode: Cow<'a, str>,
        #[serde(borrow)]
        model: Cow<'a, str>,
        iteration: i64,
    }
    let mut counts = HashMap::new();
    let path = RunFile::Rows.within(run.path());
    let Ok(file) = std::fs::File::open(&path) else {
        return Ok(counts);
    };
    assize_report::read_rows(std::io::BufReader::new(file), |bytes| {
        if let Ok(trial) = serde_json::from_slice::<Trial<'_>>(bytes.json) {
            let key = (
                trial.mode.into_owned(),
                trial.model.into_owned(),
                trial.iteration,
            );
            *counts.entry(key).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(counts)
}

/// The sum that all trials of a run have spent, those that do not count included; time only before this repetition.
fn spent(run: &RunDirectory, from: u32) -> Result<SpentRecord> {
    let (mut usd, mut tokens) = (Some(0.0), Some(0_u64));
    let mut last = String::new();
    let mut spans: Vec<(i64, i64)> = Vec::new();
    let mut add = |spent: Spent| {
        usd = usd.zip(spent.usd).map(|(sum, part)| sum + part);
        tokens = tokens
            .zip(spent.tokens)
            .map(|(sum, part)| sum.saturating_add(part));
    };
    for row in run.warmup_rows().iter().chain(&run.replaced_trials()?) {
        add(row.spent());
    }
    for row in run.rows()? {
        let row = row?;
        add(row.spent());
        if row.completed_at.as_str() > last.as_str() {
            row.completed_at.as_str().clone_into(&mut last);
        }
        if row.iteration < i64::from(from) {
            spans.extend(row.started_at.unix_ms().zip(row.completed_at.unix_ms()));
        }
    }
    Ok(SpentRecord {
        usd,
        tokens,
        minutes: covered(spans) / 60_000.0,
        until: last,
    })
}

/// Milliseconds that at least one of these spans covers.
fn covered(mut spans: Vec<(i64, i64)>) -> f64 {
    spans.sort_unstable();
    let (mut total, mut until) = (0, i64::MIN);
    for (start, end) in spans {
        total += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    total as f64
}

/// Replaces a file at once, so that no shard reads half of it.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    use std::io::Write;
    let directory = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::Builder::new()
        .prefix(".round-")
        .tempfile_in(directory)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.as_file().sync_data()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        });
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> Budget {
        Budget {
            usd: Some(12.0),
            tokens: Some(1200),
            minutes: Some(60.0),
        }
    }

    fn shard() -> Shard {
        "2/4".parse().unwrap()
    }

    #[test]
    fn before_the_first_merge_shards_share_evenly() {
        let share = RoundRecord::first().share(&budget(), shard(), &Own::default());
        assert_eq!(share.unwrap(), budget().divided(4));
    }

    #[test]
    fn what_earlier_rounds_left_is_shared_by_all_and_what_others_left_by_the_open_ones() {
        let mut record = RoundRecord {
            round: 2,
            spent: Some(SpentRecord {
                usd: Some(4.0),
                tokens: Some(400),
                minutes: 15.0,
                until: String::new(),
            }),
            ..RoundRecord::first()
        };
        let share = record.share(&budget(), shard(), &Own::default()).unwrap();
        assert_eq!((share.usd, share.tokens), (Some(2.0), Some(200)));
        assert_eq!(share.minutes, Some(45.0));
        record.open = vec!["2/4".to_owned(), "3/4".to_owned()];
        let own = Own {
            usd: 1.0,
            tokens: 100,
        };
        let share = record.share(&budget(), shard(), &own).unwrap();
        assert_eq!((share.usd, share.tokens), (Some(5.0), Some(500)));
    }

    #[test]
    fn an_unknown_amount_is_not_taken_for_nothing() {
        let record = RoundRecord {
            spent: Some(SpentRecord {
                usd: None,
                tokens: Some(1),
                ..SpentRecord::default()
            }),
            ..RoundRecord::first()
        };
        let error = record.share(&budget(), shard(), &Own::default());
        assert!(error.unwrap_err().to_string().contains("cost"));
    }

    #[test]
    fn time_that_trials_share_counts_once() {
        assert!((covered(vec![(0, 10), (5, 20), (30, 40)]) - 30.0).abs() < 1e-9);
    }
}
