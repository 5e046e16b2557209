//! The data that is read off the wire.

use crate::answers::{ANTHROPIC_PLAIN, ANTHROPIC_TOOL, CHAT, GEMINI_TOOL, RESPONSES};
use crate::support::{Agent, Upstream, events, reply};
use assize_agents::capture::{Proxy, Service};
use assize_contracts::{TokenBreakdown, TraceEvent};
use serde_json::json;

fn tokens(
    input: u64,
    output: u64,
    reasoning: Option<u64>,
    read: u64,
    write: Option<u64>,
) -> TokenBreakdown {
    TokenBreakdown {
        input: Some(input),
        output: Some(output),
        reasoning,
        cache_read: Some(read),
        cache_write: write,
        ..TokenBreakdown::default()
    }
    .with_totals()
}

#[tokio::test]
async fn a_conversation_becomes_a_trace() {
    let upstream = Upstream::new(|asked| match asked.number {
        0 => reply("200 OK", "", ANTHROPIC_PLAIN.replace("Done.", "A title")),
        1 => events(&ANTHROPIC_TOOL),
        _ => reply(
            "200 OK",
            "content-type: application/json\r\n",
            ANTHROPIC_PLAIN,
        ),
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let ask = async |body: serde_json::Value| {
        agent
            .ask(Service::Anthropic, "/v1/messages", &body.to_string())
            .await
    };
    let tools = json!([{"name": "Bash", "input_schema": {}}]);
    ask(json!({"model": "small", "messages": [{"role": "user", "content": "Title?"}]})).await;
    ask(json!({"model": "claude-x", "stream": true, "tools": tools, "messages": [{"role": "user", "content": "Do it"}]})).await;
    ask(json!({"model": "claude-x", "tools": tools, "messages": [
        {"role": "user", "content": "Do it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such file", "is_error": true}]},
    ]})).await;

    let recording = agent.recording().await;
    let trace = recording.trace("s-1", None);
    let calls = &trace.model_calls;
    let sides: Vec<bool> = calls.iter().map(|call| call.side).collect();
    assert_eq!(sides, [true, false, false]);
    assert_eq!(calls[1].tokens, tokens(14, 96, None, 9216, Some(2731)));
    assert_eq!(calls[2].tokens, tokens(187, 41, None, 11947, Some(203)));
    assert_eq!(
        (
            calls[1].model.as_str(),
            calls[1].api.as_deref(),
            calls[1].stop_reason.as_deref(),
            calls[1].status
        ),
        (
            "claude-x",
            Some("anthropic-messages"),
            Some("tool_use"),
            Some(200)
        )
    );
    assert!(calls[1].ttft_ms.unwrap() <= calls[1].duration_ms.unwrap());
    assert_eq!(calls[2].ttft_ms, None, "a plain answer has no first token");
    assert_eq!(trace.summary.total_turns, Some(2));
    assert_eq!(trace.summary.total_tokens, recording.tokens().tokens);
    assert_eq!(trace.summary.total_tokens.input, Some(14 + 187 + 187));
    assert_eq!(recording.final_text().as_deref(), Some("Done."));
    let tool = trace
        .events
        .iter()
        .find(|event| matches!(***event, TraceEvent::ToolCall { .. }));
    let TraceEvent::ToolCall {
        name,
        input,
        output,
        success,
        error,
        duration_ms,
        context,
    } = &**tool.unwrap()
    else {
        unreachable!()
    };
    assert_eq!((name.as_str(), input), ("Bash", &json!({"command": "ls"})));
    assert_eq!(
        (output, *success, error.as_deref()),
        (&json!("no such file"), Some(false), Some("no such file"))
    );
    assert!(duration_ms.is_some());
    let context = context.as_ref().unwrap();
    assert!(
        context.duration_is_bound,
        "the wire shows what came before and after"
    );
    assert_eq!(
        (context.call_id.as_deref(), context.call_ref.as_deref()),
        (Some("toolu_1"), Some("call-2"))
    );
}

#[tokio::test]
async fn every_api_is_read() {
    let upstream = Upstream::new(|asked| match () {
        () if asked.head.contains("/chat/") => events(&CHAT),
        () if asked.head.contains("/responses") => events(&RESPONSES),
        () => events(&GEMINI_TOOL),
    })
    .await;
    let agent = Agent::of(&upstream).await;
    agent
        .ask(
            Service::OpenAi,
            "/v1/chat/completions",
            r#"{"stream":true}"#,
        )
        .await;
    agent
        .ask(Service::OpenAi, "/v1/responses", r#"{"stream":true}"#)
        .await;
    let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    agent.ask(Service::Gemini, path, "{}").await;
    let calls = agent.recording().await.trace("s", None).model_calls;
    let models: Vec<&str> = calls.iter().map(|call| call.model.as_str()).collect();
    assert_eq!(models, ["gpt-x", "gpt-r", "gemini-x"]);
    for call in calls {
        assert_eq!(
            call.tokens,
            tokens(40, 6, Some(4), 60, None),
            "{:?}",
            call.api
        );
        assert!(call.ttft_ms.is_some(), "{:?}", call.api);
    }
}

/// Two subagents with the same task, which opens with what the main agent has said; only their headers tell them apart.
#[tokio::test]
async fn subagents_that_name_themselves_are_known_by_their_names() {
    let start = |id: &str| json!({"type": "function_call", "call_id": id, "name": "spawn_agent", "arguments": "{\"message\":\"Do it.\"}"});
    let started = json!({"type": "response.completed", "response": {"id": "r", "model": "gpt-r", "status": "completed",
        "output": [start("call_a"), start("call_b")], "usage": {"input_tokens": 100, "output_tokens": 10}}});
    let started = format!("event: response.completed\ndata: {started}\n\n");
    let upstream = Upstream::new(move |asked| match asked.number {
        0 => events(&[started.as_str()]),
        _ => events(&RESPONSES),
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let opening = json!({"role": "user", "content": "Delegate: Do it."});
    let ask = async |more: &[serde_json::Value], own: Option<&str>| {
        let input: Vec<_> = [opening.clone()].into_iter().chain(more.to_vec()).collect();
        let body = json!({"input": input, "stream": true, "tools": [{"type": "function", "name": "spawn_agent"}]});
        let mut request = agent.post(Service::OpenAi, "/v1/responses", body.to_string());
        request = request.header("thread-id", own.unwrap_or("main"));
        if own.is_some() {
            request = request.header("x-codex-parent-thread-id", "main");
        }
        request.send().await.unwrap().bytes().await.unwrap();
    };
    let inherited = start("call_a");
    let task = json!({"type": "agent_message", "content": [{"type": "encrypted_content", "encrypted_content": "Do it."}]});
    ask(&[], None).await;
    ask(&[inherited.clone(), task.clone()], Some("one")).await;
    ask(&[inherited.clone(), task], Some("two")).await;
    // Nobody knows what started it.
    ask(&[], Some("three")).await;
    ask(&[inherited], None).await;
    let recording = agent.recording().await;
    let agents: Vec<_> = recording
        .calls
        .iter()
        .map(|call| recording.agent(call))
        .collect();
    let expected = [None, Some("call_a"), Some("call_b"), Some("three"), None];
    assert_eq!(agents, expected);
    assert_eq!(recording.trace("s", None).summary.total_turns, Some(2));
}

#[tokio::test]
async fn results_without_an_id_go_by_order() {
    let upstream = Upstream::always(|| events(&GEMINI_TOOL)).await;
    let agent = Agent::of(&upstream).await;
    let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    let call = json!({"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {}}}]});
    let result = |text: &str| json!({"role": "user", "parts": [{"functionResponse": {"name": "shell", "response": {"output": text}}}]});
    let mut contents = vec![json!({"role": "user", "parts": [{"text": "go"}]})];
    for text in ["one", "two"] {
        agent
            .ask(
                Service::Gemini,
                path,
                &json!({"contents": contents}).to_string(),
            )
            .await;
        contents.extend([call.clone(), result(text)]);
    }
    agent
        .ask(
            Service::Gemini,
            path,
            &json!({"contents": contents}).to_string(),
        )
        .await;
    let trace = agent.recording().await.trace("s", None);
    let outputs: Vec<String> = trace
        .events
        .iter()
        .filter_map(|event| match &**event {
            TraceEvent::ToolCall { output, .. } => Some(output.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(outputs, ["\"one\"", "\"two\"", "null"]);
}

#[tokio::test]
async fn a_request_tried_again_is_one_call_with_retries() {
    let upstream = Upstream::new(|asked| match asked.number {
        0 => reply(
            "529 Overloaded",
            "",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        1 => reply("500 Oops", "", "not even JSON"),
        _ => reply("200 OK", "", ANTHROPIC_PLAIN),
    })
    .await;
    let agent = Agent::of(&upstream).await;
    for stream in [true, true, false] {
        let body = json!({"model": "m", "messages": ["same"], "stream": stream});
        agent
            .ask(Service::Anthropic, "/v1/messages", &body.to_string())
            .await;
    }
    let recording = agent.recording().await;
    assert_eq!(recording.last_error(), None);
    let trace = recording.trace("s", None);
    let call = &trace.model_calls[0];
    assert_eq!(
        (trace.model_calls.len(), call.retries, call.status),
        (1, Some(2), Some(200))
    );
    assert_eq!(
        trace.summary.total_tokens.input,
        Some(187),
        "refused calls have no tokens"
    );
    let errors: Vec<&str> = trace
        .events
        .iter()
        .filter_map(|event| match &**event {
            TraceEvent::Error {
                message,
                recoverable: true,
                ..
            } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0], "the model's API answered 529: busy");
}

#[tokio::test]
async fn a_task_that_only_got_errors_ends_in_one() {
    let upstream =
        Upstream::always(|| reply("401 No", "", r#"{"error":{"message":"bad key"}}"#)).await;
    let agent = Agent::of(&upstream).await;
    for _ in 0..3 {
        agent
            .ask(Service::OpenAi, "/v1/responses", r#"{"model":"m"}"#)
            .await;
    }
    let recording = agent.recording().await;
    assert_eq!(
        recording.last_error().unwrap(),
        "the model's API answered 401: bad key"
    );
    let trace = recording.trace("s", None);
    let call = &trace.model_calls[0];
    assert_eq!(
        (trace.model_calls.len(), call.retries, call.status),
        (1, Some(2), Some(401))
    );
    assert_eq!(trace.summary.total_tokens, TokenBreakdown::default());
    let last = trace.events.last().unwrap();
    assert!(matches!(
        &**last,
        TraceEvent::Error {
            recoverable: false,
            ..
        }
    ));
}

#[tokio::test]
async fn a_call_without_usage_is_unknown_and_so_is_the_sum() {
    let upstream = Upstream::always(|| events(&[CHAT[0], CHAT[1], CHAT[3]])).await;
    let agent = Agent::of(&upstream).await;
    agent
        .ask(
            Service::OpenAi,
            "/v1/chat/completions",
            r#"{"stream":true}"#,
        )
        .await;
    let trace = agent.recording().await.trace("s", None);
    assert_eq!(trace.model_calls[0].tokens, TokenBreakdown::default());
    assert_eq!(trace.summary.total_tokens, TokenBreakdown::default());
}

#[tokio::test]
async fn a_key_reaches_no_record_even_if_the_model_repeats_it() {
    let key = concat!("sk", "-ant-0123456789abcdef");
    let upstream = Upstream::new(move |_| {
        let said = ANTHROPIC_TOOL
            .concat()
            .replace("Let me look.", key)
            .replace("ls", key);
        events(&[&said])
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent.post(
        Service::Anthropic,
        "/v1/messages",
        r#"{"stream":true,"tools":[{}]}"#,
    );
    let answer = request.header("x-api-key", key).send().await.unwrap();
    assert!(
        answer.text().await.unwrap().contains(key),
        "the agent gets what was said"
    );
    let result = json!({"tools": [{}], "messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": format!("KEY={key}")}]}]});
    let request = agent.post(Service::Anthropic, "/v1/messages", result.to_string());
    request
        .header("authorization", format!("Bearer {key}"))
        .send()
        .await
        .unwrap();
    let recording = agent.recording().await;
    let record = serde_json::to_string(&recording.trace("s", None)).unwrap();
    let record = agent.session.redactor().text(&record).into_owned();
    assert!(
        !record.contains(key) && record.contains("KEY=[redacted-1]"),
        "{record}"
    );
}

#[tokio::test]
async fn interleaved_sessions_never_mix() {
    let upstream = Upstream::new(|asked| {
        let request: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
        let model = request["model"].as_str().unwrap();
        events(
            &CHAT
                .map(|event| event.replace("gpt-x", model))
                .each_ref()
                .map(|event| event.as_str()),
        )
    })
    .await;
    let proxy = Proxy::start(0, None).await.unwrap();
    let sessions = (0..20).map(|number| {
        let agent = Agent::through(&proxy, &upstream, "");
        async move {
            let body = json!({"model": format!("m{number}"), "stream": true}).to_string();
            for _ in 0..5 {
                agent
                    .ask(Service::OpenAi, "/v1/chat/completions", &body)
                    .await;
            }
            let recording = agent.recording().await;
            assert_eq!(recording.calls.len(), 5);
            for call in &recording.calls {
                let model = call.answer.as_ref().unwrap().model.as_deref();
                assert_eq!(model, Some(format!("m{number}").as_str()));
            }
        }
    });
    futures_util::future::join_all(sessions).await;
}
