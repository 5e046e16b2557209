//! Real agents on trial, with a scripted LLM and without any other network. `make agents` installs them.
//!
//! A harness of its own, because whether a test can run is known only here: the agent may not be installed, and not
//! every machine lets one make a network namespace. Such tests count as ignored, with the reason. `-- --all` adds those
//! that take long.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a test harness reports")]

mod harness;
mod offline;

use harness::{Speed, Test};

fn main() -> std::process::ExitCode {
    harness::run(&[Test {
        name: "offline::only_the_scripted_llm_is_there",
        needs: &[],
        speed: Speed::Quick,
        body: offline::only_the_scripted_llm_is_there,
    }])
}
