//! The meaning of a report's words, once for every page.

/// Words and their meaning.
pub(crate) const GLOSSARY: [(&str, &str); 13] = [
    (
        "success",
        "trials that reached their goal, of those that could be judged. Void trials are no result about the agent.",
    ),
    (
        "interval",
        "the values that fit the data. If it holds 0 %, the data fit no difference as well.",
    ),
    (
        "on tasks like these",
        "the scenarios are a sample of tasks; \"on exactly these tasks\" speaks about no others.",
    ),
    (
        "difference",
        "how much the mode is above or below the baseline, scenario by scenario; on exactly these tasks it compares \
         geometric means, which may differ from the medians beside it.",
    ),
    (
        "effect",
        "difference of the means in standard deviations (Cohen's d): 0.2 small, 0.5 medium, 0.8 large.",
    ),
    (
        "p, adjusted p",
        "how often chance alone gives such a difference; adjusted for the number of questions asked.",
    ),
    (
        "better, worse",
        "the interval excludes 0 and the adjusted p is at most 0.05.",
    ),
    (
        "equivalent",
        "the difference is shown to be below the margin.",
    ),
    (
        "cannot tell",
        "the data fit better and worse; that is not \"no difference\".",
    ),
    ("not comparable", "there is no number to compare."),
    (
        "pass@k, pass^k",
        "the chance that at least one of k tries succeeds, and that all do.",
    ),
    (
        "active tokens",
        "all tokens but those read from a prompt cache.",
    ),
    (
        "cut off",
        "the trial ran out of time: its time, tokens and cost are at least what is shown.",
    ),
];
