//! `judge`: a model scores what checks cannot: a scenario's `rubric`, criterion by criterion, or without one its success and the
//! efficiency of its trajectory.
//!
//! The agent's words and actions are data from an untrusted source: they go to the judge behind a fence that they cannot
//! know, and the judge may answer only in a fixed form. An answer in no such form is an error of the scorer, so the trial is
//! void; a criterion without a verdict has failed.

mod prompt;
mod rubric;
mod settings;
mod tally;
mod verdict;

use assize_contracts::{
    BaseScenario, BoxError, ConfigError, CustomMetric, JsonMap, Scorer, ScorerContext,
    ScorerResult, TokenBreakdown, Usd, async_trait,
};
use assize_llm::{ChatAnswer, ChatClient, ChatRequest, Message, Prices, Purchase, Tries};
use futures_util::future::join_all;
use rubric::Rubric;
use settings::Settings;
use std::sync::Arc;
use verdict::Ballot;

/// The number of times that a judge with an answer in another form is corrected and asked again.
const CORRECTIONS: usize = 2;

/// Scores trials by their scenario's rubric, or by the usual one.
pub struct JudgeScorer {
    client: ChatClient,
    settings: Settings,
    prices: Prices,
}

impl JudgeScorer {
    /// The scorer that settings describe: `api`, `base_url`, `model`, `key`, `votes` and a few more.
    pub fn from_settings(settings: &JsonMap) -> Result<Arc<dyn Scorer>, BoxError> {
        let settings = Settings::parse(settings)?;
        Ok(Arc::new(Self {
            client: ChatClient::new(settings.endpoint.clone())?,
            prices: match &settings.prices_file {
                Some(path) => Prices::with_file(path)?,
                None => Prices::default(),
            },
            settings,
        }))
    }

    /// One vote: asked until it is in the right form, or as often as it may be.
    async fn vote(&self, rubric: &Rubric, request: &ChatRequest) -> Vote {
        let mut request = request.clone();
        let mut spent = Spent::default();
        for _ in 0..=CORRECTIONS {
            let mut tries = Tries::default();
            let answered = self.client.send_noting(&request, &mut tries).await;
            spent.add_lost(tries.lost.len());
            let answer = match answered {
                Ok(answer) => answer,
                Err(error) => return Vote::broken(error.to_string(), spent),
            };
            spent.add(&answer, self.cost(&answer));
            match Ballot::parse(&answer.text(), rubric) {
                Ok(ballot) => {
                    return Vote {
                        ballot: Ok(ballot),
                        spent,
                    };
                }
                Err(complaint) => {
                    request.messages.push(as_message(&answer));
                    request.messages.push(prompt::correction(&complaint));
                    spent.complaint = complaint;
                }
            }
        }
        let tries = CORRECTIONS + 1;
        let complaint = &spent.complaint;
        let error = format!("the judge gave no verdict in {tries} answers: {complaint}");
        Vote::broken(error, spent)
    }

    fn cost(&self, answer: &ChatAnswer) -> Option<Usd> {
        let usage = &answer.answer.usage;
        let cost = self.prices.of_request(&Purchase {
            model: answer
                .answer
                .model
                .as_deref()
                .unwrap_or(&self.settings.model),
            api: Some(answer.answer.api),
            tokens: usage.tokens,
            cache_write_1h: usage.cache_write_1h,
            service_tier: usage.service_tier.as_deref(),
        });
        cost.and_then(|cost| cost.breakdown.total_usd)
            .or(usage.reported_cost)
    }
}

/// The judge's answer, as plain text: calls of the form's tool would want a result.
fn as_message(answer: &ChatAnswer) -> Message {
    Message::Assistant {
        text: answer.text(),
        tools: Vec::new(),
        raw: None,
    }
}

#[async_trait]
impl Scorer for JudgeScorer {
    fn id(&self) -> &str {
        "judge"
    }

    fn check_scenario(&self, scenario: &BaseScenario) -> Result<(), ConfigError> {
        Rubric::of(scenario).map(drop)
    }

    async fn evaluate(
        &self,
        scenario: &BaseScenario,
        context: &ScorerContext,
    ) -> Result<ScorerResult, BoxError> {
        let Some(rubric) = Rubric::of(scenario)? else {
            return Ok(ScorerResult {
                success: true,
                output_valid: true,
                ..ScorerResult::default()
            });
        };
        let request = prompt::request(&self.settings, &rubric, scenario, context);
        let votes = (0..self.settings.votes).map(|_| self.vote(&rubric, &request));
        let votes = join_all(votes).await;
        let spent = votes
            .iter()
            .map(|vote| &vote.spent)
            .fold(Spent::default(), Spent::plus);
        let mut ballots = Vec::new();
        let mut error = None;
        for vote in votes {
            match vote.ballot {
                Ok(ballot) => ballots.push(ballot),
                Err(failure) => error = error.or(Some(failure)),
            }
        }
        let mut result = match error {
            Some(_) => ScorerResult::default(),
            None => tally::count(&rubric, &ballots),
        };
        result.metrics.extend(spent.metrics());
        result.output_valid = true;
        result.error = error;
        Ok(result)
    }
}

/// For fuzzing: counts an answer as two votes.
pub(crate) fn count_vote(scenario: &BaseScenario, answer: &str) {
    if let Ok(Some(rubric)) = Rubric::of(scenario)
        && let Ok(ballot) = Ballot::parse(answer, &rubric)
    {
        let result = tally::count(&rubric, &[ballot.clone(), ballot]);
        assert_eq!(result.details.len(), rubric.criteria.len());
        assert!(result.passed <= result.total);
    }
}

/// One judgement of all criteria, and what it took.
struct Vote {
    ballot: Result<Ballot, String>,
    spent: Spent,
}

impl Vote {
    fn broken(error: String, spent: Spent) -> Self {
        Self {
            ballot: Err(error),
            spent,
        }
    }
}

/// The cost of judging: kept apart from that of the agent.
#[derive(Debug, Clone, Default)]
struct Spent {
    calls: u32,
    tokens: Option<TokenBreakdown>,
    cost: Option<Usd>,
    millis: f64,
    complaint: String,
}

impl Spent {
    fn add(&mut self, answer: &ChatAnswer, cost: Option<Usd>) {
        let one = Self {
            calls: 1,
            tokens: Some(answer.answer.usage.tokens),
            cost,
            millis: (answer.duration + answer.waited).as_secs_f64() * 1000.0,
            complaint: String::new(),
        };
        let complaint = std::mem::take(&mut self.complaint);
        *self = std::mem::take(self).plus(&one);
        self.complaint = complaint;
    }

    /// Tries that brought no whole answer may have been billed.
    fn add_lost(&mut self, calls: usize) {
        let lost = Self {
            calls: calls as u32,
            ..Self::default()
        };
        let complaint = std::mem::take(&mut self.complaint);
        *self = std::mem::take(self).plus(&lost);
        self.complaint = complaint;
    }

    /// Both together; a sum with an unknown part is unknown.
    fn plus(self, other: &Self) -> Self {
        let (none, some) = (self.calls == 0, other.calls == 0);
        Self {
            calls: self.calls + other.calls,
            tokens: match (none, some) {
                (true, _) => other.tokens,
                (_, true) => self.tokens,
                _ => self.tokens.zip(other.tokens).map(|(a, b)| a.plus(&b)),
            },
            cost: match (none, some) {
                (true, _) => other.cost,
                (_, true) => self.cost,
                _ => self.cost.zip(other.cost).map(|(a, b)| a + b),
            },
            millis: self.millis + other.millis,
            complaint: self.complaint,
        }
    }

    fn metrics(&self) -> Vec<CustomMetric> {
        let tokens = self.tokens.unwrap_or_default();
        let amount = |count: Option<u64>| count.map(|count| count as f64);
        let all = [
            ("judge_calls", Some(f64::from(self.calls)), "count"),
            ("judge_tokens_total", amount(tokens.total), "tokens"),
            ("judge_cost_usd", self.cost.map(Usd::value), "USD"),
            ("judge_latency_ms", Some(self.millis), "ms"),
        ];
        let metric = |(name, value, unit)| CustomMetric::number(name, value?, unit);
        all.into_iter().filter_map(metric).collect()
    }
}
