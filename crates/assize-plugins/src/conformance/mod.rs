//! A test for authors: every method of everything a plugin program serves, with good and with bad input.

mod exchange;
mod methods;
mod samples;

use crate::host::PluginHost;
use crate::program::PluginSpec;
use exchange::Exchange;

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The part that was tried: `protocol`, `collector words`.
    pub subject: String,
    /// The requirement, in words.
    pub check: String,
    /// The violation. Absent when the requirement holds.
    pub problem: Option<String>,
}

/// Starts the plugin a few times and tries everything it serves. Blocks; not for async code.
///
/// Providers are really prompted, which can cost real money. `modes` are names that a mode resolver must know.
pub fn test(spec: PluginSpec, modes: &[String]) -> std::io::Result<Vec<Finding>> {
    let host = PluginHost::new()?;
    let findings = host.block_on(async {
        let mut findings = Findings::default();
        let Some(exchange) = Exchange::start(&spec, &mut findings).await else {
            return findings;
        };
        exchange.try_protocol(&mut findings).await;
        methods::try_all(&exchange, modes, &mut findings).await;
        exchange.finish(&mut findings).await;
        exchange::try_another_version(&spec, &mut findings).await;
        findings
    });
    Ok(findings.unwrap_or_default().0)
}

/// The findings so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn note(&mut self, subject: &str, check: &str, outcome: Result<(), String>) {
        self.0.push(Finding {
            subject: subject.to_owned(),
            check: check.to_owned(),
            problem: outcome.err(),
        });
    }
}
