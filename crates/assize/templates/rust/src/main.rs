//! An `assize` of one's own, with a metric and a scorer compiled in. `cargo run -- run` runs the suite beside it;
//! `cargo run -- plugins test target/debug/my-assize plugins serve` tries the plugins.

use assize_contracts::*;

struct AnswerWords;

#[async_trait]
impl Collector for AnswerWords {
    fn id(&self) -> &str {
        "answer_words"
    }

    async fn collect(
        &self,
        result: &PromptResult,
        _scenario: &BaseScenario,
        _mode: &str,
        _trace: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        let words = result.text.split_whitespace().count() as f64;
        Ok(CustomMetric::number("answer_words", words, "words")
            .into_iter()
            .collect())
    }
}

struct Says;

#[async_trait]
impl Scorer for Says {
    fn id(&self) -> &str {
        "says"
    }

    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let expected = scenario
            .extensions
            .get("says")
            .and_then(|says| says.as_str());
        let expected = expected.unwrap_or("hello");
        let passed = context.agent_output.contains(expected);
        Ok(ScorerResult {
            success: passed,
            passed: u64::from(passed),
            total: 1,
            details: vec![ScorerCheckResult {
                id: "says".to_owned(),
                description: format!("the answer says `{expected}`"),
                passed,
                ..ScorerCheckResult::default()
            }],
            output_valid: true,
            ..ScorerResult::default()
        })
    }
}

fn main() -> std::process::ExitCode {
    assize::main_with(Plugins::new().collector(AnswerWords).scorer(Says))
}
