//! Gates in the terminal: a line for each, marked by its verdict.

use super::{plain, print};
use assize_report::{GateResult, gate_bounds_note, gates_note};
use assize_stats::GateVerdict;
use console::style;

/// One line per gate and mode.
pub(crate) fn print_gates(gates: &[GateResult]) {
    if !gates.is_empty() {
        let note = gates_note(gates).unwrap_or_else(|| "gates".to_owned());
        let bounds = gate_bounds_note(gates).unwrap_or_default();
        print(style(format!("{note} · {bounds}")).dim().to_string());
    }
    for gate in gates {
        let line = plain(&gate.line());
        let marked = match gate.verdict {
            GateVerdict::Pass => style(format!("✓ {line}")).green(),
            GateVerdict::Fail => style(format!("✗ {line}")).red(),
            GateVerdict::Inconclusive => style(format!("? {line}")).yellow(),
        };
        print(format!("  {marked}"));
    }
}
