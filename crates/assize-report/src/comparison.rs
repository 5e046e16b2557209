//! Chooses the pairs of arms to compare, and computes the numbers of each pair.

use crate::analysis::direction;
use crate::arm::{Arm, Cell, Ids};
use crate::metric;
use crate::words::sentence;
use crate::{Analysis, ReportError, SummaryBuilder};
use assize_contracts::Nature;
use assize_contracts::{Catalog, SUCCESS};
use assize_stats::{
    CompareOptions, ComparisonSet, Comparisons, Group, Level, Metric, MetricComparison, Scope,
    SuccessCell, SuccessComparison, Verdict, Warnings, compare_sets,
};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;

/// One metric, or success, of one mode compared with another.
#[derive(Debug, Clone, PartialEq)]
pub enum Comparison {
    /// A comparison of the shares of trials that reach their goal.
    Success(Box<SuccessComparison>),
    /// A number measured in every trial.
    Metric(Box<MetricResult>),
}

/// A comparison of a metric, with the meaning of the metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricResult {
    #[serde(flatten)]
    found: MetricComparison,
    /// Unit, direction and words.
    #[serde(skip)]
    pub definition: assize_contracts::Metric,
    /// The reason why some values are lower bounds.
    #[serde(skip)]
    pub bounded_by: BoundedBy,
}

/// The reason why a value is known only as a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoundedBy {
    /// The trial ran out of time.
    #[default]
    Limit,
    /// A model call is known only in part: it was cut, was under way at the end, or never reported its usage.
    Unknown,
    /// Some for the one reason, some for the other.
    Both,
}

impl Deref for MetricResult {
    type Target = MetricComparison;

    fn deref(&self) -> &MetricComparison {
        &self.found
    }
}

impl Comparison {
    /// The candidate.
    pub fn mode_a(&self) -> &str {
        match self {
            Self::Success(comparison) => &comparison.mode_a,
            Self::Metric(comparison) => &comparison.mode_a,
        }
    }

    /// The mode it is compared with.
    pub fn mode_b(&self) -> &str {
        match self {
            Self::Success(comparison) => &comparison.mode_b,
            Self::Metric(comparison) => &comparison.mode_b,
        }
    }

    /// The metric's name.
    pub fn metric(&self) -> &str {
        match self {
            Self::Success(comparison) => comparison.metric,
            Self::Metric(comparison) => &comparison.metric,
        }
    }

    /// The meaning of the metric.
    pub fn definition(&self) -> &assize_contracts::Metric {
        match self {
            Self::Success(_) => assize_contracts::Metric::success(),
            Self::Metric(comparison) => &comparison.definition,
        }
    }

    /// The word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Success(comparison) => comparison.verdict,
            Self::Metric(comparison) => comparison.verdict,
        }
    }

    /// Says why there is nothing to compare, where the values of old trials were left out.
    pub(crate) fn explain_forgotten(&mut self, builder: &SummaryBuilder) {
        if let Self::Metric(comparison) = self
            && comparison.found.verdict == Verdict::NotComparable
            && builder.has_forgotten(&comparison.metric)
        {
            comparison.found.reason = Some("it means something else in trials before Assize 0.2");
        }
    }

    /// Takes the verdict back where an unfinished run has not given both modes the same trials yet.
    fn withhold_if_unbalanced(&mut self, material: &Material<'_>) {
        let trials_of = |label: &str| -> BTreeMap<usize, u64> {
            let arms = material.arms.iter().zip(material.labels);
            let meant = arms.filter(|(_, known)| *known == label);
            let cells = meant.flat_map(|(arm, _)| arm.cells.iter());
            cells
                .map(|(scenario, cell)| (scenario, cell.all_trials()))
                .collect()
        };
        if trials_of(self.mode_a()) == trials_of(self.mode_b()) {
            return;
        }
        let (verdict, reason) = match self {
            Self::Success(comparison) => (&mut comparison.verdict, &mut comparison.reason),
            Self::Metric(comparison) => {
                (&mut comparison.found.verdict, &mut comparison.found.reason)
            }
        };
        if *verdict != Verdict::NotComparable {
            *verdict = Verdict::Inconclusive;
            *reason = Some("the modes do not have the same trials yet");
        }
    }

    /// Not declared beforehand to decide by.
    pub fn is_exploratory(&self) -> bool {
        match self {
            Self::Success(comparison) => comparison.exploratory,
            Self::Metric(comparison) => comparison.exploratory,
        }
    }

    /// The tasks that the verdict applies to.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Success(comparison) => comparison.scope,
            Self::Metric(comparison) => comparison.scope,
        }
    }

    /// Reasons to be careful.
    pub fn warnings(&self) -> &Warnings {
        match self {
            Self::Success(comparison) => &comparison.warnings,
            Self::Metric(comparison) => &comparison.warnings,
        }
    }
}

impl Serialize for Comparison {
    /// The numbers, and the sentence that every other output shows.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithSentence<'a, T> {
            #[serde(flatten)]
            comparison: &'a T,
            sentence: String,
        }
        let sentence = sentence(self);
        match self {
            Self::Success(comparison) => WithSentence {
                comparison: &**comparison,
                sentence,
            }
            .serialize(serializer),
            Self::Metric(comparison) => WithSentence {
                comparison: &**comparison,
                sentence,
            }
            .serialize(serializer),
        }
    }
}

/// Data that all comparisons of a summary share.
pub(crate) struct Material<'a> {
    pub(crate) arms: &'a [Arm],
    /// The arms' names.
    pub(crate) labels: &'a [String],
    pub(crate) scenarios: &'a Ids,
    /// Names of the columns.
    pub(crate) metrics: &'a [String],
    /// Their meaning, with the directions that the suite declares.
    pub(crate) catalog: &'a Catalog,
    pub(crate) primary: &'a [String],
}

impl Material<'_> {
    pub(crate) fn is_primary(&self, name: &str) -> bool {
        self.primary.iter().any(|known| known == name)
    }

    /// The reason why values of the two modes are lower bounds.
    fn bounded_by(&self, found: &MetricComparison) -> BoundedBy {
        let is_meant = |label: &String| *label == found.mode_a || *label == found.mode_b;
        let arms = self.arms.iter().zip(self.labels);
        let arms = arms.filter(|(_, label)| is_meant(label));
        let cells: Vec<Cell<'_>> = arms.flat_map(|(arm, _)| arm.cells.values()).collect();
        let place = self.metrics.iter().position(|name| *name == found.metric);
        let is_unknown = |cell: &Cell<'_>| place.is_some_and(|place| cell.incomplete_in(place) > 0);
        match (
            cells.iter().any(|cell| cell.censored() > 0),
            cells.iter().any(is_unknown),
        ) {
            (_, false) => BoundedBy::Limit,
            (false, true) => BoundedBy::Unknown,
            (true, true) => BoundedBy::Both,
        }
    }
}

/// Compares within each set of arms that may be compared; the comparisons of each material, in order. All of them are one
/// family, under the options of the first. Columns must hold measurements only.
pub(crate) fn compare(
    materials: &[(Material<'_>, &Analysis)],
) -> Result<Vec<Vec<Comparison>>, ReportError> {
    let Some((first, analysis)) = materials.first() else {
        return Ok(Vec::new());
    };
    let mut sets: Vec<(usize, Vec<usize>)> = Vec::new();
    for (place, (material, analysis)) in materials.iter().enumerate() {
        check_baseline(material, analysis)?;
        let of_material = comparable_sets(material.arms, analysis.mixed).into_iter();
        let several = of_material.filter(|set| set.len() > 1);
        sets.extend(several.map(|set| (place, set)));
    }
    let prepared: Vec<ComparisonSet<'_>> = sets
        .iter()
        .map(|(place, set)| comparison_set(&materials[*place].0, set, materials[*place].1))
        .collect();
    let options = CompareOptions {
        scope: analysis.scope,
        confidence_level: analysis.confidence,
        resamples: analysis.resamples,
        permutations: analysis.resamples,
        equivalence_margin: analysis.equivalence_margin,
        success_is_primary: first.is_primary(SUCCESS) && analysis.factorial.is_none(),
        family: analysis.family,
        relabel_exploratory: analysis.relabel_exploratory,
        looks: analysis.looks.as_ref().map(|reading| &reading.looks),
        ..CompareOptions::default()
    };
    let mut all: Vec<Vec<Comparison>> = materials.iter().map(|_| Vec::new()).collect();
    for ((place, set), found) in sets.iter().zip(compare_sets(&prepared, &options)?) {
        let (material, analysis) = &materials[*place];
        let mut comparisons = in_order(found, material, set);
        if analysis.unfinished.is_some() {
            // A decision of a declared look is final, though the other mode continues.
            let decided = analysis
                .looks
                .as_ref()
                .map(|reading| &reading.looks.decided);
            let is_decided = |comparison: &Comparison| {
                let mut known = decided.into_iter().flatten();
                known.any(|known| {
                    known.mode_a == comparison.mode_a()
                        && known.mode_b == comparison.mode_b()
                        && known.metric == comparison.metric()
                })
            };
            for comparison in &mut comparisons {
                if !is_decided(comparison) {
                    comparison.withhold_if_unbalanced(material);
                }
            }
        }
        all[*place].extend(comparisons);
    }
    Ok(all)
}

fn check_baseline(material: &Material<'_>, analysis: &Analysis) -> Result<(), ReportError> {
    let Some(baseline) = &analysis.baseline else {
        return Ok(());
    };
    let is_known = |(arm, label): (&Arm, &String)| arm.mode == *baseline || label == baseline;
    // A mode that is planned may have no trial yet.
    if material.arms.is_empty()
        || analysis.mode_order.contains(baseline)
        || material.arms.iter().zip(material.labels).any(is_known)
    {
        return Ok(());
    }
    Err(ReportError::Baseline {
        found: baseline.clone(),
        known: material.labels.to_vec(),
    })
}

/// Arms of one suite and, unless they may be mixed, nature. Where modes have several models, also of one model, since else
/// two things differ.
pub(crate) fn comparable_sets(arms: &[Arm], mixed: bool) -> Vec<Vec<usize>> {
    let nature = |arm: &Arm| (!mixed).then_some(arm.nature);
    let crosses_models = |arm: &Arm| {
        let is_alike = |other: &&Arm| other.suite == arm.suite && nature(other) == nature(arm);
        let alike: Vec<&Arm> = arms.iter().filter(is_alike).collect();
        let has_rival = alike.iter().any(|other| other.mode != arm.mode);
        has_rival && has_several_models(alike)
    };
    type Key<'a> = (Option<&'a str>, Option<Nature>, Option<&'a str>);
    let mut sets: Vec<(Key<'_>, Vec<usize>)> = Vec::new();
    for (place, arm) in arms.iter().enumerate() {
        let model = crosses_models(arm).then_some(arm.model.as_str());
        let key = (arm.suite.as_deref(), nature(arm), model);
        match sets.iter_mut().find(|(known, _)| *known == key) {
            Some((_, set)) => set.push(place),
            None => sets.push((key, vec![place])),
        }
    }
    sets.into_iter().map(|(_, set)| set).collect()
}

/// True when some mode was run with more than one model.
pub(crate) fn has_several_models<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> bool {
    let mut models: BTreeMap<&str, &str> = BTreeMap::new();
    let is_second = |arm: &'a Arm| match models.insert(&arm.mode, &arm.model) {
        Some(first) => first != arm.model,
        None => false,
    };
    arms.into_iter().any(is_second)
}

/// The measurements and outcomes of the arms of one set.
fn comparison_set<'a>(
    material: &Material<'a>,
    set: &[usize],
    analysis: &Analysis,
) -> ComparisonSet<'a> {
    let metrics = material.metrics.iter().enumerate();
    let metrics = metrics
        .filter(|(_, name)| analysis.compares(name) && !material.catalog.metric(name).is_claim())
        .map(|(place, name)| {
            let definition = material.catalog.metric(name);
            Metric {
                name,
                direction: direction(&definition),
                statistic: analysis.statistic_of(&definition),
                kind: metric::kind(&definition),
                is_primary: material.is_primary(name) && analysis.factorial.is_none(),
                groups: groups(material, set, place),
            }
        })
        .filter(|metric| !metric.groups.is_empty());
    ComparisonSet {
        baseline: Some(baseline(material, set, analysis)),
        metrics: metrics.collect(),
        success: match analysis.compares(SUCCESS) {
            true => success_cells(material, set),
            false => Vec::new(),
        },
    }
}

/// The comparisons of one set that are worth showing, pair by pair.
fn in_order(found: Comparisons, material: &Material<'_>, set: &[usize]) -> Vec<Comparison> {
    let success = found
        .success
        .into_iter()
        .map(|comparison| Comparison::Success(Box::new(comparison)));
    // A metric that one mode never reports is no comparison; where it decides, that must be said.
    let is_worth_saying = |comparison: &MetricComparison| {
        material.is_primary(&comparison.metric) || (comparison.n.a > 0 && comparison.n.b > 0)
    };
    let metrics = found
        .metrics
        .into_iter()
        .filter(is_worth_saying)
        .map(|found| {
            let definition = material.catalog.metric(&found.metric).into_owned();
            let bounded_by = material.bounded_by(&found);
            Comparison::Metric(Box::new(MetricResult {
                found,
                definition,
                bounded_by,
            }))
        });
    let mut comparisons: Vec<Comparison> = success.chain(metrics).collect();
    comparisons.sort_by_key(|comparison| order(comparison, material, set));
    comparisons
}

/// Pair by pair; the deciding metrics first, in their order.
fn order(comparison: &Comparison, material: &Material<'_>, set: &[usize]) -> (usize, usize) {
    let pair = set
        .iter()
        .position(|arm| material.labels[*arm] == comparison.mode_a());
    let metric = material
        .primary
        .iter()
        .position(|name| name == comparison.metric());
    (pair.unwrap_or(usize::MAX), metric.unwrap_or(usize::MAX))
}

fn baseline<'a>(material: &Material<'a>, set: &[usize], analysis: &Analysis) -> &'a str {
    let is_wanted = |arm: &&usize| {
        let wanted = analysis.baseline.as_deref();
        wanted == Some(&material.arms[**arm].mode) || wanted == Some(&material.labels[**arm])
    };
    let place = set.iter().find(is_wanted).unwrap_or(&set[0]);
    &material.labels[*place]
}

fn groups<'a>(material: &Material<'a>, set: &[usize], place: usize) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    for &arm in set {
        for (scenario, cell) in material.arms[arm].cells.iter() {
            let values = cell.comparable(place);
            if !values.is_empty() {
                groups.push(Group {
                    mode: &material.labels[arm],
                    scenario: Some(&material.scenarios[scenario]),
                    values,
                    cut: cell.tallies().cut(place),
                });
            }
        }
    }
    groups
}

fn success_cells<'a>(material: &Material<'a>, set: &[usize]) -> Vec<SuccessCell<'a>> {
    let of_arm = |&arm: &usize| {
        let cells = material.arms[arm].cells.iter();
        cells.map(move |(scenario, cell)| SuccessCell {
            mode: &material.labels[arm],
            scenario: Some(&material.scenarios[scenario]),
            passed: u64::from(cell.passed),
            failed: u64::from(cell.failed),
            void: cell.related_voids(),
            void_unrelated: u64::from(cell.void_unrelated),
        })
    };
    set.iter().flat_map(of_arm).collect()
}

/// The estimate of a comparison with its interval, on the scale of its scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// Percent that A is below B, or A minus B in the metric's unit.
    pub value: f64,
    pub interval: [f64; 2],
    /// True for a percentage.
    pub is_ratio: bool,
}

impl Headline {
    /// The interval only says that nothing varied.
    pub fn is_degenerate(&self) -> bool {
        self.interval[0] == self.interval[1]
    }
}

/// None where no number may be shown.
pub fn headline(comparison: &MetricComparison) -> Option<Headline> {
    let paired = comparison.paired.as_ref().map(|paired| Headline {
        value: paired.reduction_pct.or(paired.difference).unwrap_or(0.0),
        interval: paired.ci95,
        is_ratio: paired.reduction_pct.is_some(),
    });
    let suite = comparison.suite.as_ref().map(|suite| Headline {
        value: suite.reduction_pct.or(suite.difference).unwrap_or(0.0),
        interval: suite.ci95,
        is_ratio: suite.reduction_pct.is_some(),
    });
    match comparison.scope {
        Scope::Population => paired,
        Scope::Suite => suite,
    }
}

/// `95 %` of a level.
pub(crate) fn level_percent(level: Level) -> String {
    let percent = level.value() * 100.0;
    if (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}
