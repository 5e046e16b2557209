//! Bytes that go through arrive as they were sent.

use crate::answers::{ANTHROPIC_TOOL, CHAT};
use crate::support::{Agent, Step, Upstream, events, reply, send};
use assize_agents::capture::{Ending, Service};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_request_and_its_answer_arrive_untouched() {
    let upstream = Upstream::always(|| {
        reply(
            "418 Odd",
            "x-answer: yes\r\nset-cookie: a\r\nset-cookie: b\r\n",
            "{ \"a\" : 1 }",
        )
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let body = "{\"model\":\"m\",  \"messages\":[ ]}";
    let request = agent.post(Service::Anthropic, "/v1/messages?beta=true&x=%2F", body);
    let request = request
        .header("x-question", "why")
        .header("anthropic-beta", "a,b");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 418);
    assert_eq!(answer.headers()["x-answer"], "yes");
    assert_eq!(answer.headers().get_all("set-cookie").iter().count(), 2);
    assert_eq!(answer.bytes().await.unwrap(), "{ \"a\" : 1 }");
    let asked = &upstream.asked()[0];
    assert!(
        asked
            .head
            .starts_with("POST /base/v1/messages?beta=true&x=%2F HTTP/1.1\r\n")
    );
    for header in [
        "x-question: why",
        "anthropic-beta: a,b",
        "content-length: 30",
    ] {
        assert!(asked.head.contains(header), "{}", asked.head);
    }
    assert!(!asked.head.contains("transfer-encoding"), "{}", asked.head);
    let host = upstream.url.strip_prefix("http://").unwrap();
    assert!(
        asked.head.contains(&format!("host: {host}")),
        "{}",
        asked.head
    );
    assert_eq!(asked.body, body.as_bytes());
}

#[tokio::test]
async fn every_method_and_path_goes_through() {
    let upstream = Upstream::always(|| reply("200 OK", "", "[]")).await;
    let agent = Agent::of(&upstream).await;
    let url = agent.session.root_url(Service::OpenAi);
    let list = agent
        .client
        .get(format!("{url}/v1/models?limit=2"))
        .send()
        .await
        .unwrap();
    assert_eq!(list.text().await.unwrap(), "[]");
    let large = vec![b'x'; 3 << 20];
    let upload = agent
        .client
        .put(format!("{url}/v1/files/1"))
        .body(large.clone());
    assert_eq!(upload.send().await.unwrap().status(), 200);
    let asked = upstream.asked();
    assert!(
        asked[0].head.starts_with("GET /base/v1/models?limit=2 "),
        "{}",
        asked[0].head
    );
    assert!(asked[1].head.starts_with("PUT /base/v1/files/1 "));
    assert_eq!(asked[1].body, large);
    let recording = agent.recording().await;
    assert_eq!((recording.calls.len(), recording.other_requests), (0, 2));
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let upstream =
        Upstream::always(|| vec![send("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n")]).await;
    let agent = Agent::of(&upstream).await;
    let url = agent.session.root_url(Service::Anthropic);
    let answer = agent.client.head(url).send().await.unwrap();
    assert_eq!(
        (
            answer.status(),
            answer.headers()["content-length"].as_bytes()
        ),
        (http::StatusCode::OK, &b"7"[..])
    );
    assert!(
        upstream.asked()[0].head.starts_with("HEAD /base HTTP/1.1"),
        "{:?}",
        upstream.asked()
    );
}

#[tokio::test]
async fn a_chunk_is_passed_on_before_the_next_one_comes() {
    let upstream = Upstream::always(|| {
        let mut steps = events(&ANTHROPIC_TOOL);
        steps.insert(3, Step::Hold);
        steps
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent.post(Service::Anthropic, "/v1/messages", "{}");
    let mut pieces = request.send().await.unwrap().bytes_stream();
    let mut text = Vec::new();
    while text.len() < ANTHROPIC_TOOL[0].len() + ANTHROPIC_TOOL[1].len() {
        text.extend(pieces.next().await.unwrap().unwrap());
    }
    // Only now does the rest begin.
    upstream.go_on.send(()).unwrap();
    while let Some(piece) = pieces.next().await {
        text.extend(piece.unwrap());
    }
    assert_eq!(String::from_utf8(text).unwrap(), ANTHROPIC_TOOL.concat());
}

#[tokio::test]
async fn usage_is_asked_for_where_a_chat_stream_lacks_it_and_that_is_said() {
    let upstream = Upstream::always(|| events(&CHAT)).await;
    let agent = Agent::of(&upstream).await;
    let with = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    for body in [r#"{"model":"m","stream":true}"#, with, r#"{"model":"m"}"#] {
        agent
            .ask(Service::OpenAi, "/v1/chat/completions", body)
            .await;
    }
    agent
        .ask(
            Service::OpenAi,
            "/v1/responses",
            r#"{"model":"m","stream":true}"#,
        )
        .await;
    let bodies: Vec<String> = upstream
        .asked()
        .into_iter()
        .map(|asked| String::from_utf8(asked.body).unwrap())
        .collect();
    assert_eq!(
        bodies,
        [
            r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
            with,
            r#"{"model":"m"}"#,
            r#"{"model":"m","stream":true}"#,
        ]
    );
    let recording = agent.recording().await;
    let asked: Vec<bool> = recording
        .calls
        .iter()
        .map(|call| call.asked_for_usage)
        .collect();
    assert_eq!(asked, [true, false, false, false]);
    assert_eq!(
        recording.calls[0]
            .answer
            .as_ref()
            .unwrap()
            .usage
            .tokens
            .total,
        Some(110)
    );
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_said_to_the_agent_and_in_the_record() {
    let upstream = Upstream::always(Vec::new).await;
    let agent = Agent::of(&upstream).await;
    drop(upstream);
    let (status, body) = agent.ask(Service::Anthropic, "/v1/messages", "{}").await;
    assert_eq!(status, 502);
    let body = String::from_utf8(body).unwrap();
    assert!(
        body.contains("assize: the upstream cannot be reached"),
        "{body}"
    );
    let recording = agent.recording().await;
    assert!(matches!(&recording.calls[0].ending, Ending::NoAnswer(why) if why.contains("refused")));
}

#[tokio::test]
async fn nobody_gets_in_without_the_sessions_prefix() {
    let upstream = Upstream::always(|| reply("200 OK", "", "{}")).await;
    let agent = Agent::of(&upstream).await;
    let url = agent.session.root_url(Service::Anthropic);
    let token = url.split('/').nth(4).unwrap().to_owned();
    assert_eq!(token.len(), 32);
    let status = async |url: String| {
        agent
            .client
            .get(url)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    for wrong in [
        url.replace(&token, "0"),
        url.replace(&token, ""),
        url.replace("anthropic", "other"),
        url.replace("/s/", "/"),
    ] {
        assert_eq!(status(wrong).await, 404);
    }
    assert_eq!(status(url.clone()).await, 200);
    let client = agent.client.clone();
    let Agent {
        session, _proxy, ..
    } = agent;
    drop(session);
    assert_eq!(client.get(url).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_request_is_passed_on_before_its_end_comes() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = Upstream::always(Vec::new).await;
    let mut agent = Agent::of(&upstream).await;
    let url = format!("http://{}", listener.local_addr().unwrap());
    let proxy = agent._proxy.as_ref().unwrap();
    agent.session = proxy.open(crate::support::upstreams(&url).unwrap(), Default::default());
    let (pieces, body) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(4);
    let body = futures_util::stream::unfold(body, |mut body| async {
        let piece = body.recv().await?;
        Some((piece, body))
    });
    let path = format!("{}/v1/messages", agent.session.root_url(Service::Anthropic));
    let request = agent
        .client
        .post(path)
        .body(reqwest::Body::wrap_stream(body));
    let answer = tokio::spawn(request.send());
    let opening = r#"{"model":"m-7","messages":[{"role":"user","content":"hello"#;
    pieces.send(Ok(opening.to_owned())).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut seen = Vec::new();
    // The upstream has the beginning while the agent still writes.
    while !String::from_utf8_lossy(&seen).contains("hello") {
        stream.read_buf(&mut seen).await.unwrap();
    }
    pieces.send(Ok(r#""}]}"#.to_owned())).await.unwrap();
    drop(pieces);
    while !seen.ends_with(b"0\r\n\r\n") {
        stream.read_buf(&mut seen).await.unwrap();
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        .await
        .unwrap();
    assert_eq!(answer.await.unwrap().unwrap().text().await.unwrap(), "{}");
    let recording = agent.recording().await;
    assert_eq!(recording.calls[0].model.as_deref(), Some("m-7"));
}

#[tokio::test]
async fn requests_are_compared_only_where_one_has_failed() {
    let upstream = Upstream::new(|asked| match asked.number {
        1 => reply("429 Too Many Requests", "", "{}"),
        _ => events(&ANTHROPIC_TOOL),
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let body = |text: &str| {
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#)
    };
    for text in ["one", "two", "two", "three"] {
        agent
            .ask(Service::Anthropic, "/v1/messages", &body(text))
            .await;
        agent.session.settle().await;
    }
    let calls = agent.recording().await.calls;
    let prints: Vec<_> = calls.iter().map(|call| call.fingerprint).collect();
    assert!(prints[0].is_none() && prints[3].is_none(), "{prints:?}");
    assert!(prints[1].is_some() && prints[1] == prints[2], "{prints:?}");
}
