//! `assize instructions ablate`: which sections of an instruction file earn their place.
//!
//! Many sections are screened at once by balanced random subsets; a short list is confirmed on fresh trials. All claims come from
//! the confirmation.

mod findings;
mod provider;
mod sections;

use super::UsageError;
use super::last_run::Remembering;
use super::preflight::{self, Scope};
use super::run::{self, in_runtime};
use crate::cli::{AblateArguments, InstructionsAction, InstructionsArguments};
use crate::exit::Exit;
use crate::suite::{self, LoadedSuite, Selection, SuiteError, UnwrittenSuite};
use crate::terminal::{Progress, plain, print, say, warn};
use anyhow::{Context, Result};
use assize_contracts::{Outcome, Plugins, ProviderSource};
use assize_engine::{Listener, Mode, ProfileSuiteResult, RunTarget};
use assize_stats::{
    AblationBudget, BalancedSubsets, Level, ScreenedEffect, ScreenedTrial, Tally, confirm_ablation,
};
use findings::{Findings, Lean};
use provider::{Screened, Screening};
use sections::Sections;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The mode of the screening, in which every trial has instructions of its own.
const SCREENING: &str = "screening";
const WHOLE: &str = "whole";
const LEAN: &str = "shortlist only";

pub(crate) fn instructions(arguments: &InstructionsArguments, plugins: &Plugins) -> Result<Exit> {
    match &arguments.action {
        InstructionsAction::Ablate(arguments) => Ablation::new(arguments, plugins)?.run(),
    }
}

struct Ablation<'a> {
    arguments: &'a AblateArguments,
    plugins: &'a Plugins,
    sections: Sections,
    scenarios: Vec<String>,
    budget: AblationBudget,
}

impl<'a> Ablation<'a> {
    fn new(arguments: &'a AblateArguments, plugins: &'a Plugins) -> Result<Self> {
        let text = std::fs::read_to_string(&arguments.file)
            .with_context(|| format!("cannot read `{}`", arguments.file.display()))?;
        let sections = Sections::of(&text);
        if sections.len() < 2 {
            return Err(UsageError {
                message: format!("`{}` has {} sections, expected at least two", arguments.file.display(), sections.len()),
                hint: Some("sections begin at headings (`## …`); a file without headings is taken by its paragraphs".to_owned()),
            }
            .into());
        }
        let mut ablation = Self {
            arguments,
            plugins,
            sections,
            scenarios: Vec::new(),
            budget: AblationBudget::for_effect(1, 1, 1.0),
        };
        let suite = ablation.load(1, 0)?;
        let scenarios = suite.profile.scenarios.iter();
        ablation.scenarios = scenarios.map(|scenario| scenario.id.clone()).collect();
        if ablation.scenarios.is_empty() {
            return Err(UsageError::new("the suite has no scenario to try sections on").into());
        }
        ablation.budget = ablation.planned()?;
        for remark in &suite.remarks {
            warn(remark);
        }
        Ok(ablation)
    }

    /// The design, decided before the first trial.
    fn planned(&self) -> Result<AblationBudget> {
        let (sections, scenarios) = (self.sections.len(), self.scenarios.len());
        let effect = self.arguments.effect / 100.0;
        let planned = AblationBudget::for_effect(sections, scenarios, effect);
        let Some(most) = self.arguments.max_trials else {
            return Ok(planned);
        };
        AblationBudget::within(sections, scenarios, effect, most).ok_or_else(|| {
            let coarsest = AblationBudget::for_effect(sections, scenarios, 1.0).trials();
            UsageError {
                message: format!("{most} trials show nothing about {sections} sections on {scenarios} scenarios"),
                hint: Some(format!("the coarsest design takes {coarsest} trials; fewer sections or scenarios take less")),
            }
            .into()
        })
    }

    fn run(&self) -> Result<Exit> {
        self.print_budget();
        if self.arguments.dry_run {
            return Ok(Exit::Done);
        }
        let first = self.load(self.budget.repetitions as u32, 0)?;
        if !self.arguments.no_preflight {
            preflight::check(&first, Scope::All)?;
        }
        if !self.arguments.yes && !run::agrees_to_cost(&first)? {
            say("nothing was run");
            return Ok(Exit::Incomplete);
        }
        let screened = match self.budget.blocks {
            0 => None,
            _ => match self.screen()? {
                Some(screened) => Some(screened),
                None => return Ok(Exit::Incomplete),
            },
        };
        let shortlist: Vec<usize> = match &screened {
            Some(effects) => effects
                .iter()
                .take(self.budget.shortlist)
                .map(|found| found.section)
                .collect(),
            None => (0..self.sections.len()).collect(),
        };
        let Some(findings) = self.confirm(&shortlist, screened.as_deref())? else {
            return Ok(Exit::Incomplete);
        };
        match self.arguments.json {
            true => print(findings.json(&self.sections, &self.budget).to_string()),
            false => findings.print(&self.sections),
        }
        Ok(Exit::Done)
    }

    fn print_budget(&self) {
        let AblationBudget {
            sections,
            scenarios,
            blocks,
            shortlist,
            repetitions,
            effect,
            ..
        } = self.budget;
        let screening = match blocks {
            0 => "no screening: all sections are confirmed".to_owned(),
            blocks => format!(
                "screening: {scenarios} scenarios × {blocks} blocks = {} trials, every section absent in half of the blocks of each scenario",
                self.budget.screening_trials()
            ),
        };
        say(plain(&format!(
            "{sections} sections of {}\n  {screening}\n  confirmation: {} arms × {scenarios} scenarios × {repetitions} repetitions = {} trials, on at most {shortlist} sections (Holm)\n  \
             at most {} trials; planned to find a section that changes success by {:.0} points with a chance of 85 % or more",
            self.arguments.file.display(),
            self.budget.arms(),
            self.budget.confirming_trials(),
            self.budget.trials(),
            effect * 100.0
        )));
    }

    /// All sections at once. Absent when the run was stopped.
    fn screen(&self) -> Result<Option<Vec<ScreenedEffect>>> {
        let seed = self.arguments.seed;
        let subsets = Arc::new(BalancedSubsets::new(
            seed,
            self.sections.len(),
            self.scenarios.len(),
            self.budget.blocks,
        ));
        let mut suite = self.load(self.budget.blocks as u32, 0)?;
        let screening = Arc::new(Screening {
            sections: self.sections.texts(),
            subsets: Arc::clone(&subsets),
            scenarios: self.scenarios.iter().cloned().zip(0..).collect(),
        });
        for source in suite.profile.providers.values_mut() {
            *source = screened(source.clone(), &screening);
        }
        if let Some(mode) = suite.profile.modes.first_mut() {
            mode.name = SCREENING.to_owned();
        }
        let design = json!({ "stage": SCREENING, "seed": seed, "blocks": self.budget.blocks, "sections": self.sections.described() });
        let result = self.carry_out(suite, design)?;
        if result.open > 0 {
            return Ok(None);
        }
        let places: BTreeMap<&str, usize> =
            self.scenarios.iter().map(String::as_str).zip(0..).collect();
        let mut trials = Vec::new();
        for row in result.run()?.rows()? {
            let row = row?;
            let success = match row.outcome {
                Some(Outcome::Pass) => true,
                Some(Outcome::Fail) => false,
                _ => continue,
            };
            if let (Some(scenario), Ok(block)) = (
                places.get(row.scenario_id.as_str()),
                usize::try_from(row.iteration),
            ) {
                trials.push(ScreenedTrial {
                    scenario: *scenario,
                    block,
                    success,
                });
            }
        }
        Ok(Some(subsets.screen(&trials)))
    }

    /// The whole file against the file without each section of the short list, on fresh trials.
    fn confirm(
        &self,
        shortlist: &[usize],
        screened: Option<&[ScreenedEffect]>,
    ) -> Result<Option<Findings>> {
        // Another seed than that of the screening, so that no trial is the same.
        let mut suite = self.load(self.budget.repetitions as u32, 1)?;
        let Some(mode) = suite.profile.modes.first().cloned() else {
            return Ok(None);
        };
        let all: Vec<usize> = (0..self.sections.len()).collect();
        let mut arms: Vec<(String, Vec<usize>)> = (0..self.budget.whole_arms)
            .map(|number| (whole_name(number), all.clone()))
            .collect();
        for section in shortlist {
            let kept = all
                .iter()
                .copied()
                .filter(|other| other != section)
                .collect();
            let name = format!("without {}", self.sections.name(*section));
            arms.push((name, kept));
        }
        if screened.is_some() {
            let mut kept = shortlist.to_vec();
            kept.sort_unstable();
            arms.push((LEAN.to_owned(), kept));
        }
        suite.profile.modes = arms
            .iter()
            .map(|(name, kept)| self.mode(&mode, name, kept))
            .collect();
        suite.profile.reading.baseline = Some(WHOLE.to_owned());
        suite.profile.reading.analysis.baseline = Some(WHOLE.to_owned());
        let design = json!({ "stage": "confirmation", "seed": self.arguments.seed, "sections": self.sections.described() });
        let result = self.carry_out(suite, design)?;
        if result.open > 0 {
            return Ok(None);
        }
        let tallies = self.tallies(&result)?;
        let none = Vec::new();
        let of = |name: &str| tallies.get(name).unwrap_or(&none).clone();
        let whole = (0..self.budget.whole_arms).map(|number| of(&whole_name(number)));
        let whole = pooled(whole.collect())?;
        let without: Vec<Vec<Tally>> = arms[self.budget.whole_arms..][..shortlist.len()]
            .iter()
            .map(|(name, _)| of(name))
            .collect();
        let confirmed = confirm_ablation(&whole, &without, Level::CONFIDENCE_95)?;
        let lean = match screened {
            Some(_) => Some(Lean::of(&whole, &of(LEAN), self.arguments.margin / 100.0)?),
            None => None,
        };
        run::judge(&result, None)?;
        Ok(Some(Findings {
            shortlist: shortlist.to_vec(),
            confirmed,
            lean,
            left: all
                .into_iter()
                .filter(|section| !shortlist.contains(section))
                .collect(),
            run: result.directory.clone(),
        }))
    }

    fn mode(&self, mode: &Mode, name: &str, kept: &[usize]) -> Mode {
        let mut overrides = (*mode.overrides).clone();
        overrides.insert(
            "instructions".to_owned(),
            json!({ "text": self.sections.joined(kept) }),
        );
        Mode {
            name: name.to_owned(),
            overrides: Arc::new(overrides),
            ..mode.clone()
        }
    }

    /// Passed and judged trials by mode, scenario by scenario.
    fn tallies(&self, result: &ProfileSuiteResult) -> Result<BTreeMap<String, Vec<Tally>>> {
        let mut counts: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for row in result.run()?.rows()? {
            let row = row?;
            let place = self.scenarios.iter().position(|id| *id == row.scenario_id);
            let (Some(place), Some(Outcome::Pass | Outcome::Fail)) = (place, row.outcome) else {
                continue;
            };
            let of_mode = counts
                .entry(row.mode)
                .or_insert_with(|| vec![(0, 0); self.scenarios.len()]);
            of_mode[place].0 += u64::from(row.outcome == Some(Outcome::Pass));
            of_mode[place].1 += 1;
        }
        let tally = |(passed, trials): &(u64, u64)| Tally::new(*passed, *trials);
        counts
            .into_iter()
            .map(|(mode, counts)| Ok((mode, counts.iter().map(tally).collect::<Result<_, _>>()?)))
            .collect()
    }

    fn carry_out(&self, mut suite: LoadedSuite, design: Value) -> Result<ProfileSuiteResult> {
        suite.profile.execution.warmup = false;
        if self.arguments.no_preflight {
            suite.profile.execution.preflight = Duration::ZERO;
        }
        suite
            .profile
            .description
            .insert("ablation".to_owned(), design);
        let modes = suite
            .profile
            .modes
            .iter()
            .map(|mode| mode.name.clone())
            .collect();
        let listener: Arc<dyn Listener> = match self.arguments.json || self.arguments.quiet {
            true => Arc::new(()),
            false => Arc::new(Progress::new(modes)),
        };
        let results = suite.results_dir.clone();
        let result = in_runtime(
            suite,
            RunTarget::New(results),
            Arc::new(Remembering(listener)),
        )?;
        if result.open > 0 {
            say(format!(
                "{} trials are open; the ablation is not finished",
                result.open
            ));
        }
        Ok(result)
    }

    /// The suite with the instruction file in one of its modes, and nothing else of its own in its place.
    fn load(&self, repetitions: u32, stage: u64) -> Result<LoadedSuite> {
        let path = suite::find(&self.arguments.suite).map_err(SuiteError::from)?;
        let document = suite::Document::read(&path).map_err(SuiteError::from)?;
        let mut value = document.value().clone();
        let file = std::path::absolute(&self.arguments.file)?;
        let Some(map) = value.as_object_mut() else {
            return Err(UsageError::new(format!("`{}` is no suite", path.display())).into());
        };
        for key in ["with", "without", "gates"] {
            map.remove(key);
        }
        map.insert("instructions".to_owned(), json!(file));
        let mode = match (map.get("modes"), &self.arguments.mode) {
            (Some(Value::Object(modes)), Some(wanted)) if !modes.contains_key(wanted) => {
                let known: Vec<&str> = modes.keys().map(String::as_str).collect();
                return Err(UsageError {
                    message: format!("unknown mode `{wanted}`"),
                    hint: suite::suggest(wanted, &known),
                }
                .into());
            }
            (Some(Value::Object(modes)), wanted) => {
                let first = modes.keys().next().cloned();
                let name = wanted.clone().or(first);
                name.map(|name| (name.clone(), modes[&name].clone()))
            }
            _ => None,
        };
        let (name, mut mode) = mode.unwrap_or_else(|| (WHOLE.to_owned(), json!({})));
        if let Some(own) = mode.as_object_mut() {
            own.remove("instructions");
        }
        map.insert("modes".to_owned(), json!({ name: mode }));
        if let Some(analysis) = map.get_mut("analysis").and_then(Value::as_object_mut) {
            analysis.remove("baseline");
        }
        let selection = Selection {
            repetitions: Some(repetitions),
            seed: Some(self.arguments.seed.wrapping_add(stage)),
            skip_warmup: true,
            models: self.arguments.model.iter().cloned().collect(),
            concurrency: self.arguments.concurrency,
            ..Selection::default()
        };
        let directory = path.parent().filter(|parent| *parent != Path::new(""));
        let unwritten = UnwrittenSuite {
            directory: directory.unwrap_or(Path::new(".")).to_owned(),
            suite: value,
            scenarios: BTreeMap::new(),
        };
        Ok(unwritten.load(&selection, self.plugins)?)
    }
}

/// Several arms have everything; the first is the baseline.
fn whole_name(number: usize) -> String {
    match number {
        0 => WHOLE.to_owned(),
        number => format!("{WHOLE} ({})", number + 1),
    }
}

/// Tallies of arms that are the same, scenario by scenario.
fn pooled(arms: Vec<Vec<Tally>>) -> Result<Vec<Tally>> {
    let scenarios = arms.iter().map(Vec::len).max().unwrap_or(0);
    let sum = |place: usize| {
        let own = arms.iter().filter_map(|arm| arm.get(place));
        let (passed, trials) = own.fold((0, 0), |(passed, trials), tally| {
            (passed + tally.successes(), trials + tally.trials())
        });
        Ok(Tally::new(passed, trials)?)
    };
    (0..scenarios).map(sum).collect()
}

fn screened(source: ProviderSource, screening: &Arc<Screening>) -> ProviderSource {
    let screening = Arc::clone(screening);
    match source {
        ProviderSource::Factory(make) => ProviderSource::Factory(Arc::new(move || {
            Arc::new(Screened::new(make(), Arc::clone(&screening)))
        })),
        ProviderSource::Single(provider) => {
            ProviderSource::Single(Arc::new(Screened::new(provider, screening)))
        }
    }
}
