//! Statistics for repeated trials of scenarios: intervals, tests and verdicts that do not overclaim.
