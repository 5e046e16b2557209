//! Attempts with a workspace: the calls around it, and what the scorer gets to see.

use crate::support::*;
use assize_contracts::testing::Script;
use assize_contracts::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Keeps what it was shown.
#[derive(Clone, Default)]
struct Seeing(Arc<Mutex<Vec<ScorerContext>>>);

#[async_trait]
impl Scorer for Seeing {
    fn id(&self) -> &str {
        "seeing"
    }

    async fn evaluate(
        &self,
        _: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        assert!(context.workspace.as_ref().is_none_or(|path| path.is_dir()));
        self.0.lock().unwrap().push(context.clone());
        Ok(ScorerResult {
            success: true,
            ..ScorerResult::default()
        })
    }
}

fn bench(workspace: WorkspaceSpec) -> Bench {
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.scenario().workspace = Some(workspace);
    bench
}

fn setup(line: &str) -> WorkspaceSpec {
    WorkspaceSpec {
        setup: vec![line.into()],
        ..WorkspaceSpec::default()
    }
}

#[tokio::test]
async fn a_failing_set_up_opens_no_session_and_is_void() {
    let done = bench(setup("echo no; exit 3")).run().await;
    let calls = ["init", "beforeScenario", "afterScenario", "shutdown"];
    assert_eq!(done.provider.calls(), calls);
    let row = done.row();
    assert_eq!(row.outcome, Some(Outcome::Void));
    assert_eq!(row.error_code.as_deref(), Some("workspace_setup_failed"));
    assert_eq!((row.session_id, row.completion_reason), (None, None));
}

#[tokio::test]
async fn a_failing_set_up_is_tried_again_like_any_void_attempt() {
    let mut bench = bench(setup("exit 3"));
    bench.scenario().allowed_retries = 2;
    assert_eq!(bench.run().await.row().attempts.len(), 2);
}

#[tokio::test]
async fn the_workspace_lives_until_the_trial_is_scored_and_no_longer() {
    let seeing = Seeing::default();
    let mut bench = bench(setup("echo x > f"));
    bench.suite.scorer = Arc::new(seeing.clone());
    bench.scenario().prompt = "look into {workspace}, {iteration}".into();
    let done = bench.run().await;
    let context = seeing.0.lock().unwrap().remove(0);
    let workspace: PathBuf = context.workspace.unwrap();
    assert!(!workspace.exists());
    // The set-up is no change.
    assert_eq!(context.changes, []);
    let prompt = format!("prompt look into {}, 0", workspace.display());
    assert!(
        done.provider.calls().contains(&prompt),
        "{:?}",
        done.provider.calls()
    );
    assert_eq!(done.row().extensions["files_added"], 0);
}

#[tokio::test]
async fn without_a_workspace_the_scorer_sees_none() {
    let seeing = Seeing::default();
    let mut bench = Bench::new(vec![Script::answering("hi")]);
    bench.suite.scorer = Arc::new(seeing.clone());
    let done = bench.run().await;
    assert_eq!(seeing.0.lock().unwrap()[0].workspace, None);
    assert!(!done.row().extensions.contains_key("files_added"));
}
