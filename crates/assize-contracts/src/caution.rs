//! Reasons to read numbers with care: reported by the engine during a run, and by the report about its result.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One reason, reported once, with the places it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caution {
    /// A word for machines, such as `few-scenarios`.
    pub code: CautionCode,
    /// A sentence for people.
    pub text: String,
    /// Modes, comparisons, metrics or hooks concerned; empty when it is everything. Version 0.1 wrote one text in events.
    #[serde(rename = "where", default, deserialize_with = "text_or_list")]
    pub places: Vec<String>,
    /// Concerns the trials themselves or a metric that decides.
    #[serde(skip, default = "primary")]
    pub is_primary: bool,
}

impl Caution {
    /// A caution about these places.
    pub fn new(code: CautionCode, text: impl Into<String>, places: Vec<String>) -> Self {
        Self {
            code,
            text: text.into(),
            places,
            is_primary: true,
        }
    }

    /// A caution about everything.
    pub fn about_all(code: CautionCode, text: impl Into<String>) -> Self {
        Self::new(code, text, Vec::new())
    }

    /// A caution about one place.
    pub fn about(code: CautionCode, text: impl Into<String>, place: impl Into<String>) -> Self {
        Self::new(code, text, vec![place.into()])
    }
}

macro_rules! caution_codes {
    ($($(#[$doc:meta])* $code:ident = $word:literal,)*) => {
        /// The kind of a caution. Its word never changes.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum CautionCode {
            $($(#[$doc])* $code,)*
            /// A code that this version does not know.
            Other(String),
        }

        impl CautionCode {
            /// The word in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$code => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for CautionCode {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$code,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

caution_codes! {
    /// A hook failed.
    HookFailed = "hook-failed",
    /// A task could not be read again when its trial began.
    TaskUnreadable = "task-unreadable",
    /// Two collectors or evaluators give the same metric.
    MetricClash = "metric-clash",
    /// An evaluator failed.
    EvaluatorBroken = "evaluator-broken",
    /// A mode was stopped, because it was void from its start.
    ModeStopped = "mode-stopped",
    /// There are no trials.
    NoTrials = "no-trials",
    /// Some rows repeat trials.
    DuplicateRows = "duplicate-rows",
    /// A file ends in the middle of a row.
    TornRow = "torn-row",
    /// The agent reports other token counts than the wire.
    AgentDisagrees = "agent-disagrees",
    /// The agent reports another cost than was computed.
    AgentCostDisagrees = "agent-cost-disagrees",
    /// The votes of a judge agree too little.
    JudgeDisagrees = "judge-disagrees",
    /// Trials of a stand-in.
    Simulated = "simulated",
    /// Trials answered from recordings.
    Replayed = "replayed",
    /// Live, simulated and replayed trials together.
    MixedNature = "mixed-nature",
    /// Rows of several suites.
    SeveralSuites = "several-suites",
    /// Modes that differ in their model.
    DifferentModels = "different-models",
    /// Modes that ran with several models.
    SeveralModels = "several-models",
    /// Void trials.
    Void = "void",
    /// Tokens and cost of some trials are known only as lower bounds, because a model call did not report them fully.
    Incomplete = "incomplete",
    /// Failed trials that carry only zeros.
    Unmeasured = "unmeasured",
    /// Tokens without a price.
    UnknownCost = "unknown-cost",
    /// Trials that were tried again after failing.
    RetriedFailures = "retried-failures",
    /// Agents could read what they are judged by, or do other things that a sandbox keeps them from.
    WeakSandbox = "weak-sandbox",
    /// No request of a session passed through the capture proxy.
    NotCaptured = "not-captured",
    /// Sessions were imported: the conditions they ran under were not assigned at random.
    NotRandomised = "not-randomised",
    /// The agent signed in with a subscription, so its cost is not what was billed.
    Subscription = "subscription",
    /// A metric changed its meaning between versions of rows.
    NotComparable = "not-comparable",
    /// The baseline was stored by a version whose metrics mean something else.
    OldBaseline = "old-baseline",
    /// The run has open cells.
    Unfinished = "unfinished",
    /// Nothing was checked, so that every trial passes.
    NothingChecked = "nothing-checked",
    /// At most one value: there is nothing to resample.
    TooFewValues = "too-few-values",
    /// Fewer than five finite runs in a group or scenario.
    SmallN = "small-n",
    /// Fewer than six scenarios.
    FewScenarios = "few-scenarios",
    /// One scenario only.
    SingleScenario = "single-scenario",
    /// The runs carry no scenario that both modes ran.
    Unpaired = "unpaired",
    /// All differences are equal.
    NoVariation = "no-variation",
    /// NaN or infinite measurements were left out.
    NonFiniteDropped = "non-finite-dropped",
    /// The baseline is zero.
    BaselineZero = "baseline-zero",
    /// The baseline is negative.
    BaselineNonpositive = "baseline-nonpositive",
    /// Some resamples had a baseline at or below zero.
    BaselineTouchesZero = "baseline-touches-zero",
    /// BCa does not work for medians or fewer than twenty values.
    BcaUnsuitable = "bca-unsuitable",
    /// A mean of few, skewed scenarios.
    SkewedMean = "skewed-mean",
    /// Some scenarios have fewer trials than `k`.
    KExceedsTrials = "k-exceeds-trials",
    /// Some runs were cut off before they ended.
    Censored = "censored",
    /// No run succeeded.
    NoSuccesses = "no-successes",
    /// More than one trial in twenty could not be judged.
    ManyVoid = "many-void",
    /// The run was stopped after looking at the data.
    OptionalStopping = "optional-stopping",
    /// Looks were declared before the first trial, and verdicts are held to their bounds.
    DeclaredLooks = "declared-looks",
    /// The looks at a run could not be counted.
    LooksNotCounted = "looks-not-counted",
    /// Numbers moved over the run, whatever the mode.
    Drift = "drift",
    /// The noise between two runs of the same mode, measured earlier.
    NoiseFloor = "noise-floor",
    /// The cost of a trial is unknown, so that a limit on dollars cannot be kept.
    BudgetUnknown = "budget-unknown",
    /// The budget does not cover another block.
    BudgetReached = "budget-reached",
    /// Scenarios run by one mode only were left out.
    UnmatchedScenarios = "unmatched-scenarios",
    /// So few tasks may have missed a whole kind of task.
    UnseenTasks = "unseen-tasks",
    /// The most favourable task was counted only as much as the next one.
    TaskCapped = "task-capped",
    /// A kind of task that was not seen could reverse the verdict.
    FewTasksCouldReverse = "few-tasks-could-reverse",
    /// Fewer than five runs of a mode.
    FewRuns = "few-runs",
    /// Some tasks have at least four times as many runs as others.
    UnevenRuns = "uneven-runs",
    /// Void trials decide the verdict.
    VoidDecides = "void-decides",
    /// Trials that failed before the agent acted were left out.
    VoidUnrelated = "void-unrelated",
    /// Some runs reached the limit.
    CutOff = "cut-off",
    /// Most runs of a mode reached the limit, so there is no size.
    SizeWithheld = "size-withheld",
    /// No event was counted in either mode.
    NothingHappened = "nothing-happened",
}

impl PartialEq<&str> for CautionCode {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

impl fmt::Display for CautionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for CautionCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CautionCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(word.as_str().into())
    }
}

fn primary() -> bool {
    true
}

fn text_or_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Places {
        None,
        One(String),
        Several(Vec<String>),
    }
    Ok(match Places::deserialize(deserializer)? {
        Places::None => Vec::new(),
        Places::One(place) => vec![place],
        Places::Several(places) => places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_is_read_as_text_as_list_and_absent_and_written_as_list() {
        for (json, places) in [
            (r#"{"code":"void","text":"t","where":"plain"}"#, 1),
            (r#"{"code":"void","text":"t","where":["plain","other"]}"#, 2),
            (r#"{"code":"void","text":"t","where":null}"#, 0),
            (r#"{"code":"void","text":"t"}"#, 0),
        ] {
            let caution: Caution = serde_json::from_str(json).unwrap();
            assert_eq!(caution.code, CautionCode::Void);
            assert_eq!(caution.places.len(), places, "{json}");
            let written = serde_json::to_value(&caution).unwrap();
            assert!(written["where"].is_array(), "{written}");
        }
    }

    #[test]
    fn an_unknown_code_keeps_its_word() {
        let code: CautionCode = serde_json::from_str("\"of-tomorrow\"").unwrap();
        assert_eq!(code.as_str(), "of-tomorrow");
    }
}
