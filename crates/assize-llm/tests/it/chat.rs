//! The chat client against an endpoint that answers by script.

use assize_contracts::CallEnding;
use assize_llm::testing::{Reply, ScriptedEndpoint};
use assize_llm::{
    Api, ApiKey, ChatClient, ChatError, ChatRequest, Endpoint, Message, OutputSchema, ToolSpec,
    Tries,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Nothing like a real key.
const KEY: &str = concat!("not-a-", "key-4711");

fn client(api: Api, endpoint: &ScriptedEndpoint) -> ChatClient {
    ChatClient::new(Endpoint {
        base_url: endpoint.url(),
        key: Some(ApiKey::new(KEY)),
        timeout: Duration::from_secs(60),
        ..Endpoint::of(api)
    })
    .unwrap()
}

fn asking(text: &str) -> ChatRequest {
    ChatRequest {
        model: "m-1".into(),
        system: Some("Be brief.".into()),
        messages: vec![Message::User(text.into())],
        ..ChatRequest::default()
    }
}

/// The same short answer in the form of each API.
fn hello(api: Api) -> Value {
    match api {
        Api::AnthropicMessages => {
            json!({"type": "message", "model": "m-1", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "hello"}],
            "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0}})
        }
        Api::OpenAiChat => json!({"model": "m-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
            "usage": {"prompt_tokens": 4, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}}),
        Api::OpenAiResponses => json!({"model": "m-1", "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}],
            "usage": {"input_tokens": 4, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}}),
        Api::Gemini => json!({"modelVersion": "m-1",
            "candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2, "cachedContentTokenCount": 1}}),
    }
}

#[tokio::test]
async fn every_api_is_asked_in_its_own_form() {
    for api in Api::ALL {
        let endpoint = ScriptedEndpoint::start(move |_, _| Reply::json(&hello(api))).unwrap();
        let answer = client(api, &endpoint)
            .send(&asking("Say hello."))
            .await
            .unwrap();
        assert_eq!(answer.text(), "hello");
        let tokens = answer.answer.usage.tokens;
        assert_eq!(
            (tokens.input, tokens.output, tokens.cache_read),
            (Some(3), Some(2), Some(1))
        );
        let received = &endpoint.received()[0];
        assert_eq!(Api::of("POST", &received.path), Some(api));
        let body = received.body.to_string();
        assert!(
            body.contains("Say hello.") && body.contains("Be brief."),
            "{body}"
        );
        let keys = ["x-api-key", "authorization", "x-goog-api-key"];
        let sent = keys.iter().find_map(|name| received.header(name)).unwrap();
        assert!(sent.ends_with(KEY));
    }
}

#[tokio::test]
async fn tools_are_called_and_their_results_go_back() {
    let endpoint = ScriptedEndpoint::start(|_, number| match number {
        0 => Reply::json(
            &json!({"type": "message", "model": "m-1", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "clock", "input": {"zone": "UTC"}},
            {"type": "tool_use", "id": "t2", "name": "clock", "input": {"zone": "CET"}}]}),
        ),
        _ => Reply::json(&hello(Api::AnthropicMessages)),
    })
    .unwrap();
    let client = client(Api::AnthropicMessages, &endpoint);
    let mut request = asking("What time is it?");
    request.tools = vec![ToolSpec {
        name: "clock".into(),
        description: "Tells the time.".into(),
        parameters: json!({"type": "object"}),
    }];
    let answer = client.send(&request).await.unwrap();
    request.messages.push(answer.message.clone());
    for tool in answer.answer.tools() {
        request.messages.push(Message::ToolResult {
            id: tool.id.clone(),
            name: tool.name.clone(),
            output: "noon".into(),
            is_error: false,
        });
    }
    assert_eq!(client.send(&request).await.unwrap().text(), "hello");
    let messages = endpoint.received()[1].body["messages"].clone();
    assert_eq!(messages[1]["content"][0]["signature"], "s");
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "t1");
    assert_eq!(messages[2]["content"][1]["tool_use_id"], "t2");
}

#[tokio::test]
async fn a_form_is_asked_for_in_the_way_of_the_api() {
    let form = OutputSchema {
        name: "verdict".into(),
        schema: json!({"type": "object", "properties": {"good": {"type": "boolean"}}}),
    };
    let mut request = asking("Good?");
    request.output_schema = Some(form);
    let endpoint = ScriptedEndpoint::start(|received, _| {
        let tool = received.body["tool_choice"]["name"].clone();
        Reply::json(&json!({"type": "message", "content": [{"type": "tool_use", "id": "t", "name": tool, "input": {"good": true}}]}))
    })
    .unwrap();
    let answer = client(Api::AnthropicMessages, &endpoint)
        .send(&request)
        .await
        .unwrap();
    assert_eq!(answer.text(), r#"{"good":true}"#);

    let endpoint = ScriptedEndpoint::start(|_, _| Reply::json(&hello(Api::OpenAiChat))).unwrap();
    client(Api::OpenAiChat, &endpoint)
        .send(&request)
        .await
        .unwrap();
    let format = endpoint.received()[0].body["response_format"].clone();
    assert_eq!(format["json_schema"]["name"], "verdict");
}

#[tokio::test]
async fn a_stream_tells_when_it_began() {
    let stream = "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let endpoint = ScriptedEndpoint::start(move |_, _| Reply::Body(200, stream.into())).unwrap();
    let request = ChatRequest {
        stream: true,
        ..asking("Say hello.")
    };
    let answer = client(Api::OpenAiChat, &endpoint)
        .send(&request)
        .await
        .unwrap();
    assert_eq!(answer.text(), "hello");
    assert!(answer.answer.first_content_at.is_some());
    assert_eq!(answer.answer.usage.tokens.total, Some(6));
    assert_eq!(
        endpoint.received()[0].body["stream_options"]["include_usage"],
        true
    );
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let endpoint = ScriptedEndpoint::start(|_, number| match number {
        0 => Reply::Later(429, r#"{"error":{"message":"slow down"}}"#.into(), 5),
        1 => Reply::Later(529, "{}".into(), 5),
        _ => Reply::json(&hello(Api::OpenAiChat)),
    })
    .unwrap();
    let answer = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap();
    assert_eq!((answer.retries, endpoint.received().len()), (2, 3));
}

#[tokio::test]
async fn an_endpoint_that_stays_busy_is_given_up() {
    let endpoint = ScriptedEndpoint::start(|_, _| {
        Reply::Later(
            429,
            r#"{"error":{"message":"slow down","type":"rate_limit"}}"#.into(),
            1,
        )
    })
    .unwrap();
    let error = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap_err();
    let expected = ChatError::Refused {
        status: 429,
        kind: Some("rate_limit".into()),
        message: "slow down".into(),
        retries: 2,
    };
    assert_eq!(error, expected);
    assert_eq!(endpoint.received().len(), 3);
}

#[tokio::test]
async fn who_asks_for_hours_is_not_waited_for() {
    let endpoint =
        ScriptedEndpoint::start(|_, _| Reply::Later(429, "{}".into(), 3_600_000)).unwrap();
    let error = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap_err();
    assert!(matches!(error, ChatError::Refused { retries: 0, .. }));
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_does_not_tell_the_key() {
    let endpoint = ScriptedEndpoint::start(|received, _| {
        let key = received.header("authorization").unwrap_or_default();
        Reply::Body(
            401,
            json!({"error": {"message": format!("unknown key {key}"), "type": key}}).to_string(),
        )
    })
    .unwrap();
    let error = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap_err();
    assert_eq!(endpoint.received().len(), 1);
    assert_eq!(
        error.to_string(),
        "the endpoint answers 401: unknown key Bearer <key>"
    );
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn silence_ends_with_the_time() {
    let endpoint = ScriptedEndpoint::start(|_, _| Reply::Silence).unwrap();
    let client = ChatClient::new(Endpoint {
        base_url: endpoint.url(),
        timeout: Duration::from_millis(200),
        ..Endpoint::of(Api::OpenAiChat)
    })
    .unwrap();
    let error = client.send(&asking("x")).await.unwrap_err();
    assert!(
        matches!(error, ChatError::Timeout { retries: 0, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn nothing_there_is_said() {
    let client = ChatClient::new(Endpoint {
        base_url: "http://127.0.0.1:1".into(),
        max_retries: 0,
        ..Endpoint::of(Api::OpenAiChat)
    })
    .unwrap();
    let error = client.send(&asking("x")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the endpoint cannot be reached: "),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_no_answer_is_said() {
    let endpoint = ScriptedEndpoint::start(|_, _| Reply::Body(200, "<html>hello".into())).unwrap();
    let error = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer is not one of the openai-chat API: it begins with `<html>hello`"
    );

    let endpoint = ScriptedEndpoint::start(|_, _| Reply::Body(200, " ".repeat(9 << 20))).unwrap();
    let error = client(Api::OpenAiChat, &endpoint)
        .send(&asking("x"))
        .await
        .unwrap_err();
    assert_eq!(error, ChatError::TooLarge);
}

#[tokio::test]
async fn an_endpoint_without_schemas_is_told_the_form_in_words() {
    let refusal = json!({"error": {"message": "Unknown parameter: 'response_format'."}});
    let endpoint =
        ScriptedEndpoint::start(
            move |received, _| match received.body.get("response_format") {
                Some(_) => Reply::Body(400, refusal.to_string()),
                None => Reply::json(&hello(Api::OpenAiChat)),
            },
        )
        .unwrap();
    let client = client(Api::OpenAiChat, &endpoint);
    let request = ChatRequest {
        output_schema: Some(OutputSchema {
            name: "word".into(),
            schema: json!({"type": "string", "maxLength": 47}),
        }),
        ..asking("Say hello.")
    };
    for _ in 0..2 {
        assert_eq!(client.send(&request).await.unwrap().text(), "hello");
    }
    let received = endpoint.received();
    assert_eq!(received.len(), 3, "it is refused once, and remembered");
    let system = received[1].body["messages"][0]["content"].to_string();
    assert!(
        system.contains("Be brief.") && system.contains("maxLength"),
        "{system}"
    );
}

#[tokio::test]
async fn a_refusal_for_another_reason_is_not_asked_again() {
    let refusal = json!({"error": {"message": "The model `m-1` does not exist."}});
    let endpoint =
        ScriptedEndpoint::start(move |_, _| Reply::Body(404, refusal.to_string())).unwrap();
    let request = ChatRequest {
        output_schema: Some(OutputSchema {
            name: "word".into(),
            schema: json!({"type": "string"}),
        }),
        ..asking("Say hello.")
    };
    let refused = client(Api::OpenAiChat, &endpoint).send(&request).await;
    assert!(matches!(
        refused,
        Err(ChatError::Refused { status: 404, .. })
    ));
    assert_eq!(endpoint.received().len(), 1);
}

/// The beginning of a streamed Anthropic answer, which reports the input.
fn beginning() -> String {
    let message = json!({"model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}});
    let event = json!({"type": "message_start", "message": message});
    format!("event: message_start\ndata: {event}\n\n")
}

#[tokio::test]
async fn tries_without_a_whole_answer_are_noted() {
    let endpoint = ScriptedEndpoint::start(|_, number| match number {
        0 => Reply::Cut(beginning()),
        1 => Reply::Body(503, "{}".into()),
        _ => Reply::json(&hello(Api::AnthropicMessages)),
    })
    .unwrap();
    let mut tries = Tries::default();
    let client = client(Api::AnthropicMessages, &endpoint);
    let answer = client.send_noting(&asking("Hi"), &mut tries).await.unwrap();
    assert_eq!(answer.retries, 2);
    // A refused one took nothing.
    assert_eq!(tries.lost.len(), 1);
    assert_eq!(tries.lost[0].ending, CallEnding::Cut);
    let usage = &tries.lost[0].answer.as_ref().unwrap().usage;
    assert_eq!(usage.tokens.total, None);
    assert_eq!(usage.at_least.unwrap().input, Some(7));
}

#[tokio::test]
async fn a_call_that_the_asker_gives_up_is_noted() {
    for (reply, has_begun) in [(Reply::Silence, false), (Reply::Stall(beginning()), true)] {
        let endpoint = ScriptedEndpoint::start(move |_, _| reply.clone()).unwrap();
        let client = client(Api::AnthropicMessages, &endpoint);
        let (request, mut tries) = (asking("Hi"), Tries::default());
        let asking = client.send_noting(&request, &mut tries);
        let patience = Duration::from_millis(500);
        assert!(tokio::time::timeout(patience, asking).await.is_err());
        assert_eq!(tries.lost.len(), 1);
        assert_eq!(tries.lost[0].ending, CallEnding::ClientGone);
        assert_eq!(tries.lost[0].answer.is_some(), has_begun);
        assert!(tries.lost[0].duration >= patience / 2);
    }
}

#[tokio::test]
async fn an_answer_that_ends_in_an_error_is_noted() {
    let error =
        json!({"type": "error", "error": {"type": "api_error", "message": format!("busy {KEY}")}});
    let body = format!("{}event: error\ndata: {error}\n\n", beginning());
    let endpoint = ScriptedEndpoint::start(move |_, _| Reply::Body(200, body.clone())).unwrap();
    let client = client(Api::AnthropicMessages, &endpoint);
    let mut tries = Tries::default();
    let failed = client.send_noting(&asking("Hi"), &mut tries).await;
    let message = failed.unwrap_err().to_string();
    assert_eq!(message, "the answer ended in an error: busy <key>");
    // It is asked three times.
    assert_eq!(tries.lost.len(), 3);
    assert!(!format!("{:?}", tries.lost).contains(KEY));
}
