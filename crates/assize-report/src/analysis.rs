//! Settings of a comparison: the baseline, the metrics that decide, and the better direction of each.

use crate::LooksReading;
use assize_contracts::{
    AnalysisSpec, Better, Catalog, FactorialRecord, Metric, RowField, SUCCESS, Typical, WallRecord,
};
use assize_stats::{Direction, Family, Level, Scope, Statistic};
use std::collections::BTreeMap;

/// The second metric that decides unless the suite says otherwise: the first of these that any trial measured.
const SECOND_PRIMARY: [RowField; 3] = [
    RowField::TokensActive,
    RowField::TokensTotal,
    RowField::WallTime,
];

/// Settings for reading rows as evidence.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The mode all others are compared with. Default: the first.
    pub baseline: Option<String>,
    /// Modes in the order in which they are shown; others follow as they come.
    pub mode_order: Vec<String>,
    /// Metrics declared beforehand to decide by. Default: success and active tokens; time where no trial reports tokens.
    pub primary: Option<Vec<String>>,
    /// The metrics to decide by as they were fixed with the plan of the run: of each list the first that any trial reports. Used
    /// where `primary` is absent; without it the default of this version.
    pub planned_primary: Vec<Vec<String>>,
    /// Only these metrics are compared. Default: all.
    pub metrics: Option<Vec<String>>,
    /// The statistic that summarises the runs of one scenario. Default: the one that suits each metric.
    pub statistic: Option<Statistic>,
    /// The same for single metrics.
    pub statistics: BTreeMap<String, Statistic>,
    /// The direction that counts as better, for metrics that declare none or another.
    pub directions: BTreeMap<String, Direction>,
    /// Differences below this share count as equivalent. Without it nothing does.
    pub equivalence_margin: Option<f64>,
    /// The tasks that verdicts apply to.
    pub scope: Scope,
    /// The comparisons whose p-values are adjusted for each other.
    pub family: Family,
    /// Nominal coverage of all intervals.
    pub confidence: Level,
    /// Bootstrap resamples, and random relabelings.
    pub resamples: usize,
    /// Metrics that do not decide are tested by relabelings, too, instead of in closed form only.
    pub relabel_exploratory: bool,
    /// The tables of prices that costs were computed from.
    pub prices: Vec<String>,
    /// The most scenarios that are listed one by one; of more, those with trials that did not pass come first.
    pub most_scenarios: usize,
    /// Keeps the passes of every scenario, also of those that are not listed one by one.
    pub counts_scenarios: bool,
    /// Cells of the plan that have no row yet: modes without the same trials get no verdict.
    pub unfinished: Option<Unfinished>,
    /// The walls around the agents of the run.
    pub walls: Vec<WallRecord>,
    /// Nobody judged the trials, as those that are made of logs: success is unknown and not compared.
    pub not_judged: bool,
    /// Trials of different nature, such as live and replayed ones, are compared all the same, because the user asked for it.
    pub mixed: bool,
    /// The factors that the modes come from: their effects decide, and pairs of modes are exploratory.
    pub factorial: Option<FactorialRecord>,
    /// The looks at a growing run that verdicts pay for. Absent: it is looked at once.
    pub looks: Option<LooksReading>,
}

/// The progress of an unfinished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Trials that have a row.
    pub done: u64,
    /// Trials that were planned.
    pub planned: u64,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            baseline: None,
            mode_order: Vec::new(),
            primary: None,
            planned_primary: Vec::new(),
            metrics: None,
            statistic: None,
            statistics: BTreeMap::new(),
            directions: BTreeMap::new(),
            equivalence_margin: None,
            scope: Scope::Population,
            family: Family::Report,
            confidence: Level::CONFIDENCE_95,
            resamples: 10_000,
            relabel_exploratory: false,
            prices: Vec::new(),
            most_scenarios: 1000,
            counts_scenarios: false,
            unfinished: None,
            walls: Vec::new(),
            not_judged: false,
            mixed: false,
            factorial: None,
            looks: None,
        }
    }
}

impl Analysis {
    /// The metrics to decide by, given those that were measured.
    pub(crate) fn primary_among(&self, measured: &[String], catalog: &Catalog) -> Vec<String> {
        if let Some(primary) = &self.primary {
            return primary.clone();
        }
        let planned = match self.planned_primary.is_empty() {
            true => default_primary(catalog),
            false => self.planned_primary.clone(),
        };
        let is_measured = |name: &&String| measured.contains(name);
        let chosen = planned
            .iter()
            .filter_map(|names| names.iter().find(is_measured).or(names.first()));
        chosen.cloned().collect()
    }

    /// The metrics to decide by that the manifest of a run records: those that the suite names, else the default.
    pub fn planned_primary(spec: &AnalysisSpec) -> Vec<Vec<String>> {
        match &spec.primary {
            Some(primary) => primary.iter().map(|name| vec![name.clone()]).collect(),
            None => default_primary(&Catalog::default()),
        }
    }

    /// The statistic of this metric: that of the suite, else the one that suits the metric.
    pub fn statistic_of(&self, metric: &Metric) -> Statistic {
        let declared = self.statistics.get(&*metric.name).copied();
        let suits = || match metric.typical {
            Typical::Median => Statistic::Median,
            Typical::Mean => Statistic::Mean,
        };
        declared.or(self.statistic).unwrap_or_else(suits)
    }

    /// The metric with the direction that the suite declares, if it does.
    pub fn declared(&self, mut metric: Metric) -> Metric {
        if let Some(direction) = self.directions.get(&*metric.name) {
            metric.better = Some(match direction {
                Direction::Lower => Better::Lower,
                Direction::Higher => Better::Higher,
            });
        }
        metric
    }

    pub(crate) fn compares(&self, metric: &str) -> bool {
        if self.not_judged && metric == SUCCESS {
            return false;
        }
        match &self.metrics {
            Some(metrics) => metrics.iter().any(|wanted| wanted == metric),
            None => true,
        }
    }
}

/// Success, and tokens or else time.
fn default_primary(catalog: &Catalog) -> Vec<Vec<String>> {
    let second = SECOND_PRIMARY.map(|field| catalog.name_of(field).to_owned());
    vec![vec![SUCCESS.to_owned()], second.to_vec()]
}

/// The direction of a metric as the statistics have it.
pub(crate) fn direction(metric: &Metric) -> Option<Direction> {
    metric.better.map(|better| match better {
        Better::Lower => Direction::Lower,
        Better::Higher => Direction::Higher,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_direction_wins() {
        let analysis = Analysis {
            directions: [("tokens_total".to_owned(), Direction::Higher)].into(),
            ..Analysis::default()
        };
        let metric = analysis.declared(Metric::named("tokens_total"));
        assert_eq!(direction(&metric), Some(Direction::Higher));
    }

    #[test]
    fn what_was_planned_decides_by_what_is_known() {
        let measured =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let chosen = |analysis: &Analysis, names: &[&str]| {
            analysis.primary_among(&measured(names), &Catalog::default())
        };
        let default = Analysis::default();
        let planned = Analysis {
            planned_primary: Analysis::planned_primary(&AnalysisSpec::default()),
            ..Analysis::default()
        };
        for analysis in [&default, &planned] {
            assert_eq!(
                chosen(analysis, &["tokens_active", "latency_wall_ms"]),
                [SUCCESS, "tokens_active"]
            );
            assert_eq!(
                chosen(analysis, &["latency_wall_ms"]),
                [SUCCESS, "latency_wall_ms"]
            );
        }
        let named = AnalysisSpec {
            primary: Some(measured(&["cost_total_usd"])),
            ..AnalysisSpec::default()
        };
        assert_eq!(Analysis::planned_primary(&named), [["cost_total_usd"]]);
    }

    #[test]
    fn cost_and_rare_counts_are_summarised_by_their_mean_unless_the_suite_says_otherwise() {
        let mut analysis = Analysis::default();
        let statistic = |analysis: &Analysis, name| analysis.statistic_of(&Metric::named(name));
        assert_eq!(statistic(&analysis, "cost_total_usd"), Statistic::Mean);
        assert_eq!(statistic(&analysis, "tool_calls_failed"), Statistic::Mean);
        assert_eq!(statistic(&analysis, "tokens_total"), Statistic::Median);
        analysis.statistic = Some(Statistic::P90);
        assert_eq!(statistic(&analysis, "cost_total_usd"), Statistic::P90);
    }
}
