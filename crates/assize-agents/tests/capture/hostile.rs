//! Answers that no API should give, and agents that hang up.

use crate::answers::{ANTHROPIC_PLAIN, ANTHROPIC_TOOL, CHAT};
use crate::support::{Agent, Step, Upstream, events, reply, send};
use assize_agents::capture::{Ending, Service};
use assize_contracts::TraceEvent;
use futures_util::StreamExt;
use std::io::Write;

const SSE: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

fn notes(trace: &assize_contracts::SessionTrace) -> Vec<String> {
    let note = |event: &std::sync::Arc<TraceEvent>| match &**event {
        TraceEvent::Error { message, .. } => Some(message.clone()),
        _ => None,
    };
    trace.events.iter().filter_map(note).collect()
}

#[tokio::test]
async fn half_a_json_is_passed_on_and_nothing_is_known_of_it() {
    let half = &ANTHROPIC_PLAIN[..100];
    let upstream = Upstream::always(move || reply("200 OK", "", half)).await;
    let agent = Agent::of(&upstream).await;
    let (status, body) = agent
        .ask(Service::Anthropic, "/v1/messages", "{\"model\":\"m\"}")
        .await;
    assert_eq!((status, body), (200, half.as_bytes().to_vec()));
    let trace = agent.recording().await.trace("s", None);
    assert_eq!(trace.model_calls[0].tokens.total, None);
    let said = "what came back is no answer of a model's API; is the base URL right?";
    assert_eq!(notes(&trace), [said]);
}

#[tokio::test]
async fn a_50_mb_event_goes_through_and_the_next_one_is_read() {
    let huge = format!("data: {{\"x\":\"{}\"}}\n\n", "y".repeat(50 << 20));
    let length = huge.len();
    let upstream = Upstream::new(move |_| {
        let rest = CHAT.concat();
        vec![
            send(SSE),
            Step::Send(chunk(huge.as_bytes())),
            Step::Send(chunk(rest.as_bytes())),
            send("0\r\n\r\n"),
        ]
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let (_, body) = agent
        .ask(
            Service::OpenAi,
            "/v1/chat/completions",
            r#"{"stream":true}"#,
        )
        .await;
    assert_eq!(body.len(), length + CHAT.concat().len());
    let recording = agent.recording().await;
    let answer = recording.calls[0].answer.as_ref().unwrap();
    assert_eq!(
        (answer.flaws.oversized, answer.usage.tokens.total),
        (1, Some(110))
    );
}

#[tokio::test]
async fn a_wrong_content_length_is_a_cut_answer() {
    let upstream = Upstream::always(|| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nx-then: close\r\ncontent-length: {}\r\n\r\n",
            ANTHROPIC_PLAIN.len() + 10
        );
        vec![send(head + ANTHROPIC_PLAIN)]
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent
        .post(Service::Anthropic, "/v1/messages", "{}")
        .header("x-then", "close");
    let answer = request.send().await.unwrap();
    assert!(
        answer.bytes().await.is_err(),
        "the agent must see that something is missing"
    );
    let recording = agent.recording().await;
    assert!(
        matches!(recording.calls[0].ending, Ending::Cut(_)),
        "{:?}",
        recording.calls[0]
    );
    // What came is a whole document all the same.
    assert_eq!(recording.tokens().tokens.input, Some(187));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_said_to_be_cut() {
    let upstream = Upstream::always(|| {
        let begun = ANTHROPIC_TOOL[..3].concat();
        vec![send(SSE), Step::Send(chunk(begun.as_bytes()))]
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent.post(Service::Anthropic, "/v1/messages", r#"{"stream":true}"#);
    let answer = request.header("x-then", "close").send().await.unwrap();
    assert!(answer.bytes().await.is_err());
    let recording = agent.recording().await;
    assert!(recording.calls[0].is_cut());
    let trace = recording.trace("s", None);
    assert!(
        notes(&trace)[0].starts_with("the answer was cut"),
        "{:?}",
        notes(&trace)
    );
    assert_eq!(
        trace.model_calls[0].tokens.output, None,
        "nobody knows what a cut answer took"
    );
}

#[tokio::test]
async fn a_stream_without_end_costs_no_memory_and_ends_with_the_agent() {
    let upstream = Upstream::always(|| {
        let delta = ANTHROPIC_TOOL[2].replace("Let me look.", &"never ".repeat(10_000));
        let begun = chunk(ANTHROPIC_TOOL[..2].concat().as_bytes());
        vec![
            send(SSE),
            Step::Send(begun),
            Step::Forever(chunk(delta.as_bytes())),
        ]
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent.post(Service::Anthropic, "/v1/messages", r#"{"stream":true}"#);
    let mut pieces = request.send().await.unwrap().bytes_stream();
    let mut seen = 0;
    while seen < 40 << 20 {
        seen += pieces.next().await.unwrap().unwrap().len();
    }
    drop(pieces);
    let recording = agent.recording().await;
    assert_eq!(recording.lost_calls, 0);
    let call = &recording.calls[0];
    assert_eq!(call.ending, Ending::ClientGone);
    let answer = call.answer.as_ref().unwrap();
    assert!(answer.flaws.truncated && answer.text().len() <= 8 << 20);
    assert_eq!(
        notes(&recording.trace("s", None)),
        ["the agent hung up in the middle of an answer"]
    );
}

#[tokio::test]
async fn an_agent_that_hangs_up_before_the_answer_is_recorded_as_such() {
    let upstream = Upstream::always(|| vec![Step::Hold]).await;
    let agent = Agent::of(&upstream).await;
    let request = agent
        .post(Service::Anthropic, "/v1/messages", r#"{"model":"m"}"#)
        .send();
    let patience = std::time::Duration::from_millis(300);
    assert!(tokio::time::timeout(patience, request).await.is_err());
    let recording = agent.recording().await;
    let call = &recording.calls[0];
    assert_eq!((&call.ending, call.status()), (&Ending::ClientGone, None));
    assert_eq!(
        recording.last_error().unwrap(),
        "the agent hung up before the model answered"
    );
}

#[tokio::test]
async fn an_agent_that_hangs_up_after_the_last_event_has_got_everything() {
    let upstream = Upstream::always(|| {
        let mut steps = events(&CHAT);
        steps.insert(5, Step::Hold);
        steps
    })
    .await;
    let agent = Agent::of(&upstream).await;
    let request = agent.post(
        Service::OpenAi,
        "/v1/chat/completions",
        r#"{"stream":true}"#,
    );
    let mut pieces = request.send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while !text.contains("[DONE]") {
        text.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
    }
    drop(pieces);
    assert_eq!(agent.recording().await.calls[0].ending, Ending::Complete);
}

#[tokio::test]
async fn compressed_answers_are_read_and_arrive_compressed() {
    let text = CHAT.concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for (encoding, body) in [("gzip", gzip), ("zstd", zstd)] {
        let sent = body.clone();
        let upstream = Upstream::new(move |_| {
            let head = SSE.replace(
                "\r\n\r\n",
                &format!("\r\ncontent-encoding: {encoding}\r\n\r\n"),
            );
            let pieces = sent.chunks(20).map(|piece| Step::Send(chunk(piece)));
            std::iter::once(send(head))
                .chain(pieces)
                .chain([send("0\r\n\r\n")])
                .collect()
        })
        .await;
        let agent = Agent::of(&upstream).await;
        let (_, passed) = agent
            .ask(
                Service::OpenAi,
                "/v1/chat/completions",
                r#"{"stream":true}"#,
            )
            .await;
        assert_eq!(passed, body);
        assert_eq!(
            agent.recording().await.tokens().tokens.total,
            Some(110),
            "{encoding}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_goes_through_unread_and_that_is_said() {
    let upstream =
        Upstream::always(|| reply("200 OK", "content-encoding: gzip\r\n", "this is no gzip")).await;
    let agent = Agent::of(&upstream).await;
    let (_, body) = agent.ask(Service::Anthropic, "/v1/messages", "{}").await;
    assert_eq!(body, b"this is no gzip");
    let trace = agent.recording().await.trace("s", None);
    assert!(
        notes(&trace)
            .iter()
            .any(|note| note.contains("passed on unread")),
        "{:?}",
        notes(&trace)
    );
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_no_answer() {
    let upstream = Upstream::always(|| vec![send("220 smtp.test ESMTP\r\n\r\n")]).await;
    let agent = Agent::of(&upstream).await;
    let (status, _) = agent.ask(Service::Anthropic, "/v1/messages", "{}").await;
    assert_eq!(status, 502);
    assert!(agent.recording().await.calls[0].is_refused());
}
