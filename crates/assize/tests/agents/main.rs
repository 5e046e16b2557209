//! Real agents on trial, with a scripted LLM and without any other network. `make agents` installs them.
//!
//! A harness of its own, because whether a test can run is known only here: the agent may not be installed, and not
//! every machine lets one make a network namespace. Such tests count as ignored, with the reason. `-- --all` adds those
//! that take long.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a test harness reports")]

mod agents;
mod good_runs;
mod harness;
mod offline;

use harness::{Test, quick};

const TESTS: &[Test] = &[
    quick(
        "offline::only_the_scripted_llm_is_there",
        &[],
        offline::only_the_scripted_llm_is_there,
    ),
    quick(
        "good_runs::claude_code",
        &["claude"],
        good_runs::claude_code,
    ),
    quick("good_runs::codex", &["codex"], good_runs::codex),
    quick("good_runs::opencode", &["opencode"], good_runs::opencode),
    quick("good_runs::gemini", &["gemini"], good_runs::gemini),
];

fn main() -> std::process::ExitCode {
    harness::run(TESTS)
}
