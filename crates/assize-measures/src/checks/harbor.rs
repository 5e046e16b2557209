//! `harbor`: the tests of a Harbor task, run in the container where the agent worked or in one of their own. Running them is
//! left to a [`CommandRunner`](super::CommandRunner); what their rewards mean is decided here.

use super::check::{Look, Seen, Sentence, Subject};
use crate::spec::Spec;
use assize_contracts::{Better, ConfigError, CustomMetric, ScorerContext};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const KEYS: [&str; 1] = ["task"];

/// The reward that counts as success.
const FULL: f64 = 1.0;

/// A task to verify.
#[derive(Debug, Clone, Copy)]
pub struct HarborSpec<'a> {
    /// The directory of the task.
    pub task: &'a Path,
    /// The trial, with the container in which the agent worked.
    pub context: &'a ScorerContext,
}

/// The results of a task's tests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rewards {
    /// Finite numbers by name; `reward` where the task gives only one.
    pub values: BTreeMap<String, f64>,
    /// The end of what the tests printed.
    pub output: String,
}

impl Rewards {
    /// True if the reward is full: the one called `reward`, or all of them where none is called so.
    pub fn are_full(&self) -> bool {
        match self.values.get("reward") {
            Some(reward) => *reward >= FULL,
            None => !self.values.is_empty() && self.values.values().all(|value| *value >= FULL),
        }
    }

    fn metrics(&self) -> Vec<CustomMetric> {
        let metric = |(name, value): (&String, &f64)| {
            let name = match name.as_str() {
                "reward" => "reward".to_owned(),
                other => format!("reward_{other}"),
            };
            let metric = CustomMetric::number(name, *value, "ratio")?;
            Some(metric.better(Better::Higher))
        };
        self.values.iter().filter_map(metric).collect()
    }
}

pub(super) struct HarborCheck {
    task: PathBuf,
}

impl HarborCheck {
    pub(super) fn parse(spec: &Spec<'_>) -> Result<Self, ConfigError> {
        let fields = spec.fields(&KEYS)?;
        match fields.get("task") {
            Some(task) => Ok(Self {
                task: task.text()?.into(),
            }),
            None => Err(spec.error("expected `task`: the directory of a Harbor task")),
        }
    }

    pub(super) fn sentence(&self) -> Sentence {
        let name = self.task.file_name().unwrap_or_default().to_string_lossy();
        Sentence {
            label: "harbor".to_owned(),
            words: format!("the tests of `{name}` give the full reward"),
            expected: json!({ "reward": FULL }),
        }
    }

    pub(super) async fn look(&self, subject: &Subject<'_>) -> Look {
        let commands = subject.commands.ok_or("commands cannot be run here")?;
        let spec = HarborSpec {
            task: &self.task,
            context: subject.context,
        };
        let rewards = commands
            .verify(&spec)
            .await
            .map_err(|error| format!("the task could not be verified: {error}"))?;
        let actual: Value =
            json!({ "rewards": rewards.values, "output": super::command::end_of(&rewards.output) });
        let metrics = rewards.metrics();
        Ok(Seen::new(rewards.are_full(), actual).measuring(metrics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewards(values: &[(&str, f64)]) -> Rewards {
        let values = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Rewards {
            values: values.collect(),
            output: String::new(),
        }
    }

    #[test]
    fn the_reward_decides_and_others_only_where_there_is_none() {
        assert!(rewards(&[("reward", 1.0), ("style", 0.0)]).are_full());
        assert!(!rewards(&[("reward", 0.9)]).are_full());
        assert!(rewards(&[("a", 1.0), ("b", 2.0)]).are_full());
        assert!(!rewards(&[("a", 1.0), ("b", 0.5)]).are_full());
        assert!(!rewards(&[]).are_full());
    }

    #[test]
    fn every_reward_is_a_metric() {
        let metrics = rewards(&[("reward", 0.5), ("style", 0.2)]).metrics();
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["reward", "reward_style"]);
    }
}
