//! The workspace of an attempt, and its name in the prompts.

use super::row::RowParts;
use super::talk::Failure;
use super::{Cancelled, Slot, Trials};
use crate::random::attempt_seed;
use crate::workspace::{Setting, archive_name};
use assize_contracts::{BaseScenario, JsonMap, Metric, Number, PluginError, fill_template};
use std::borrow::Cow;
use std::path::Path;

impl Trials {
    /// Makes the scenario's workspace, if it has one. `false`: there is none, and the reason is noted.
    pub(super) async fn prepare(
        &self,
        slot: &Slot<'_>,
        scenario: &BaseScenario,
        parts: &mut RowParts,
    ) -> Result<bool, Cancelled> {
        let Some(spec) = &scenario.workspace else {
            return Ok(true);
        };
        let setting = Setting {
            spec,
            directory: &self.suite.directory,
            environment: &slot.cell.mode.environment,
            hidden: &self.suite.hidden,
        };
        match self
            .unless_cancelled(self.workspaces.prepare(&setting))
            .await?
        {
            Ok(workspace) => parts.workspace = Some(workspace),
            Err(message) => {
                parts.failure = Some(Failure::of_workspace_setup(message));
            }
        }
        Ok(parts.workspace.is_some())
    }

    /// Notes what the agent changed, before anything else touches the workspace.
    pub(super) async fn observe(&self, slot: &Slot<'_>, number: u32, parts: &mut RowParts) {
        let Some(workspace) = &parts.workspace else {
            return;
        };
        let name = archive_name(self.seed_of(slot, number));
        let by = (self.cancel.clone(), self.redactor.clone());
        let observed = self.workspaces.observe(workspace, name, by).await;
        match observed.changes {
            Ok(changes) => parts.changes = changes,
            Err(message) => parts.failure = Some(Failure::of_lost_workspace(message)),
        }
        parts
            .plugin_errors
            .extend(observed.archive_error.map(|message| PluginError {
                hook: "workspace".to_owned(),
                message,
            }));
    }

    /// Numbers of added, modified and deleted files, as metrics.
    pub(super) fn count_changes(&self, parts: &RowParts, metrics: &mut JsonMap) {
        if parts.workspace.is_none() || parts.failure.is_some() {
            return;
        }
        for kind in ["added", "modified", "deleted"] {
            let name = format!("files_{kind}");
            let count = parts
                .changes
                .iter()
                .filter(|change| change.kind == kind)
                .count();
            self.metrics.add(&name, || Metric::named(&name));
            metrics.insert(name, Number::from(count as u64).into());
        }
    }

    pub(super) fn seed_of(&self, slot: &Slot<'_>, attempt: u32) -> u64 {
        let cell = slot.cell.key(&slot.scenario.id);
        let seed = self.suite.execution.seed;
        attempt_seed(seed, cell, slot.cell.iteration, attempt as usize)
    }
}

/// The scenario with `{workspace}` and `{iteration}` replaced in its prompts.
pub(crate) fn filled<'a>(
    scenario: &'a BaseScenario,
    workspace: &Path,
    iteration: i64,
) -> Cow<'a, BaseScenario> {
    let is_open = |text: &String| text.contains("{workspace}") || text.contains("{iteration}");
    if !is_open(&scenario.prompt) && !scenario.turns.iter().any(is_open) {
        return Cow::Borrowed(scenario);
    }
    let workspace = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
    let (workspace, iteration) = (workspace.to_string_lossy(), iteration.to_string());
    let fill = |text: &String| {
        fill_template(text, |name| match name {
            "workspace" => Some(Cow::Borrowed(&*workspace)),
            "iteration" => Some(Cow::Borrowed(&*iteration)),
            _ => None,
        })
    };
    let mut filled = scenario.clone();
    filled.prompt = fill(&scenario.prompt);
    filled.turns = scenario.turns.iter().map(fill).collect();
    Cow::Owned(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_prompts_are_replaced() {
        let mut scenario = BaseScenario::new("s", "Look at {workspace}, {name}.");
        scenario.turns = vec!["Round {iteration}".to_owned()];
        let filled = filled(&scenario, Path::new("/w"), 3);
        assert_eq!(filled.prompt, "Look at /w, {name}.");
        assert_eq!(filled.turns, ["Round 3"]);
    }

    #[test]
    fn a_prompt_without_names_is_not_copied() {
        let scenario = BaseScenario::new("s", "Say {hello}.");
        assert!(matches!(
            filled(&scenario, Path::new("/w"), 0),
            Cow::Borrowed(_)
        ));
    }
}
