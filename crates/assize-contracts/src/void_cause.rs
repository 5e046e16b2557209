//! Causes of void trials, and which of them may depend on the mode.

use serde::{Deserialize, Serialize};

/// The cause of a void trial.
///
/// Void trials whose cause may depend on the mode widen the verdict to its worst and best case; the others are left out
/// and repeated by `--resume --only void`. See [`may_depend_on_mode`](Self::may_depend_on_mode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VoidCause {
    /// The workspace could not be made, or its set-up commands failed.
    WorkspaceSetup,
    /// The agent could not be started: its program is missing, or its session was not created.
    AgentStart,
    /// No model call was answered: no key, a wrong address, an unknown model, a used-up quota.
    NoModelAnswer,
    /// A model call failed after others were answered, and the agent did not recover.
    LlmError,
    /// A model call got no byte of an answer until the time limit.
    LlmNoAnswer,
    /// The provider or its plugin broke while the agent worked.
    Provider,
    /// The runner of a task broke.
    Runner,
    /// The workspace could not be read after the agent had ended.
    WorkspaceLost,
    /// The scorer, the judge or an evaluator broke.
    Scorer,
    /// A cause that this version of Assize does not know.
    #[serde(other)]
    Unknown,
}

impl VoidCause {
    /// True when the mode may have caused the void: as soon as the agent can have acted, that is, received a
    /// model's answer or started a tool. Rows without a cause count as if this were true.
    pub fn may_depend_on_mode(self) -> bool {
        !matches!(
            self,
            Self::WorkspaceSetup | Self::AgentStart | Self::NoModelAnswer
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_causes_before_the_first_action_are_unrelated_to_the_mode() {
        let unrelated = [
            VoidCause::WorkspaceSetup,
            VoidCause::AgentStart,
            VoidCause::NoModelAnswer,
        ];
        let related = [
            VoidCause::LlmError,
            VoidCause::LlmNoAnswer,
            VoidCause::Provider,
            VoidCause::Runner,
            VoidCause::WorkspaceLost,
            VoidCause::Scorer,
            VoidCause::Unknown,
        ];
        assert!(unrelated.iter().all(|cause| !cause.may_depend_on_mode()));
        assert!(related.iter().all(|cause| cause.may_depend_on_mode()));
    }

    #[test]
    fn a_cause_of_a_later_version_is_unknown_and_possibly_related() {
        let cause: VoidCause = serde_json::from_str("\"meteor_strike\"").unwrap();
        assert_eq!(cause, VoidCause::Unknown);
        assert!(cause.may_depend_on_mode());
    }
}
