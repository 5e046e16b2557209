//! Reasons why a number is weak, as codes. The sentence shown to people is chosen by the report;
//! `explanation` is the short version that suits a log line or a table of codes.

use std::collections::BTreeSet;

use serde::Serialize;

/// A reason to read a number with care. Serialises to its code, such as `few-scenarios`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// At most one value: there is nothing to resample.
    TooFewValues,
    /// Fewer than five finite runs in a group or scenario.
    SmallN,
    /// Fewer than six scenarios.
    FewScenarios,
    /// One scenario only: nothing can be said about other tasks.
    SingleScenario,
    /// The runs carry no scenario that both modes ran.
    Unpaired,
    /// All differences are equal, so their spread cannot be estimated.
    NoVariation,
    /// NaN or infinite measurements were left out.
    NonFiniteDropped,
    /// The baseline is zero, so no percentage of it exists.
    BaselineZero,
    /// The baseline is negative, so a percentage of it means nothing.
    BaselineNonpositive,
    /// Some resamples had a baseline at or below zero and were left out.
    BaselineTouchesZero,
    /// BCa does not work for medians or fewer than twenty values.
    BcaUnsuitable,
    /// A mean of few, skewed scenarios: its interval is a little too short.
    SkewedMean,
    /// Some scenarios have fewer trials than `k` and were left out.
    KExceedsTrials,
    /// Some runs were cut off before they ended.
    Censored,
    /// No run succeeded, so there is no cost per success.
    NoSuccesses,
    /// More than one trial in twenty could not be judged.
    ManyVoid,
    /// The run was stopped after looking at the data.
    OptionalStopping,
    /// Scenarios run by one mode only were left out.
    UnmatchedScenarios,
    /// So few tasks may have missed a whole kind of task.
    UnseenTasks,
    /// The most favourable task was counted only as much as the next one.
    TaskCapped,
    /// A kind of task that was not seen could reverse the verdict.
    FewTasksCouldReverse,
    /// Fewer than five runs of a mode: no interval for exactly these tasks.
    FewRuns,
    /// Some tasks have at least four times as many runs as others.
    UnevenRuns,
    /// The possible outcomes of the void trials change the verdict.
    VoidDecides,
    /// Trials that failed before the agent acted were left out.
    VoidUnrelated,
    /// Some runs reached the limit, so their values are lower bounds.
    CutOff,
    /// Most runs of a mode reached the limit, so there is no size.
    SizeWithheld,
    /// No event was counted in either mode.
    NothingHappened,
}

impl Warning {
    /// Every warning, in the order in which answers list them.
    pub const ALL: [Warning; 28] = [
        Self::TooFewValues,
        Self::SmallN,
        Self::FewScenarios,
        Self::SingleScenario,
        Self::Unpaired,
        Self::NoVariation,
        Self::NonFiniteDropped,
        Self::BaselineZero,
        Self::BaselineNonpositive,
        Self::BaselineTouchesZero,
        Self::BcaUnsuitable,
        Self::SkewedMean,
        Self::KExceedsTrials,
        Self::Censored,
        Self::NoSuccesses,
        Self::ManyVoid,
        Self::OptionalStopping,
        Self::UnmatchedScenarios,
        Self::UnseenTasks,
        Self::TaskCapped,
        Self::FewTasksCouldReverse,
        Self::FewRuns,
        Self::UnevenRuns,
        Self::VoidDecides,
        Self::VoidUnrelated,
        Self::CutOff,
        Self::SizeWithheld,
        Self::NothingHappened,
    ];

    /// The warning in one sentence, without names or numbers.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::TooFewValues => "There are too few values to say how far chance reaches.",
            Self::SmallN => "Some groups have fewer than 5 runs.",
            Self::FewScenarios => "Fewer than 6 scenarios: the interval is wide for that reason.",
            Self::SingleScenario => "One scenario: the result holds for exactly this task.",
            Self::Unpaired => "The runs are not matched by scenario.",
            Self::NoVariation => "All differences are equal, so no p-value exists.",
            Self::NonFiniteDropped => "Measurements that are not finite numbers were left out.",
            Self::BaselineZero => "The baseline is zero, so no percentage exists.",
            Self::BaselineNonpositive => "The baseline is negative, so percentages mean nothing.",
            Self::BaselineTouchesZero => "The baseline may be zero or less within its error.",
            Self::BcaUnsuitable => "BCa suits neither medians nor fewer than 20 values.",
            Self::SkewedMean => "Few and skewed scenarios: the interval of the mean is too short.",
            Self::KExceedsTrials => "Scenarios with fewer than k trials were left out.",
            Self::Censored => "Some runs were cut off before they ended.",
            Self::NoSuccesses => "No run succeeded.",
            Self::ManyVoid => "More than 5 % of the trials could not be judged.",
            Self::OptionalStopping => "The run was stopped early, which makes chance look real.",
            Self::UnmatchedScenarios => "Scenarios without a result of both modes were left out.",
            Self::UnseenTasks => {
                "So few tasks can miss a whole kind of task; the interval allows for it."
            }
            Self::TaskCapped => {
                "The most favourable task was counted only as much as the next one."
            }
            Self::FewTasksCouldReverse => {
                "A kind of task that was not seen could turn the verdict around."
            }
            Self::FewRuns => "Fewer than 5 runs of a mode: nothing can be said about chance.",
            Self::UnevenRuns => "Some tasks have at least 4 times as many runs as others.",
            Self::VoidDecides => "The trials that could not be judged decide the verdict.",
            Self::VoidUnrelated => "Trials that failed before the agent acted were left out.",
            Self::CutOff => "Some runs were cut off by a limit.",
            Self::SizeWithheld => "Most runs of a mode reached the limit, so no size is given.",
            Self::NothingHappened => "Nothing was counted in either mode.",
        }
    }
}

/// The warnings of one answer: each once, always in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Warnings(BTreeSet<Warning>);

impl Warnings {
    /// Adds a warning; a second time changes nothing.
    pub fn add(&mut self, warning: Warning) {
        self.0.insert(warning);
    }

    /// Adds a warning when `condition` holds.
    pub fn add_if(&mut self, condition: bool, warning: Warning) {
        if condition {
            self.add(warning);
        }
    }

    /// Takes a warning back.
    pub(crate) fn remove(&mut self, warning: Warning) {
        self.0.remove(&warning);
    }

    /// Adds all warnings of another answer.
    pub fn extend(&mut self, other: &Warnings) {
        self.0.extend(other.iter());
    }

    /// True when the warning was given.
    pub fn contains(&self, warning: Warning) -> bool {
        self.0.contains(&warning)
    }

    /// The warnings in their fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Warning> + '_ {
        self.0.iter().copied()
    }
}
