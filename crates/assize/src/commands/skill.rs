//! `assize skill test`: a skill with and without, on its own tasks. Does it trigger, does it help, what does it cost?

use super::UsageError;
use super::import::{Cases, JudgeChoice, SuiteDraft, tasks_of_skill};
use super::last_run::Remembering;
use super::preflight::{self, Scope};
use super::run::{self, in_runtime};
use super::{open_page::open_page, own_results_dir};
use crate::cli::{SkillAction, SkillArguments, SkillTestArguments};
use crate::exit::Exit;
use crate::suite::{self, Selection};
use crate::terminal::{Progress, plain, print, print_json, say, warn};
use anyhow::Result;
use assize_agents::{Skill, SkillError};
use assize_contracts::{Metric, Plugins};
use assize_engine::{Listener, RunTarget};
use assize_report::{Comparison, Summary, amount, percent, verdict_line};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn skill(arguments: &SkillArguments, plugins: &Plugins) -> Result<Exit> {
    match &arguments.action {
        SkillAction::Test(arguments) => test(arguments, plugins),
    }
}

fn test(arguments: &SkillTestArguments, plugins: &Plugins) -> Result<Exit> {
    let skill = Skill::read(&arguments.directory).map_err(refused)?;
    let mut cases = tasks_of_skill(&arguments.directory, arguments.tasks.as_deref())?;
    let judge = arguments.judge.as_deref().map(judge_choice).transpose()?;
    for line in &cases.left_out {
        warn(&format!("left out: {line}"));
    }
    if judge.is_none() && cases.criteria() > 0 {
        warn(&format!(
            "{} expectations need a judge and are left out; to have them judged: --judge anthropic:claude-sonnet-4-5",
            cases.criteria()
        ));
        cases.leave_criteria_out();
    }
    let mut exit = Exit::Done;
    for agent in &arguments.agent {
        let tried = Tried {
            skill: &skill,
            cases: &cases,
            judge: judge.as_ref(),
            agent,
            arguments,
        };
        let ended = tried.run(plugins)?;
        if ended != Exit::Done {
            exit = ended;
        }
    }
    Ok(exit)
}

fn refused(error: SkillError) -> UsageError {
    let SkillError {
        path,
        line,
        message,
        hint,
    } = error;
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    UsageError {
        message: format!("{}{line}: {message}", path.display()),
        hint,
    }
}

/// `anthropic:claude-sonnet-4-5`.
fn judge_choice(text: &str) -> Result<JudgeChoice, UsageError> {
    match text.split_once(':') {
        Some((api, model)) if !api.is_empty() && !model.is_empty() => {
            let (model, base_url) = match model.split_once('@') {
                Some((model, url)) => (model, Some(url.to_owned())),
                None => (model, None),
            };
            Ok(JudgeChoice {
                api: api.to_owned(),
                model: model.to_owned(),
                base_url,
            })
        }
        _ => Err(UsageError {
            message: format!("found the judge `{text}`, expected an API and a model"),
            hint: Some("for example --judge anthropic:claude-sonnet-4-5 or --judge openai:qwen3@http://127.0.0.1:4000/v1".to_owned()),
        }),
    }
}

/// One agent with the skill.
struct Tried<'a> {
    skill: &'a Skill,
    cases: &'a Cases,
    judge: Option<&'a JudgeChoice>,
    agent: &'a str,
    arguments: &'a SkillTestArguments,
}

impl Tried<'_> {
    fn run(&self, plugins: &Plugins) -> Result<Exit> {
        let directory = self.directory();
        self.cases.write(&directory, &self.suite())?;
        let results = own_results_dir();
        let selection = Selection {
            results_dir: Some(results.clone()),
            ..Selection::default()
        };
        let mut suite = suite::load(&directory, &selection, plugins)?;
        for remark in &suite.remarks {
            warn(remark);
        }
        match self.arguments.no_preflight {
            true => suite.profile.execution.preflight = Duration::ZERO,
            false => {
                let versions = preflight::check(&suite, Scope::All)?;
                let agents = ("agents".to_owned(), Value::Object(versions));
                suite.profile.provenance.extend([agents]);
            }
        }
        if !self.arguments.yes && !run::agrees_to_cost(&suite)? {
            say("nothing was run");
            return Ok(Exit::Incomplete);
        }
        let modes = suite.profile.modes.iter();
        let modes = modes.map(|mode| mode.name.clone()).collect();
        let listener: Arc<dyn Listener> = match self.arguments.json {
            true => Arc::new(()),
            false => Arc::new(Progress::new(modes)),
        };
        let listener = Arc::new(Remembering(listener));
        let result = in_runtime(suite, RunTarget::New(results), listener)?;
        let run::Judged { summary, exit } = run::judge(&result, None)?;
        match self.arguments.json {
            true => self.print_json(&summary, &result.directory),
            false => {
                run::print_result(&summary, &result.directory);
                print_answers(&summary, &self.skill.name, self.agent);
                say(plain(&format!(
                    "the suite is in {0}; again with `assize run {0}`",
                    directory.display()
                )));
            }
        }
        if self.arguments.open {
            open_page(&result.directory.join("report/report.html"));
        }
        Ok(exit)
    }

    /// Kept, so that people can look at it, change it and run it again.
    fn directory(&self) -> PathBuf {
        let chosen = self.arguments.save.clone();
        let usual = || Path::new(".assize/skills").join(&self.skill.name);
        let directory = chosen.unwrap_or_else(usual);
        match self.arguments.agent.len() {
            1 => directory,
            _ => directory.join(self.agent),
        }
    }

    fn suite(&self) -> SuiteDraft {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut keys = Map::new();
        let mut add = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
        add("version", json!(1));
        add("name", json!(format!("skill {}", self.skill.name)));
        let mut provider = json!({"uses": self.agent});
        for (name, value) in &self.arguments.set {
            provider[name] = value.clone();
        }
        add("provider", provider);
        add("permissions", json!({"auto_approve": true}));
        add("with", json!(absolute(&self.arguments.directory)));
        if !self.arguments.neighbour.is_empty() {
            let beside = self.arguments.neighbour.iter().map(|path| absolute(path));
            add("neighbours", json!(beside.collect::<Vec<_>>()));
        }
        if let Some(model) = &self.arguments.model {
            add("models", json!([model]));
        }
        add("scenarios", json!({"paths": ["scenarios/*.yaml"]}));
        if let Some(judge) = self.judge {
            let mut settings = json!({"api": judge.api, "model": judge.model});
            if let Some(url) = &judge.base_url {
                settings["base_url"] = json!(url);
            }
            add("judge", settings);
        }
        let execution = json!({
            "repetitions": self.arguments.repetitions,
            "seed": self.arguments.seed,
            "timeout_default_ms": self.arguments.timeout,
            "warmup": false,
        });
        add("execution", execution);
        SuiteDraft {
            comment: format!(
                "The skill {} with and without, on its own tasks.",
                self.skill.name
            ),
            keys,
        }
    }

    fn print_json(&self, summary: &Summary, directory: &Path) {
        let sentences: Vec<String> = summary.decisive().map(verdict_line).collect();
        let told = json!({
            "skill": self.skill.name,
            "hash": self.skill.hash,
            "agent": self.agent,
            "run": directory,
            "answers": answers(summary, &self.skill.name),
            "sentences": sentences,
            "modes": summary.modes,
            "comparisons": summary.comparisons,
        });
        print_json(told.to_string());
    }
}

fn print_answers(summary: &Summary, skill: &str, agent: &str) {
    print(plain(&format!("\nskill {skill} with {agent}")));
    for (question, answer) in answers(summary, skill) {
        let answer = answer.as_str().unwrap_or_default();
        print(plain(&format!("  {question:<18} {answer}")));
    }
}

/// The three questions, answered from the summary alone.
fn answers(summary: &Summary, skill: &str) -> Map<String, Value> {
    let with = summary.modes.find(&format!("with-{skill}"));
    let mean = |name: &str| with?.metrics.find(name)?.mean;
    let triggers = match with.and_then(|mode| mode.triggers.as_ref()) {
        Some(found) => found.words(),
        None => match mean(Metric::SKILL_ACTIVATED) {
            Some(share) => format!(
                "used in {} of the trials; no task says whether it should be",
                percent(share)
            ),
            None => "unknown: use of skills was not observed".to_owned(),
        },
    };
    let line = |wanted: fn(&Comparison) -> bool| {
        let mut found = summary.decisive().filter(|found| wanted(found));
        found.next().map(verdict_line)
    };
    let helps = line(|found| matches!(found, Comparison::Success(_)));
    let costs = line(|found| matches!(found, Comparison::Metric(_)));
    let text = mean("skill_text_tokens").map(|tokens| {
        let metric = summary.catalog.metric("skill_text_tokens");
        format!("; its text takes about {}", amount(&metric, tokens.round()))
    });
    let unknown = || "unknown".to_owned();
    let costs = costs.unwrap_or_else(unknown);
    Map::from_iter([
        ("does it trigger?".to_owned(), triggers.into()),
        (
            "does it help?".to_owned(),
            helps.unwrap_or_else(unknown).into(),
        ),
        (
            "what does it cost?".to_owned(),
            format!("{costs}{}", text.unwrap_or_default()).into(),
        ),
    ])
}
