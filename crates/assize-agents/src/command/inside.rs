//! The result of a prompt that ran in a container: the container's resource use, and failures that are not the agent's.

use assize_contracts::{Millis, ProgramUse, PromptResult, ProviderError, VoidCause};
use assize_process::container::{Container, ContainerUse};

/// The result with what the container used since `before`. Files are fetched where they are not mounted.
pub(crate) async fn conclude(
    result: Result<PromptResult, ProviderError>,
    container: Option<&Container>,
    before: ContainerUse,
) -> Result<PromptResult, ProviderError> {
    let Some(container) = container else {
        return result;
    };
    let used = container.usage();
    if let Err(error) = container.fetch().await {
        let message = format!(
            "what the agent left cannot be fetched: {}",
            error.explained()
        );
        return Err(ProviderError::service(message).with_code("container_lost"));
    }
    match result {
        Ok(mut result) => {
            result.metrics.program = used_in(result.metrics.program, before, used);
            Ok(result)
        }
        Err(mut error) => {
            if let Some(partial) = &mut error.partial {
                partial.metrics.program = used_in(partial.metrics.program, before, used);
            }
            Err(explained(error, kills_since(before, used)))
        }
    }
}

/// The numbers of the program are those of the engine's client; the container's count instead.
fn used_in(
    program: Option<ProgramUse>,
    before: ContainerUse,
    used: ContainerUse,
) -> Option<ProgramUse> {
    let cpu = used.cpu.zip(before.cpu);
    Some(ProgramUse {
        cpu_ms: cpu.map(|(now, then)| Millis::from(now.saturating_sub(then))),
        peak_memory_bytes: used.peak_memory,
        oom_kills: kills_since(before, used),
        ..program.unwrap_or_default()
    })
}

fn kills_since(before: ContainerUse, used: ContainerUse) -> Option<u64> {
    let kills = used.oom_kills.zip(before.oom_kills);
    kills.map(|(now, then)| now.saturating_sub(then))
}

/// A program that is not in the image, or an engine that failed, says nothing about the agent.
fn explained(error: ProviderError, oom_kills: Option<u64>) -> ProviderError {
    let mentions = |part: &str| error.message.contains(part);
    match error.code.as_deref() {
        // In the engine's words, or in those of the shell that starts a program with its stdin in a file.
        Some("exit_126" | "exit_127")
            if mentions("executable file not found")
                || mentions("no such file or directory")
                || mentions(": exec: ") =>
        {
            let message = format!(
                "the program is not in the image: {} (hint: `assize image build --agent AGENT --from IMAGE` adds an agent, or \
                 set `install_agent: true`)",
                error.message
            );
            ProviderError { message, ..error }.not_started()
        }
        Some("exit_125") => ProviderError {
            message: format!("the container engine failed: {}", error.message),
            ..error
        }
        .not_started(),
        Some("exit_137" | "signal_9") if oom_kills.is_some_and(|kills| kills > 0) => {
            ProviderError {
                message: "the memory of the container was used up, and the system killed the agent"
                    .to_owned(),
                code: Some("out_of_memory".to_owned()),
                ..error
            }
        }
        _ => error,
    }
}

trait NotStarted {
    fn not_started(self) -> ProviderError;
}

impl NotStarted for ProviderError {
    fn not_started(self) -> ProviderError {
        let ProviderError {
            message, partial, ..
        } = self;
        let mut void = ProviderError::service(message)
            .with_code("program_not_started")
            .with_void_cause(VoidCause::AgentStart);
        void.partial = partial;
        void
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_contracts::Fault;
    use std::time::Duration;

    fn failed(code: &str, message: &str, kills: Option<u64>) -> ProviderError {
        explained(ProviderError::agent(message).with_code(code), kills)
    }

    #[test]
    fn a_program_that_is_missing_says_nothing_about_the_agent() {
        let error = failed("exit_127", "executable file not found in $PATH", None);
        assert_eq!(error.fault, Fault::Service);
        assert_eq!(failed("exit_1", "no", None).fault, Fault::Agent);
        assert_eq!(
            failed("exit_127", "sh: foo: not found", None).fault,
            Fault::Agent
        );
    }

    #[test]
    fn memory_that_was_used_up_is_the_agents_failure_and_is_named() {
        let error = failed("exit_137", "the program ended with exit code 137", Some(1));
        assert_eq!(error.code.as_deref(), Some("out_of_memory"));
        assert_eq!(error.fault, Fault::Agent);
        let killed = failed("exit_137", "the program ended with exit code 137", Some(0));
        assert_eq!(killed.code.as_deref(), Some("exit_137"));
    }

    #[test]
    fn only_what_a_prompt_used_counts_and_unknown_stays_unknown() {
        let at = |cpu, kills| ContainerUse {
            cpu: Some(Duration::from_millis(cpu)),
            peak_memory: Some(7),
            oom_kills: Some(kills),
        };
        let used = used_in(None, at(100, 1), at(350, 3)).unwrap();
        assert_eq!(used.cpu_ms.map(|ms| ms.value()), Some(250.0));
        assert_eq!((used.peak_memory_bytes, used.oom_kills), (Some(7), Some(2)));
        let unknown = used_in(None, ContainerUse::default(), ContainerUse::default()).unwrap();
        assert_eq!(unknown, ProgramUse::default());
    }
}
