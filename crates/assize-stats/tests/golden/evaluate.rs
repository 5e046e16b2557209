//! Calls the function a golden case names and gives its answer as JSON.

use assize_stats::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::inputs::*;
use super::success;

/// The answer of a function; null where the library answers none.
pub(crate) fn evaluate(function: &str, inputs: &Value, options: &Value) -> Result<Value, String> {
    match function {
        "describe" => json_of(&describe(&numbers("values", &inputs["values"])?)),
        "bootstrap_ci" => bootstrap_case(inputs, options),
        "cluster_bootstrap_ci" => cluster_bootstrap_case(inputs, options),
        "bootstrap_reduction_ci" => reduction_case(inputs, options),
        "expanded_tail" => expanded_tail_case(inputs, options),
        "scenario_typical_ci" => json_of(&scenario_typical_ci(
            &groups("groups", &inputs["groups"])?,
            confidence(options)?,
        )),
        "cluster_mean_ci" => json_of(&cluster_mean_ci(
            &groups("groups", &inputs["groups"])?,
            confidence(options)?,
        )),
        "paired_log_ratio" | "paired_difference" => paired_case(function, inputs, options),
        "permutation_test" => permutation_case(inputs, options),
        "stratified_permutation_test" => stratified_case(inputs, options),
        "sign_flip_test" => json_of(&sign_flip_test(
            &numbers("differences", &inputs["differences"])?,
            &permutation(options)?,
        )),
        "cohens_d" => two_groups(inputs, |a, b| json_of(&cohens_d(a, b))),
        "cliffs_delta" => two_groups(inputs, |a, b| json_of(&cliffs_delta(a, b))),
        "proportion_ci" => proportion_case(inputs, options),
        "proportion_diff_ci" => proportion_diff_case(inputs, options),
        "paired_proportion_diff_ci" => paired_proportion_case(inputs, options),
        "mcnemar_exact" => {
            let only = |name: &str| count(name, &inputs[name]);
            Ok(json!({ "pValue": mcnemar_exact(only("onlyA")?, only("onlyB")?) }))
        }
        "success_difference" | "success_rate" | "suite_difference" | "suite_rate"
        | "success_margin" | "success_gate" | "void_check" => {
            success::evaluate(function, inputs, options)
        }
        "limited_comparison" => limited_case(inputs, options),
        "count_difference" => answered(count_difference(
            &groups("a", &inputs["a"])?,
            &groups("b", &inputs["b"])?,
            level_or("alpha", options, Level::ALPHA_05)?,
        )),
        "pass_k" => json_of(&pass_k(
            tally(&inputs["successes"], &inputs["trials"])?,
            count("k", &inputs["k"])?,
        )),
        "pass_k_suite" => pass_k_suite_case(inputs, options),
        "adjust_p_values" => adjust_case(inputs, options),
        "holm_family" => json_of(&holm_family(&p_values(inputs)?)),
        "power_plan" => power_case(inputs, options),
        "noninferiority_gate" => gate_case(inputs, options),
        "tost" => tost_case(inputs, options),
        "betting_cs" => betting_case(inputs, options),
        "censored_median" => {
            let (times, completed) = (
                numbers("times", &inputs["times"])?,
                truths("completed", &inputs["completed"])?,
            );
            answered(censored_median(&times, &completed))
        }
        "cost_per_success" => {
            let (costs, success) = (
                numbers("costs", &inputs["costs"])?,
                truths("success", &inputs["success"])?,
            );
            answered(cost_per_success(&costs, &success))
        }
        "cohens_kappa" => kappa_case(inputs, options),
        "krippendorff_alpha" => alpha_case(inputs, options),
        "compare_groups" => compare_case(inputs, options),
        unknown => Err(format!("unknown function `{unknown}`")),
    }
}

fn json_of(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn answered<T: Serialize>(answer: Result<T, StatsError>) -> Result<Value, String> {
    json_of(&answer.map_err(|error| error.to_string())?)
}

fn two_groups(
    inputs: &Value,
    call: impl Fn(&[f64], &[f64]) -> Result<Value, String>,
) -> Result<Value, String> {
    call(
        &numbers("groupA", &inputs["groupA"])?,
        &numbers("groupB", &inputs["groupB"])?,
    )
}

fn bootstrap_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let values = numbers("values", &inputs["values"])?;
    json_of(&bootstrap_ci(
        &values,
        &bootstrap(options, BootstrapOptions::default())?,
    ))
}

fn cluster_bootstrap_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let groups = groups("groups", &inputs["groups"])?;
    json_of(&cluster_bootstrap_ci(
        &groups,
        &bootstrap(options, BootstrapOptions::clustered())?,
    ))
}

fn reduction_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let (a, b) = (
        numbers("modeA", &inputs["modeA"])?,
        numbers("modeB", &inputs["modeB"])?,
    );
    json_of(&bootstrap_reduction_ci(
        &a,
        &b,
        &bootstrap(options, BootstrapOptions::default())?,
    ))
}

fn expanded_tail_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let units = count("units", &inputs["units"])? as usize;
    Ok(json!({ "tail": expanded_tail(units, confidence(options)?) }))
}

fn paired_case(function: &str, inputs: &Value, options: &Value) -> Result<Value, String> {
    let (a, b) = (groups("a", &inputs["a"])?, groups("b", &inputs["b"])?);
    let paired = PairedOptions {
        statistic: statistic(options)?,
        confidence_level: confidence(options)?,
        scope: scope(options)?,
    };
    answered(if function == "paired_log_ratio" {
        paired_log_ratio(&a, &b, &paired)
    } else {
        paired_difference(&a, &b, &paired)
    })
}

fn permutation_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let options = permutation(options)?;
    two_groups(inputs, |a, b| json_of(&permutation_test(a, b, &options)))
}

fn stratified_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let strata = list("strata", &inputs["strata"])?;
    let runs: Vec<(Vec<f64>, Vec<f64>)> = strata
        .iter()
        .map(|stratum| Ok((numbers("a", &stratum["a"])?, numbers("b", &stratum["b"])?)))
        .collect::<Result<_, String>>()?;
    let strata: Vec<Stratum<'_>> = runs.iter().map(|(a, b)| Stratum { a, b }).collect();
    json_of(&stratified_permutation_test(
        &strata,
        &permutation(options)?,
    ))
}

fn proportion_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    const WORDS: [(&str, ProportionMethod); 3] = [
        ("wilson", ProportionMethod::Wilson),
        ("clopper-pearson", ProportionMethod::ClopperPearson),
        ("jeffreys", ProportionMethod::Jeffreys),
    ];
    let tally = tally(&inputs["successes"], &inputs["trials"])?;
    json_of(&proportion_ci(
        tally,
        word("method", options, &WORDS)?,
        confidence(options)?,
    ))
}

fn proportion_diff_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    word("method", options, &[("newcombe", ())])?;
    let a = tally(&inputs["successesA"], &inputs["trialsA"])?;
    let b = tally(&inputs["successesB"], &inputs["trialsB"])?;
    json_of(&proportion_diff_ci(a, b, confidence(options)?))
}

fn paired_proportion_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let number_of = |name: &str| count(name, &inputs[name]);
    let outcomes = PairedOutcomes {
        both: number_of("both")?,
        only_a: number_of("onlyA")?,
        only_b: number_of("onlyB")?,
        neither: number_of("neither")?,
    };
    json_of(&paired_proportion_diff_ci(outcomes, confidence(options)?))
}

fn limited_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    struct Task {
        a: Vec<f64>,
        b: Vec<f64>,
        cut_a: Vec<bool>,
        cut_b: Vec<bool>,
    }
    const WORDS: [(&str, LimitKind); 4] = [
        ("time", LimitKind::Time),
        ("tokens", LimitKind::Tokens),
        ("cost", LimitKind::Tokens),
        ("turns", LimitKind::Tokens),
    ];
    let read = |task: &Value| -> Result<Task, String> {
        let (a, b) = (numbers("a", &task["a"])?, numbers("b", &task["b"])?);
        let cut = |name: &str, runs: usize| match &task[name] {
            Value::Null => Ok(vec![false; runs]),
            given => truths(name, given),
        };
        Ok(Task {
            cut_a: cut("cutA", a.len())?,
            cut_b: cut("cutB", b.len())?,
            a,
            b,
        })
    };
    let tasks: Vec<Task> = list("scenarios", &inputs["scenarios"])?
        .iter()
        .map(read)
        .collect::<Result<_, String>>()?;
    let tasks: Vec<LimitedRuns<'_>> = tasks
        .iter()
        .map(|task| LimitedRuns {
            a: &task.a,
            b: &task.b,
            cut_a: &task.cut_a,
            cut_b: &task.cut_b,
        })
        .collect();
    answered(limited_comparison(
        &tasks,
        word("kind", options, &WORDS)?,
        level_or("alpha", options, Level::ALPHA_05)?,
    ))
}

fn pass_k_suite_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let scenarios = list("scenarios", &inputs["scenarios"])?;
    let tallies: Vec<Tally> = scenarios
        .iter()
        .map(|cell| tally(&cell["successes"], &cell["trials"]))
        .collect::<Result<_, String>>()?;
    json_of(&pass_k_suite(
        &tallies,
        count("k", &inputs["k"])?,
        confidence(options)?,
    ))
}

fn adjust_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let method = word(
        "method",
        options,
        &[("holm", AdjustMethod::Holm), ("bh", AdjustMethod::Bh)],
    )?;
    let p_values = p_values(inputs)?;
    let family_size = p_values.iter().flatten().count();
    Ok(
        json!({ "adjusted": adjust_p_values(&p_values, method), "adjustMethod": method, "familySize": family_size }),
    )
}

fn p_values(inputs: &Value) -> Result<Vec<Option<f64>>, String> {
    let p_value = |value: &Value| {
        if value.is_null() {
            Ok(None)
        } else {
            number("pValues", value).map(Some)
        }
    };
    list("pValues", &inputs["pValues"])?
        .iter()
        .map(p_value)
        .collect()
}

fn power_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let value = |name: &str| number(name, &inputs[name]);
    let plan = PowerInputs {
        scenarios: count("scenarios", &inputs["scenarios"])?,
        repetitions: value("repetitions")?,
        omega2: value("omega2")?,
        sigma_a2: value("sigmaA2")?,
        sigma_b2: value("sigmaB2")?,
        delta: value("delta")?,
    };
    let alpha = level_or("alpha", options, Level::ALPHA_05)?;
    answered(power_plan(
        &plan,
        alpha,
        level_or("power", options, Level::POWER_80)?,
    ))
}

fn gate_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let margin = number("margin", &options["margin"])?;
    let alpha = level_or("alpha", options, Level::ALPHA_05)?;
    let direction = word(
        "direction",
        options,
        &[("lower", Direction::Lower), ("higher", Direction::Higher)],
    )?;
    let gate = GateOptions {
        alpha,
        scope: scope(options)?,
        direction,
        statistic: statistic(options)?,
        ..GateOptions::new(Margin::Relative(margin))
    };
    answered(noninferiority_gate(
        &groups("a", &inputs["a"])?,
        &groups("b", &inputs["b"])?,
        &gate,
    ))
}

fn tost_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let differences = numbers("differences", &inputs["differences"])?;
    let (low, high) = (
        number("low", &options["low"])?,
        number("high", &options["high"])?,
    );
    answered(tost(
        &differences,
        low,
        high,
        level_or("alpha", options, Level::ALPHA_05)?,
    ))
}

fn betting_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let values = numbers("values", &inputs["values"])?;
    let probes = if inputs["probes"].is_null() {
        Vec::new()
    } else {
        numbers("probes", &inputs["probes"])?
    };
    let betting = BettingOptions {
        alpha: level_or("alpha", options, Level::ALPHA_05)?,
        truncation: level_or("truncation", options, Level::HALF)?,
    };
    let mut answer = answered(betting_cs(&values, &betting))?;
    answer["capital"] = answered(betting_capital(&values, &probes, &betting))?;
    Ok(answer)
}

fn kappa_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    const WORDS: [(&str, KappaWeights); 3] = [
        ("none", KappaWeights::None),
        ("linear", KappaWeights::Linear),
        ("quadratic", KappaWeights::Quadratic),
    ];
    let raters = ratings("raters", &[&inputs["raterA"], &inputs["raterB"]])?;
    let numbers = |rater: &[Option<f64>]| -> Vec<f64> {
        rater
            .iter()
            .map(|rating| rating.unwrap_or(f64::NAN))
            .collect()
    };
    answered(cohens_kappa(
        &numbers(&raters[0]),
        &numbers(&raters[1]),
        word("weights", options, &WORDS)?,
    ))
}

fn alpha_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    const WORDS: [(&str, RatingLevel); 3] = [
        ("nominal", RatingLevel::Nominal),
        ("ordinal", RatingLevel::Ordinal),
        ("interval", RatingLevel::Interval),
    ];
    let raters: Vec<&Value> = list("ratings", &inputs["ratings"])?.iter().collect();
    answered(krippendorff_alpha(
        &ratings("ratings", &raters)?,
        word("level", options, &WORDS)?,
    ))
}

/// The runs of a mode on one scenario, or all of them when they carry none.
struct Runs {
    scenario: Option<String>,
    values: Vec<f64>,
}

/// Values of a mode: one list of runs without scenario, or a list per scenario.
fn mode_runs(name: &str, value: &Value) -> Result<Vec<Runs>, String> {
    let items = list(name, value)?;
    if !items.is_empty() && items.iter().all(Value::is_array) {
        let scenarios = groups(name, value)?.into_iter().enumerate();
        let labelled = |(place, values)| Runs {
            scenario: Some(format!("{place:06}")),
            values,
        };
        return Ok(scenarios.map(labelled).collect());
    }
    Ok(vec![Runs {
        scenario: None,
        values: numbers(name, value)?,
    }])
}

fn compare_case(inputs: &Value, options: &Value) -> Result<Value, String> {
    let name = |field: &str| {
        inputs[field]
            .as_str()
            .map_or_else(|| expected(field, "a name", &inputs[field]), Ok)
    };
    let (mode_a, mode_b) = (name("modeA")?, name("modeB")?);
    let a = mode_runs("modeAValues", &inputs["modeAValues"])?;
    let b = mode_runs("modeBValues", &inputs["modeBValues"])?;
    let bootstrap = bootstrap(&options["bootstrapOptions"], BootstrapOptions::default())?;
    let permutation = permutation(&options["permutationOptions"])?;
    let metric = Metric {
        name: name("metric")?,
        direction: word(
            "direction",
            options,
            &[
                ("", None),
                ("lower", Some(Direction::Lower)),
                ("higher", Some(Direction::Higher)),
            ],
        )?,
        statistic: bootstrap.statistic,
        kind: MetricKind::Amount,
        is_primary: true,
        groups: [groups_of(mode_a, &a), groups_of(mode_b, &b)].concat(),
    };
    let options = CompareOptions {
        baseline: Some(mode_b),
        confidence_level: bootstrap.confidence_level,
        resamples: bootstrap.resamples,
        permutations: permutation.permutations,
        seed: bootstrap.seed,
        ..CompareOptions::default()
    };
    let comparisons =
        compare_groups(&[metric], &[], &options).map_err(|error| error.to_string())?;
    json_of(&comparisons.metrics.first())
}

fn groups_of<'a>(mode: &'a str, runs: &'a [Runs]) -> Vec<Group<'a>> {
    let group = |runs: &'a Runs| Group {
        mode,
        scenario: runs.scenario.as_deref(),
        values: &runs.values,
        cut: &[],
    };
    runs.iter().map(group).collect()
}
