//! A plugin program in Rust: a collector that counts the words of an answer.
//!
//! `cargo build -p assize-plugins --example words`, then in a suite
//! `plugins: [{ id: words, command: ["target/debug/examples/words"] }]` and `collectors: [token, answer_words]`.

use assize_contracts::*;
use std::process::ExitCode;

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

fn main() -> ExitCode {
    assize_plugins::serve("words", env!("CARGO_PKG_VERSION"), |_options| {
        Plugins::new().collector(AnswerWords)
    })
}
