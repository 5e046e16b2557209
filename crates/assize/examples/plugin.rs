//! An `assize` of one's own with a collector compiled in: how long is the answer?
//!
//! `cargo run --example plugin -- run SUITE`, with `collectors: [token, latency, cost, tool_calls, answer_words]`.

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
        _: &BaseScenario,
        _: &str,
        _: Option<&SessionTrace>,
    ) -> Result<Vec<CustomMetric>, BoxError> {
        let words = result.text.split_whitespace().count() as f64;
        Ok(CustomMetric::number("answer_words", words, "words")
            .into_iter()
            .collect())
    }
}

fn main() -> std::process::ExitCode {
    assize::main_with(Plugins::new().collector(AnswerWords))
}
