//! The effects of the factors of a factorial suite: main effects and pairs of factors, with the same words and care as
//! comparisons of modes.

use crate::Analysis;
use crate::analysis::direction;
use crate::comparison::{Material, comparable_sets};
use crate::words::{
    REPEAT_VOIDS, metric_plan_words, number, p_value, signed, success_plan_words, verdict_word,
};
use assize_contracts::{FactorialRecord, SUCCESS};
use assize_stats::{
    AdjustMethod, Direction, EffectEstimate, EffectRuns, EffectTerm, Factor, Factorial, Level,
    LimitKind, LimitedComparison, LimitedRuns, LimitedVerdict, LookFacts, Measure, MetricKind,
    Scope, Tally, Verdict, adjust_p_values, limited_comparison, metric_effect, plan_for_metric,
    plan_for_success, success_effect,
};
use serde::Serialize;

/// The note under effects.
pub const EFFECTS_NOTE: &str = "An effect is the change that a factor makes on average over the levels of all others; that of two \
     factors is how much more the first does where the second is on.";

/// The effect of a factor, or of two together, on one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FactorEffect {
    /// `docs`, `docs × lint`, `temperature=high`.
    pub effect: String,
    /// The factors, one or two.
    pub factors: Vec<String>,
    /// The model, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The metric's name.
    pub metric: String,
    #[serde(skip)]
    pub label: String,
    /// The numbers; absent where they cannot be estimated.
    pub estimate: Option<EffectEstimate>,
    /// Runs were cut off by a limit: the comparison that allows for it, in place of `estimate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<LimitedComparison>,
    /// The effect in points if all void trials that may depend on the mode had gone against the factor, and for it. Absent without
    /// such trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void_bounds: Option<[f64; 2]>,
    /// The void trials decide, so that there is no verdict.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub void_decides: bool,
    /// The p-value adjusted for the family.
    pub p_adjusted: Option<f64>,
    /// Number of p-values in the family.
    pub family_size: usize,
    /// Not declared beforehand.
    pub exploratory: bool,
    /// The word.
    pub verdict: Verdict,
    /// The reason why there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Effects that this fraction cannot distinguish from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What would help where a declared effect is inconclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    #[serde(skip)]
    direction: Option<Direction>,
    /// With the void trials read against the factor and for it.
    #[serde(skip)]
    void_cases: Vec<EffectEstimate>,
}

/// The design behind a record: the combinations that were run. None when the record does not fit together.
pub fn factorial_of(record: &FactorialRecord) -> Option<Factorial> {
    let factors: Vec<Factor> = record
        .factors
        .iter()
        .map(|factor| Factor {
            name: factor.name.clone(),
            levels: factor.levels.clone(),
        })
        .collect();
    let fits = |levels: &[usize]| {
        let pairs = levels.iter().zip(&factors);
        levels.len() == factors.len() && pairs.clone().all(|(level, of)| *level < of.levels.len())
    };
    let runs: Vec<Vec<usize>> = record
        .modes
        .iter()
        .map(|mode| mode.levels.clone())
        .collect();
    let is_sound = !runs.is_empty() && runs.iter().all(|levels| fits(levels));
    is_sound.then_some(Factorial {
        factors,
        runs,
        generators: Vec::new(),
    })
}

/// All effects: declared ones first, adjusted together. Empty where the modes do not come from factors.
pub(crate) fn estimate(material: &Material<'_>, analysis: &Analysis) -> Vec<FactorEffect> {
    let Some(record) = &analysis.factorial else {
        return Vec::new();
    };
    let Some(design) = factorial_of(record) else {
        return Vec::new();
    };
    let Ok(alpha) = Level::new(analysis.confidence.complement()) else {
        return Vec::new();
    };
    let sets = comparable_sets(material.arms, analysis.mixed);
    let names_models = sets.len() > 1;
    let mut effects = Vec::new();
    for set in &sets {
        let trials = Trials::new(material, set, record);
        if trials.arms.iter().flatten().count() == 0 {
            continue;
        }
        let model = names_models.then(|| material.arms[set[0]].model.clone());
        for (term, is_declared) in terms(&design, record) {
            for name in metrics(material, analysis) {
                let mut effect = one(&trials, &design, &term, &name, analysis, alpha);
                effect.model.clone_from(&model);
                effect.exploratory = !(is_declared && material.is_primary(&name));
                effects.push(effect);
            }
        }
    }
    adjust(&mut effects, analysis, alpha);
    effects.sort_by_key(|effect| effect.exploratory);
    effects
}

/// Main effects and declared pairs, then all other pairs.
fn terms(design: &Factorial, record: &FactorialRecord) -> Vec<(EffectTerm, bool)> {
    let main = design.main_effects().into_iter().map(|term| (term, true));
    let is_declared = |term: &EffectTerm| {
        let name = |place: usize| &design.factors[term.levels[place].0].name;
        record.interactions.iter().any(|[first, second]| {
            [name(0), name(1)] == [first, second] || [name(1), name(0)] == [first, second]
        })
    };
    let pairs = design.interactions().into_iter().map(|term| {
        let declared = is_declared(&term);
        (term, declared)
    });
    let mut terms: Vec<(EffectTerm, bool)> = main.chain(pairs).collect();
    // Of pairs that cannot be distinguished one is enough; it names the others.
    let all = terms.clone();
    terms.retain(|(term, declared)| {
        let aliases = design.aliases(term);
        let is_aliased_by = |(other, other_declared): &(EffectTerm, bool)| {
            let comes_first = (!*other_declared, other) < (!*declared, term);
            aliases.contains(other) && other.levels.len() == 2 && comes_first
        };
        term.levels.len() == 1 || !all.iter().any(is_aliased_by)
    });
    // A pair that no combination varies, or that is the same as a single factor, is nothing of its own.
    terms.retain(|(term, _)| {
        let is_single = |other: &EffectTerm| other.levels.len() == 1;
        term.levels.len() == 1
            || (design.weights(term).is_some() && !design.aliases(term).iter().any(is_single))
    });
    terms
}

/// The metrics to decide by, then the others that are compared.
fn metrics(material: &Material<'_>, analysis: &Analysis) -> Vec<String> {
    let measured = material.metrics.iter().filter(|name| {
        analysis.compares(name)
            && !material.is_primary(name)
            && !material.catalog.metric(name).is_claim()
    });
    let primary = material
        .primary
        .iter()
        .filter(|name| analysis.compares(name));
    primary.chain(measured).cloned().collect()
}

/// The trials of one set of arms, by the place of their combination.
struct Trials<'a> {
    material: &'a Material<'a>,
    arms: Vec<Option<usize>>,
}

impl<'a> Trials<'a> {
    fn new(material: &'a Material<'a>, set: &[usize], record: &FactorialRecord) -> Self {
        let arm_of = |name: &str| {
            let mut arms = set.iter();
            arms.find(|arm| material.arms[**arm].mode == name).copied()
        };
        let modes = record.modes.iter();
        Self {
            material,
            arms: modes.map(|mode| arm_of(&mode.name)).collect(),
        }
    }

    fn values(&self, metric: usize) -> Vec<EffectRuns<Vec<f64>>> {
        self.scenarios(|arm, scenario| {
            let cell = self.material.arms[arm].cells.get(scenario);
            cell.map_or(Vec::new(), |cell| cell.comparable(metric).to_vec())
        })
    }

    fn has_cut(&self, metric: usize) -> bool {
        let arms = self.arms.iter().flatten();
        let mut cells = arms.flat_map(|arm| self.material.arms[*arm].cells.values());
        cells.any(|cell| cell.cut(metric).contains(&true))
    }

    fn outcomes(&self) -> Vec<EffectRuns<Tally>> {
        self.outcomes_if(|_| VoidsRead::LeftOut)
    }

    /// Outcomes with the void trials of each combination read in one way or the other.
    fn outcomes_if(&self, read: impl Fn(usize) -> VoidsRead) -> Vec<EffectRuns<Tally>> {
        self.scenarios_by_place(|place, arm, scenario| {
            let Some(cell) = self.material.arms[arm].cells.get(scenario) else {
                return Tally::default();
            };
            let (passed, judged) = (u64::from(cell.passed), cell.judged());
            let void = cell.related_voids();
            let (passed, judged) = match read(place) {
                VoidsRead::LeftOut => (passed, judged),
                VoidsRead::Failed => (passed, judged + void),
                VoidsRead::Passed => (passed + void, judged + void),
            };
            Tally::new(passed, judged).unwrap_or_default()
        })
    }

    fn has_related_voids(&self) -> bool {
        let arms = self.arms.iter().flatten();
        let mut cells = arms.flat_map(|arm| self.material.arms[*arm].cells.values());
        cells.any(|cell| cell.related_voids() > 0)
    }

    /// Runs on both sides of a contrast, pair by pair. None where a combination of a scenario has no run.
    fn limited(
        &self,
        metric: usize,
        weights: &[f64],
        kind: LimitKind,
        alpha: Level,
    ) -> Option<LimitedComparison> {
        let mut tasks: Vec<[(Vec<f64>, Vec<bool>); 2]> = Vec::new();
        for scenario in 0..self.material.scenarios.len() {
            let mut sides = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
            let mut is_complete = true;
            for (arm, weight) in self
                .arms
                .iter()
                .zip(weights)
                .filter(|(_, weight)| **weight != 0.0)
            {
                let cell = arm.and_then(|arm| self.material.arms[arm].cells.get(scenario));
                let values = cell.map_or(&[][..], |cell| cell.comparable(metric));
                is_complete &= !values.is_empty();
                let (all, cut) = &mut sides[usize::from(*weight < 0.0)];
                all.extend_from_slice(values);
                let cuts = cell.map_or(&[][..], |cell| cell.tallies().cut(metric));
                cut.extend((0..values.len()).map(|run| cuts.get(run).copied().unwrap_or(false)));
            }
            if is_complete {
                tasks.push(sides);
            }
        }
        let runs: Vec<LimitedRuns<'_>> = tasks
            .iter()
            .map(|[(a, cut_a), (b, cut_b)]| LimitedRuns { a, b, cut_a, cut_b })
            .collect();
        let found = limited_comparison(&runs, kind, alpha).ok()?;
        found.p_value.is_some().then_some(found)
    }

    fn scenarios<T: Default>(&self, of: impl Fn(usize, usize) -> T) -> Vec<EffectRuns<T>> {
        self.scenarios_by_place(|_, arm, scenario| of(arm, scenario))
    }

    fn scenarios_by_place<T: Default>(
        &self,
        of: impl Fn(usize, usize, usize) -> T,
    ) -> Vec<EffectRuns<T>> {
        let scenario = |number: usize| EffectRuns {
            runs: self
                .arms
                .iter()
                .enumerate()
                .map(|(place, arm)| arm.map_or_else(T::default, |arm| of(place, arm, number)))
                .collect(),
        };
        (0..self.material.scenarios.len()).map(scenario).collect()
    }
}

/// The reading of void trials.
#[derive(Clone, Copy)]
enum VoidsRead {
    LeftOut,
    Failed,
    Passed,
}

fn one(
    trials: &Trials<'_>,
    design: &Factorial,
    term: &EffectTerm,
    name: &str,
    analysis: &Analysis,
    alpha: Level,
) -> FactorEffect {
    let material = trials.material;
    let definition = match name {
        SUCCESS => std::borrow::Cow::Borrowed(assize_contracts::Metric::success()),
        name => material.catalog.metric(name),
    };
    let place = material.metrics.iter().position(|known| known == name);
    let weights = design.weights(term);
    let is_single = term.levels.len() == 1;
    let incomplete = Some("no scenario has all combinations");
    let mut void_cases = Vec::new();
    let mut limited = None;
    let (estimate, reason) = match (weights, place) {
        (None, _) => (None, Some("no combination shows it")),
        (Some(weights), _) if name == SUCCESS => {
            let found = success_effect(&trials.outcomes(), &weights, analysis.scope, alpha);
            if trials.has_related_voids() {
                // Against the factor: what it adds to fails, what it is compared with passes.
                let case = |against: bool| {
                    let read = |place: usize| match (weights[place] > 0.0) == against {
                        true => VoidsRead::Failed,
                        false => VoidsRead::Passed,
                    };
                    success_effect(&trials.outcomes_if(read), &weights, analysis.scope, alpha)
                };
                void_cases.extend([case(true), case(false)].into_iter().flatten());
            }
            (found, incomplete)
        }
        (Some(_), None) => (None, Some("no trial measured it")),
        (Some(weights), Some(place)) if trials.has_cut(place) => {
            let kind = match crate::metric::kind(&definition) {
                MetricKind::Time => LimitKind::Time,
                MetricKind::Amount | MetricKind::Count => LimitKind::Tokens,
            };
            if is_single {
                limited = trials.limited(place, &weights, kind, alpha);
            }
            (None, Some("runs were cut off by the limit"))
        }
        (Some(weights), Some(place)) => {
            let statistic = analysis.statistic_of(&definition);
            let values = trials.values(place);
            let found = metric_effect(&values, &weights, statistic, analysis.scope, alpha);
            (found, incomplete)
        }
    };
    let names = term.levels.iter();
    FactorEffect {
        effect: design.name(term),
        factors: names
            .map(|(factor, _)| design.factors[*factor].name.clone())
            .collect(),
        model: None,
        metric: name.to_owned(),
        label: definition.label().to_owned(),
        reason: reason.filter(|_| estimate.is_none() && limited.is_none()),
        void_bounds: match (&void_cases[..], &estimate) {
            ([worst, best], Some(_)) => Some([worst.value, best.value]),
            _ => None,
        },
        void_decides: false,
        void_cases,
        advice: None,
        estimate,
        limited,
        p_adjusted: None,
        family_size: 0,
        exploratory: true,
        verdict: Verdict::Inconclusive,
        aliases: design
            .aliases(term)
            .iter()
            .map(|other| design.name(other))
            .collect(),
        direction: direction(&definition),
    }
}

/// Holm over the declared effects, Benjamini-Hochberg over the others; then the word.
fn adjust(effects: &mut [FactorEffect], analysis: &Analysis, alpha: Level) {
    for (exploratory, method) in [(false, AdjustMethod::Holm), (true, AdjustMethod::Bh)] {
        let paid = |effect: &FactorEffect| {
            let (p, scope, scenarios) = match (&effect.estimate, &effect.limited) {
                (Some(estimate), _) => (estimate.p_value?, estimate.scope, estimate.scenarios),
                (None, Some(limited)) => (
                    limited.p_value?,
                    Scope::Population,
                    limited.per_scenario.len(),
                ),
                (None, None) => return None,
            };
            let facts = LookFacts {
                scope,
                scenarios: scenarios as u64,
                rounds: analysis.looks.as_ref().map_or(1.0, |looks| looks.rounds),
                components: None,
            };
            let looks = analysis.looks.as_ref();
            Some(looks.map_or(p, |reading| reading.looks.stopping.pay(p, &facts)))
        };
        let of_family = |effect: &&mut FactorEffect| effect.exploratory == exploratory;
        let mut family: Vec<&mut FactorEffect> = effects.iter_mut().filter(of_family).collect();
        let p_values: Vec<Option<f64>> = family.iter().map(|effect| paid(effect)).collect();
        let family_size = p_values.iter().flatten().count();
        for (effect, p) in family.iter_mut().zip(adjust_p_values(&p_values, method)) {
            effect.p_adjusted = p;
            effect.family_size = family_size;
            effect.judge(alpha);
            effect.advise(alpha);
        }
    }
}

impl FactorEffect {
    /// The word; none that void trials could turn.
    fn judge(&mut self, alpha: Level) {
        let found = match (&self.estimate, &self.limited) {
            (Some(estimate), _) => Some((estimate.side, estimate.certain)),
            (None, Some(limited)) => Some((
                match limited.verdict {
                    LimitedVerdict::More => 1,
                    LimitedVerdict::Less => -1,
                    LimitedVerdict::Inconclusive => 0,
                },
                false,
            )),
            (None, None) => None,
        };
        let Some((side, certain)) = found else {
            self.verdict = Verdict::NotComparable;
            return;
        };
        self.verdict = self.word(side, certain, self.p_adjusted, alpha);
        // The other readings are held to the level that the observed one had to meet in its family.
        let p = self.estimate.as_ref().and_then(|estimate| estimate.p_value);
        let factor = match (p, self.p_adjusted) {
            (Some(p), Some(adjusted)) if p > 0.0 => (adjusted / p).max(1.0),
            _ => 1.0,
        };
        let agrees = |case: &EffectEstimate| {
            let p = case.p_value.map(|p| (p * factor).min(1.0));
            self.word(case.side, case.certain, p, alpha) == self.verdict
        };
        if !self.void_cases.iter().all(agrees) {
            self.void_decides = true;
            self.verdict = Verdict::Inconclusive;
        }
    }

    /// What would help a declared effect that is inconclusive.
    fn advise(&mut self, alpha: Level) {
        if self.exploratory || self.verdict != Verdict::Inconclusive {
            return;
        }
        self.advice = match (&self.estimate, &self.limited) {
            _ if self.void_decides => Some(REPEAT_VOIDS.to_owned()),
            (Some(estimate), _) => {
                let level = Level::new(alpha.value() / self.family_size.max(1) as f64);
                self.plan_of(estimate, level.unwrap_or(alpha))
            }
            (None, Some(_)) => {
                Some("More tasks would show more, and so would a longer limit.".to_owned())
            }
            (None, None) => None,
        };
    }

    fn plan_of(&self, estimate: &EffectEstimate, alpha: Level) -> Option<String> {
        let scenarios = estimate.scenarios;
        match (estimate.scope, &estimate.plan_basis) {
            (Scope::Suite, _) => Some("More repetitions of these would show more.".to_owned()),
            (Scope::Population, Some(basis)) if self.metric == SUCCESS => {
                let plan = plan_for_success(&basis.components, alpha)?;
                success_plan_words(&plan, scenarios)
            }
            (Scope::Population, Some(basis)) => {
                let plan = plan_for_metric(basis, alpha)?;
                metric_plan_words(&plan, estimate.scope, scenarios)
            }
            (Scope::Population, None) => Some("More tasks would show more.".to_owned()),
        }
    }

    fn word(&self, side: i8, certain: bool, p: Option<f64>, alpha: Level) -> Verdict {
        let is_shown = certain || p.is_some_and(|p| p <= alpha.value() + 1e-12);
        let is_single = self.factors.len() == 1;
        match (side, self.direction) {
            (0, _) => Verdict::Inconclusive,
            _ if !is_shown => Verdict::Inconclusive,
            (side, Some(direction)) if !self.exploratory && is_single => {
                let is_better = (side < 0) == (direction == Direction::Lower);
                match is_better {
                    true => Verdict::Better,
                    false => Verdict::Worse,
                }
            }
            (side, _) if side < 0 => Verdict::Lower,
            _ => Verdict::Higher,
        }
    }
}

/// One line about one effect: `docs: better, 12 % fewer tokens_active (5 % to 19 %; p 0.004)`.
pub fn effect_sentence(effect: &FactorEffect) -> String {
    let of_model = effect.model.as_ref().map(|model| format!(" ({model})"));
    let head = format!("{}{}", effect.effect, of_model.unwrap_or_default());
    if let Some(limited) = &effect.limited {
        return limited_sentence(effect, &head, limited);
    }
    let Some(estimate) = &effect.estimate else {
        let reason = effect.reason.unwrap_or("too few measurements");
        return format!("{head}: not comparable for {} ({reason})", effect.label);
    };
    let is_pair = effect.factors.len() > 1;
    let size = match estimate.measure {
        Measure::LogRatio if is_pair => format!(
            "together the ratio of {} changes by {} %",
            effect.label,
            signed(-estimate.value)
        ),
        Measure::LogRatio => {
            let word = if estimate.value >= 0.0 {
                "less"
            } else {
                "more"
            };
            format!("{} % {word} {}", number(estimate.value.abs()), effect.label)
        }
        Measure::Difference if effect.metric == SUCCESS => {
            format!("{} {} points", effect.label, signed(estimate.value))
        }
        Measure::Difference => format!("{} {}", effect.label, signed(estimate.value)),
    };
    let ends = estimate.ci95.map(|[low, high]| match estimate.measure {
        // Shown as a change, so that a smaller value comes first.
        Measure::LogRatio => format!("{} % to {} %", signed(-high), signed(-low)),
        Measure::Difference => format!("{} to {}", signed(low), signed(high)),
    });
    let scope = match (estimate.scope, estimate.scenarios) {
        (Scope::Population, _) => "on tasks like these".to_owned(),
        (Scope::Suite, 1) => "on exactly this task".to_owned(),
        (Scope::Suite, count) => format!("on exactly these {count} tasks"),
    };
    let ends = match ends {
        Some(ends) => format!("{ends} {scope}; {}", p_value(effect.p_adjusted)),
        None if estimate.certain => format!("{scope}; the same in every run"),
        None => format!("{scope}; too few runs for an interval"),
    };
    let voids = match (effect.void_decides, effect.void_bounds) {
        (true, Some([worst, best])) => format!(
            "; void trials decide: counted against it or for it, {} to {} points",
            signed(worst),
            signed(best)
        ),
        _ => String::new(),
    };
    let mixed = mixed(effect);
    let word = word(effect);
    let advice = advice(effect);
    format!("{head}: {word}, {size} ({ends}{mixed}{voids}){advice}")
}

/// `. This design sees only …`
fn advice(effect: &FactorEffect) -> String {
    let advice = effect.advice.as_ref();
    advice.map_or_else(String::new, |advice| format!(". {advice}"))
}

fn mixed(effect: &FactorEffect) -> String {
    match effect.aliases.is_empty() {
        true => String::new(),
        false => format!("; cannot be separated from {}", effect.aliases.join(", ")),
    }
}

fn word(effect: &FactorEffect) -> String {
    let word = match effect.verdict {
        Verdict::Lower => "lower",
        Verdict::Higher => "higher",
        other => verdict_word(other),
    };
    match effect.exploratory && word != "cannot tell" {
        true => format!("{word} (exploratory)"),
        false => word.to_owned(),
    }
}

/// Pairs of runs with the factor on and off, where runs were cut off.
fn limited_sentence(effect: &FactorEffect, head: &str, limited: &LimitedComparison) -> String {
    let is_less = limited.score.is_some_and(|score| score < 0.0);
    let share = |score: Option<f64>| {
        let score = score.map_or(0.0, |score| if is_less { -score } else { score });
        number(50.0 * (1.0 + score.clamp(-1.0, 1.0)))
    };
    let (more, low, high) = match is_less {
        true => ("less", limited.upper, limited.lower),
        false => ("more", limited.lower, limited.upper),
    };
    format!(
        "{head}: {}, {more} {} in {} % of pairs of runs ({} to {} %; {}{}); some runs were cut off by the limit, so that no size is given{}",
        word(effect),
        effect.label,
        share(limited.score),
        share(low),
        share(high),
        p_value(effect.p_adjusted),
        mixed(effect),
        advice(effect)
    )
}
