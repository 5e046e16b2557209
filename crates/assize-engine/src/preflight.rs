//! Tries out the set-ups of workspaces before the first trial, while nothing is spent.

use crate::profile::EngineError;
use crate::suite::{Mode, ProfileSuite};
use crate::workspace::{self, Setting, TrialWorkspaces};
use assize_contracts::{BaseScenario, WorkspaceSpec};
use assize_secrets::Redactor;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Makes one workspace of every distinct set-up and keeps it for the first trial that needs it. Set-ups that are not made within
/// `limit` are left to the first trial.
pub(crate) async fn try_set_ups(
    suite: &ProfileSuite,
    workspaces: &TrialWorkspaces,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<(), EngineError> {
    let deadline = Instant::now() + limit;
    for SetUp {
        scenario,
        mode,
        spec,
    } in distinct(suite)
    {
        let setting = Setting {
            spec,
            directory: &suite.directory,
            environment: &mode.environment,
            hidden: &suite.hidden,
        };
        let trying = tokio::time::timeout_at(deadline, workspaces.prepare_ahead(&setting));
        let tried = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(()),
            tried = trying => tried,
        };
        match tried {
            Ok(Ok(())) => {}
            Ok(Err(message)) => {
                // Where no workspace can be made at all, the set-up is not to blame.
                workspace::methods(suite).map_err(EngineError::Workspace)?;
                return Err(EngineError::SetUp {
                    scenario: scenario.id.clone(),
                    mode: mode.name.clone(),
                    message: Redactor::new(&suite.secrets).text(&message).into_owned(),
                });
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

struct SetUp<'a> {
    scenario: &'a BaseScenario,
    mode: &'a Mode,
    spec: &'a WorkspaceSpec,
}

/// Every set-up that can fail, once: the same commands in the same files with the same variables.
fn distinct(suite: &ProfileSuite) -> Vec<SetUp<'_>> {
    let mut found: Vec<SetUp<'_>> = Vec::new();
    for scenario in &suite.scenarios {
        let Some(spec) = &scenario.workspace else {
            continue;
        };
        if spec.setup.is_empty() && spec.setup_once.is_empty() && spec.git.is_none() {
            continue;
        }
        for mode in &suite.modes {
            let is_same = |known: &SetUp<'_>| {
                known.spec == spec && known.mode.environment == mode.environment
            };
            if !found.iter().any(is_same) {
                found.push(SetUp {
                    scenario,
                    mode,
                    spec,
                });
            }
        }
    }
    found
}
