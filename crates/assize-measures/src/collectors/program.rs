//! `program`: how the program behind a session ended and what it used.

use assize_contracts::{
    BaseScenario, BoxError, Collector, CustomMetric, ProgramUse, PromptResult, SessionTrace,
    async_trait,
};

/// Metrics `program_exit_code`, `program_signal`, `program_cpu_ms`, `program_peak_memory_bytes` and, in containers,
/// `program_oom_kills`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramCollector;

#[async_trait]
impl Collector for ProgramCollector {
    fn id(&self) -> &str {
        "program"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        Ok(result.metrics.program.map(metrics).unwrap_or_default())
    }
}

fn metrics(program: ProgramUse) -> Vec<CustomMetric> {
    let exit_code = program.exit_code.map(f64::from);
    let signal = program.signal.map(f64::from);
    let cpu = program.cpu_ms.map(|cpu| cpu.value());
    let peak = program.peak_memory_bytes.map(|bytes| bytes as f64);
    let oom_kills = program.oom_kills.map(|count| count as f64);
    [
        ("program_exit_code", exit_code, "code"),
        ("program_signal", signal, "signal"),
        ("program_cpu_ms", cpu, "ms"),
        ("program_peak_memory_bytes", peak, "bytes"),
        ("program_oom_kills", oom_kills, "count"),
    ]
    .into_iter()
    .filter_map(|(name, value, unit)| CustomMetric::number(name, value?, unit))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_does_not_tell_is_absent() {
        let metrics = metrics(ProgramUse {
            exit_code: Some(3),
            peak_memory_bytes: Some(4096),
            ..ProgramUse::default()
        });
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["program_exit_code", "program_peak_memory_bytes"]);
    }
}
