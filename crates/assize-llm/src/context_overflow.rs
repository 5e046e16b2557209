//! Recognizes that an API refused a prompt because it grew longer than the model's context window.

use crate::ApiError;

/// Words that APIs use as an error's type or code.
const KINDS: [&str; 4] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "request_too_large",
];

/// Phrases of error messages, in lower case: Anthropic, OpenAI, Gemini, Bedrock, xAI, Cohere, vLLM, llama.cpp, Mistral and others.
const PHRASES: [&str; 19] = [
    "prompt is too long",
    "input is too long",
    "context_length_exceeded",
    "context length exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
    "context window exceeded",
    "exceed context limit",
    "ran out of room in the model's context window",
    "reduce the length of the messages",
    "input token count exceeds",
    "maximum prompt length",
    "exceeded model token limit",
    "context window exceeds limit",
    "greater than the context length",
    "too many tokens: total number of tokens",
    "prompt token count of",
];

impl ApiError {
    /// True when the prompt was longer than the model can read. That is the agent's doing, not a failure of the service.
    pub fn is_context_overflow(&self) -> bool {
        // A server that breaks or is busy may quote anything.
        let is_refusal = self.status < 500 && self.status != 429;
        let kind = self.kind.as_deref().unwrap_or_default();
        is_refusal && (KINDS.contains(&kind) || mentions_context_overflow(&self.message))
    }
}

/// True when a text, such as an agent's last words, says that the prompt grew too long.
pub fn mentions_context_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// The word for it, among those that an error carries.
pub(crate) fn overflow_kind<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    words.into_iter().find(|word| KINDS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, kind: Option<&str>, message: &str, expected: bool) {
        let error = ApiError {
            status,
            kind: kind.map(str::to_owned),
            message: message.to_owned(),
        };
        assert_eq!(error.is_context_overflow(), expected, "{message}");
    }

    #[test]
    fn a_prompt_that_grew_too_long_is_known_in_every_apis_words() {
        for message in [
            "prompt is too long: 208310 tokens > 200000 maximum",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            "Input is too long for requested model.",
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Invalid request: Your request exceeded model token limit: 262144",
            "prompt token count of 131002 exceeds the limit of 128000",
            "too many tokens: total number of tokens in the prompt cannot exceed 128000",
        ] {
            check(400, Some("invalid_request_error"), message, true);
        }
        check(
            413,
            Some("request_too_large"),
            "Request exceeds the maximum size",
            true,
        );
        check(200, Some("context_length_exceeded"), "no message", true);
    }

    #[test]
    fn other_refusals_are_none() {
        check(
            400,
            Some("invalid_request_error"),
            "messages: at least one message is required",
            false,
        );
        check(
            401,
            Some("authentication_error"),
            "invalid x-api-key",
            false,
        );
        check(
            429,
            Some("rate_limit_error"),
            "maximum context length per minute reached",
            false,
        );
        check(500, None, "prompt is too long for this server", false);
    }
}
