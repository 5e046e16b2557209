//! `assize score`: a stored run scored again by the checks as they are now, without any agent.

use crate::cli::ScoreArguments;
use crate::commands::run::{print_result, suite_path};
use crate::commands::verdict::{self, Source, Wanted};
use crate::commands::{consent, find_run, report};
use crate::exit::Exit;
use crate::suite::{self, LoadedSuite, Selection};
use crate::terminal::{plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::Plugins;
use assize_engine::store::RunDirectory;
use assize_engine::{Keeping, Rescored, score_again};
use assize_report::money;
use serde_json::{Value, json};

pub(crate) fn score(arguments: &ScoreArguments, plugins: &Plugins) -> Result<Exit> {
    let run = find_run(&arguments.run, &arguments.place, plugins)?;
    let (id, directory) = (run.id().to_owned(), run.path().to_owned());
    let path = suite_path(arguments.place.suite.as_deref(), &run);
    let selection = Selection {
        tasks: Selection::of_run(&run.manifest().plan).tasks,
        ..Selection::default()
    };
    let suite = suite::load(&path, &selection, plugins)?;
    if !arguments.yes && !agrees_to_judging(&suite, &run)? {
        say("nothing was changed");
        return Ok(Exit::Incomplete);
    }
    let keeping = match arguments.dry_run {
        true => Keeping::Nothing,
        false => Keeping::New,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let rescored = runtime.block_on(score_again(run, suite.profile, keeping))?;
    if arguments.json {
        print(as_json(&id, &rescored).to_string());
    }
    if rescored.scored == 0 {
        if !arguments.json {
            print_losses(&rescored, "could not be scored");
        }
        anyhow::bail!("no trial of run {id} can be scored again; the run is as it was");
    }
    if !arguments.json {
        print_changes(&rescored);
    }
    if arguments.dry_run {
        say("nothing was changed");
        return Ok(Exit::Done);
    }
    let sources = [Source::of_run(&RunDirectory::open(&directory)?)?];
    let summary = verdict::judge(&sources[0], &sources[0].gates()?, None, Wanted::default())?;
    if let Err(error) = report::write_beside(&summary, &sources) {
        warn(&format!("the report could not be written: {error:#}"));
    }
    if !arguments.json {
        print_result(&summary, &directory);
    }
    Ok(Exit::Done)
}

/// Asks before a judge is asked about every trial again.
fn agrees_to_judging(suite: &LoadedSuite, run: &RunDirectory) -> Result<bool> {
    if !suite.profile.description.contains_key("judge") {
        return Ok(true);
    }
    consent::is_given(|| {
        let (mut trials, mut known, mut usd) = (0u64, 0u64, 0.0);
        for row in run.rows()? {
            let cost = row?
                .extensions
                .get("judge_cost_usd")
                .and_then(Value::as_f64);
            trials += 1;
            known += u64::from(cost.is_some());
            usd += cost.unwrap_or(0.0);
        }
        let before = match known {
            0 => "how much is not known".to_owned(),
            _ => format!("{known} of them cost {} when they were judged", money(usd)),
        };
        Ok(format!(
            "{trials} trials are judged again, which may cost money; {before}."
        ))
    })
}

fn print_changes(rescored: &Rescored) {
    let changed: u64 = rescored.changed.values().sum();
    say(format!(
        "{} trials scored again, {changed} outcomes are new",
        rescored.scored
    ));
    for ((before, after), count) in &rescored.changed {
        say(format!(
            "  {count} from {} to {}",
            before.as_str(),
            after.as_str()
        ));
    }
    print_losses(rescored, "could not be scored and are void now");
}

fn print_losses(rescored: &Rescored, how: &str) {
    for (reason, count) in &rescored.lost {
        warn(&plain(&format!("{count} {how}: {reason}")));
    }
    for (reason, count) in &rescored.kept {
        say(plain(&format!("{count} are as before: {reason}")));
    }
}

fn as_json(id: &str, rescored: &Rescored) -> Value {
    let changed = rescored
        .changed
        .iter()
        .map(|((before, after), count)| json!({"from": before, "to": after, "trials": count}));
    json!({
        "runId": id,
        "scored": rescored.scored,
        "changed": changed.collect::<Vec<_>>(),
        "notScored": rescored.lost,
        "asBefore": rescored.kept,
    })
}
