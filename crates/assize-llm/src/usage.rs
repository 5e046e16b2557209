//! One accounting of tokens: what each API calls input and output, turned into five disjoint counts.

use crate::answer::Flaws;
use crate::draft::Draft;
use assize_contracts::{TokenBreakdown, Usd};
use serde_json::Value;

/// Anthropic counts input without the cache, and output with reasoning, which it does not report separately.
///
/// A stream reports them piece by piece: later counts replace earlier ones.
pub(crate) fn read_anthropic(draft: &mut Draft, usage: &Value, has_final_output: bool) {
    let usage_of = &mut draft.usage;
    let tokens = &mut usage_of.tokens;
    replace(&mut tokens.input, &usage["input_tokens"]);
    replace(&mut tokens.cache_read, &usage["cache_read_input_tokens"]);
    replace(
        &mut tokens.cache_write,
        &usage["cache_creation_input_tokens"],
    );
    replace(
        &mut usage_of.cache_write_1h,
        &usage["cache_creation"]["ephemeral_1h_input_tokens"],
    );
    // A stream begins with a placeholder.
    if has_final_output {
        replace(&mut tokens.output, &usage["output_tokens"]);
    }
    read_service_tier(draft, &usage["service_tier"]);
}

/// OpenAI counts input with the cache, and output with reasoning. `prompt_tokens` and `completion_tokens` in one API are
/// `input_tokens` and `output_tokens` in the other.
pub(crate) fn read_openai(draft: &mut Draft, usage: &Value) {
    let either = |one: &str, other: &str| count(&usage[one]).or_else(|| count(&usage[other]));
    let input_details = first_object(usage, ["prompt_tokens_details", "input_tokens_details"]);
    let output_details = first_object(
        usage,
        ["completion_tokens_details", "output_tokens_details"],
    );
    let reported = ReportedUsage {
        input: either("prompt_tokens", "input_tokens"),
        cache_read: count(&input_details["cached_tokens"])
            .or_else(|| count(&usage["prompt_cache_hit_tokens"])),
        cache_write: count(&input_details["cache_write_tokens"])
            .or_else(|| count(&input_details["cache_creation_tokens"])),
        output: either("completion_tokens", "output_tokens"),
        reasoning: count(&output_details["reasoning_tokens"]),
        total: count(&usage["total_tokens"]),
    };
    if reported.input.is_none() && reported.output.is_none() {
        return;
    }
    draft.usage.tokens = reported.disjoint(&mut draft.flaws);
    if let Some(cost) = usage["cost"].as_f64() {
        draft.usage.reported_cost = Usd::new(cost);
    }
}

/// Gemini counts input with the cache, and output without thoughts. Counts of zero are left out of its JSON.
pub(crate) fn read_gemini(draft: &mut Draft, usage: &Value) {
    let Some(prompt) = count(&usage["promptTokenCount"]) else {
        return;
    };
    let or_zero = |name: &str| count(&usage[name]).unwrap_or(0);
    let cached = or_zero("cachedContentTokenCount");
    let tool_prompt = or_zero("toolUsePromptTokenCount");
    let flaws = &mut draft.flaws;
    draft.usage.tokens = TokenBreakdown {
        input: Some(minus(prompt, cached, flaws).saturating_add(tool_prompt)),
        cache_read: Some(cached.min(prompt)),
        output: Some(or_zero("candidatesTokenCount")),
        reasoning: Some(or_zero("thoughtsTokenCount")),
        ..TokenBreakdown::default()
    };
}

pub(crate) fn read_service_tier(draft: &mut Draft, tier: &Value) {
    if let Some(tier) = tier.as_str() {
        draft.usage.service_tier = Some(crate::draft::shortened(tier));
    }
}

/// Counts where the input includes the cache and the output includes reasoning.
struct ReportedUsage {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
}

impl ReportedUsage {
    fn disjoint(self, flaws: &mut Flaws) -> TokenBreakdown {
        let excludes_reasoning = self.excludes_reasoning();
        let mut within = |whole: Option<u64>, part: Option<u64>| {
            whole.map(|whole| minus(whole, part.unwrap_or(0), flaws))
        };
        let uncached = within(self.input, self.cache_read);
        let output = match excludes_reasoning {
            true => self.output,
            false => within(self.output, self.reasoning),
        };
        TokenBreakdown {
            input: within(uncached, self.cache_write),
            cache_read: at_most(self.cache_read, self.input),
            cache_write: at_most(self.cache_write, uncached),
            output,
            reasoning: match excludes_reasoning {
                true => self.reasoning,
                false => at_most(self.reasoning, self.output),
            },
            ..TokenBreakdown::default()
        }
    }

    /// Some compatible services count reasoning beside the output: their total gives it away.
    fn excludes_reasoning(&self) -> bool {
        let reasoning = self.reasoning.unwrap_or(0);
        let parts = [self.input, self.output, Some(reasoning)];
        let sum = parts
            .into_iter()
            .try_fold(0_u64, |sum, part| sum.checked_add(part?));
        reasoning > 0 && sum.is_some() && sum == self.total
    }
}

fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let is_count = number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(53);
        is_count.then_some(number as u64)
    })
}

fn replace(known: &mut Option<u64>, value: &Value) {
    *known = count(value).or(*known);
}

fn first_object<'a>(usage: &'a Value, names: [&str; 2]) -> &'a Value {
    match &usage[names[0]] {
        Value::Object(_) => &usage[names[0]],
        _ => &usage[names[1]],
    }
}

fn minus(whole: u64, part: u64, flaws: &mut Flaws) -> u64 {
    flaws.inconsistent_usage |= part > whole;
    whole.saturating_sub(part)
}

fn at_most(part: Option<u64>, whole: Option<u64>) -> Option<u64> {
    part.map(|part| whole.map_or(part, |whole| part.min(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use serde_json::json;

    fn openai(usage: Value) -> (TokenBreakdown, Flaws) {
        let mut draft = Draft::new(Api::OpenAiChat, 200);
        read_openai(&mut draft, &usage);
        (draft.usage.tokens, draft.flaws)
    }

    fn five(input: u64, output: u64, reasoning: u64, cache_read: u64) -> TokenBreakdown {
        TokenBreakdown {
            input: Some(input),
            output: Some(output),
            reasoning: Some(reasoning),
            cache_read: Some(cache_read),
            ..TokenBreakdown::default()
        }
    }

    #[test]
    fn parts_are_taken_out_of_their_wholes() {
        let (tokens, flaws) = openai(json!({
            "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
            "prompt_tokens_details": {"cached_tokens": 80},
            "completion_tokens_details": {"reasoning_tokens": 20},
        }));
        assert_eq!(tokens, five(20, 30, 20, 80));
        assert_eq!(flaws, Flaws::default());
    }

    #[test]
    fn reasoning_counted_beside_the_output_is_left_there() {
        let (tokens, _) = openai(json!({
            "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 170,
            "prompt_tokens_details": {"cached_tokens": 80},
            "completion_tokens_details": {"reasoning_tokens": 20},
        }));
        assert_eq!(tokens, five(20, 50, 20, 80));
    }

    #[test]
    fn a_part_larger_than_its_whole_is_cut_and_said() {
        let (tokens, flaws) = openai(json!({
            "input_tokens": 10, "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 80},
            "output_tokens_details": {"reasoning_tokens": 20},
        }));
        assert_eq!(tokens, five(0, 0, 5, 10));
        assert!(flaws.inconsistent_usage);
    }

    #[test]
    fn what_is_not_told_is_unknown() {
        let (tokens, _) = openai(json!({"prompt_tokens": 10, "completion_tokens": null}));
        assert_eq!(tokens.input, Some(10));
        assert_eq!(
            (tokens.output, tokens.reasoning, tokens.cache_read),
            (None, None, None)
        );
    }
}
