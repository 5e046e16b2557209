//! `assize gate`: a run held against its gates. Whatever is missing, it never passes for that.

use crate::cli::GateArguments;
use crate::commands::UsageError;
use crate::commands::verdict::{self, Source, Wanted};
use crate::commands::{baseline, github, report};
use crate::exit::Exit;
use crate::terminal::{print_cautions, print_gates, print_json, say};
use anyhow::Result;
use assize_contracts::{CautionCode, Plugins};
use assize_report::{Gate, GateError, GateResult, Summary, gates_note};
use assize_stats::{GateVerdict, Scope};

pub(crate) fn gate(arguments: &GateArguments, plugins: &Plugins) -> Result<Exit> {
    let source = Source::find(&arguments.run, &arguments.place, plugins)?.looked_at("gate")?;
    let baseline = baseline::find(&arguments.against, &arguments.place, plugins)?;
    let gates = gates(arguments, &source)?;
    let wanted = Wanted {
        gate_scope: arguments.scope.into(),
        ..Wanted::default()
    };
    let mut summary = verdict::judge(&source, &gates, baseline.as_ref(), wanted)?;
    check_metrics(arguments, &gates, &summary)?;
    github::append_job_summary(&summary, &report::title(std::slice::from_ref(&source)));
    if arguments.json {
        for gate in &summary.gates {
            print_json(serde_json::to_string(gate)?);
        }
    } else {
        keep_what_gates_need(&mut summary);
        print_gates(&summary.gates);
        print_cautions([&summary]);
        say(closing(&summary));
    }
    Ok(Exit::of_gates(&summary.gates))
}

/// Leaves out notes about comparisons, which are not shown here, and says what looks mean to gates.
fn keep_what_gates_need(summary: &mut Summary) {
    let is_about_new_tasks = |gate: &GateResult| gate.scope == Scope::Population;
    let about_new_tasks = summary.gates.iter().any(is_about_new_tasks);
    summary.cautions.retain(|caution| match caution.code {
        CautionCode::UnseenTasks | CautionCode::FewScenarios | CautionCode::TaskCapped => {
            about_new_tasks
        }
        CautionCode::FewTasksCouldReverse
        | CautionCode::VoidDecides
        | CautionCode::NoVariation
        | CautionCode::SkewedMean
        | CautionCode::SizeWithheld
        | CautionCode::NothingHappened
        | CautionCode::BaselineZero
        | CautionCode::BaselineNonpositive
        | CautionCode::BaselineTouchesZero => false,
        _ => true,
    });
    for caution in &mut summary.cautions {
        let is_about_looks = matches!(
            caution.code,
            CautionCode::OptionalStopping | CautionCode::DeclaredLooks
        );
        if is_about_looks {
            caution
                .text
                .push_str(" Bounds of gates do not pay for looks.");
        }
    }
}

/// Those of the command line, else the suite's, for the wanted modes.
fn gates(arguments: &GateArguments, source: &Source) -> Result<Vec<Gate>> {
    let mut gates = match arguments.gate.is_empty() {
        true => source.gates()?,
        false => {
            let parse = |text: &String| Gate::parse(text, &source.catalog);
            let parsed: Result<Vec<Gate>, GateError> = arguments.gate.iter().map(parse).collect();
            parsed?
        }
    };
    if gates.is_empty() {
        return Err(UsageError {
            message: "there is no gate".to_owned(),
            hint: Some(
                "give one with `--gate 'success >= 0.9'`, or `gates:` in the suite before it is run"
                    .to_owned(),
            ),
        }
        .into());
    }
    if !arguments.mode.is_empty() {
        for gate in &mut gates {
            gate.modes = Some(arguments.mode.clone());
        }
    }
    Ok(gates)
}

/// A metric on the command line that nothing measured was probably misspelt.
fn check_metrics(
    arguments: &GateArguments,
    gates: &[Gate],
    summary: &Summary,
) -> Result<(), GateError> {
    let modes = || summary.modes.iter().map(|(_, mode)| mode);
    let is_measured = |name: &str| modes().any(|mode| mode.metrics.find(name).is_some());
    let has_metrics = modes().any(|mode| !mode.metrics.is_empty());
    let unknown = gates
        .iter()
        .find(|gate| gate.metric().is_some_and(|name| !is_measured(name)));
    match unknown.filter(|_| has_metrics && !arguments.gate.is_empty()) {
        Some(gate) => {
            let names = modes().flat_map(|mode| mode.metrics.iter().map(|(name, _)| name));
            let names: std::collections::BTreeSet<&str> = names.collect();
            Err(gate.unknown_metric(names))
        }
        None => Ok(()),
    }
}

/// `2 gates pass, 1 fails`.
fn closing(summary: &Summary) -> String {
    let count = |verdict: GateVerdict| {
        let results = summary.gates.iter();
        results.filter(|result| result.verdict == verdict).count()
    };
    let words = [
        (GateVerdict::Pass, "passed"),
        (GateVerdict::Fail, "failed"),
        (GateVerdict::Inconclusive, "inconclusive"),
    ];
    let parts = words.map(|(verdict, word)| (count(verdict), word));
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let note = gates_note(&summary.gates).map(|note| format!(" ({note})"));
    format!("gates: {}{}", parts.join(", "), note.unwrap_or_default())
}
