//! Assize inside a program of one's own: no suite file, no command line, the plugins as objects.
//!
//! `cargo run -p assize-engine --example embed`

use assize_contracts::testing::{Script, ScriptedProvider};
use assize_contracts::*;
use assize_engine::{Execution, Mode, ProfileSuite, RunTarget, run_profile_suite};
use std::error::Error;
use std::sync::Arc;

/// Passes when the agent says that it is done.
struct SaysDone;

#[async_trait]
impl Scorer for SaysDone {
    fn id(&self) -> &str {
        "says-done"
    }

    async fn evaluate(
        &self,
        _: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        Ok(ScorerResult {
            success: context.agent_output.contains("done"),
            ..ScorerResult::default()
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = ScriptedProvider::new(vec![
        Script::answering("done"),
        Script::answering("no idea"),
    ]);
    let mut suite = ProfileSuite::new(
        ProviderSource::Single(Arc::new(provider)),
        Arc::new(SaysDone),
    );
    suite.modes = vec![Mode {
        name: "plain".into(),
        provider: "scripted".into(),
        ..Mode::default()
    }];
    suite.scenarios = vec![Arc::new(BaseScenario::new(
        "greet",
        "Say when you are done.",
    ))];
    suite.execution = Execution {
        repetitions: 3,
        warmup: false,
        ..Execution::default()
    };

    let results = std::env::temp_dir().join("assize-embed-example");
    let result = run_profile_suite(
        suite,
        RunTarget::New(results),
        Arc::new(()),
        Default::default(),
    )
    .await?;
    for row in result.run()?.rows()? {
        let row = row?;
        #[expect(clippy::print_stdout, reason = "an example shows what it got")]
        {
            println!("{} #{}: {:?}", row.scenario_id, row.iteration, row.outcome);
        }
    }
    Ok(())
}
