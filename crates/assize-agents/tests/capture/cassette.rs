//! Recorded exchanges, played back.

use crate::answers::{ANTHROPIC_PLAIN, ANTHROPIC_TOOL};
use crate::support::{Agent, Upstream, events, reply};
use assize_agents::capture::{
    Cassette, CassetteMode, CassetteSettings, CassetteTiming, Ending, Proxy, Service,
};
use serde_json::json;
use std::path::Path;

fn cassette(file: &Path, mode: CassetteMode, strict: bool) -> Option<Cassette> {
    let settings = CassetteSettings {
        file: file.to_owned(),
        mode,
        strict,
        timing: CassetteTiming::Fast,
    };
    Some(Cassette::open(settings).unwrap())
}

fn question(text: &str) -> String {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
        .to_string()
}

async fn ask(agent: &Agent, text: &str) -> (u16, String) {
    let (status, body) = agent
        .ask(Service::Anthropic, "/v1/messages", &question(text))
        .await;
    (status, String::from_utf8(body).unwrap())
}

/// Two sessions that ask the same in turn and get numbered answers.
async fn recorded(file: &Path) -> Upstream {
    let upstream = Upstream::new(|asked| {
        let text = format!("Answer {}.", asked.number);
        events(&[&ANTHROPIC_TOOL.concat().replace("Let me look.", &text)])
    })
    .await;
    let proxy = Proxy::start(0, cassette(file, CassetteMode::Record, true))
        .await
        .unwrap();
    let (a, b) = (
        Agent::through(&proxy, &upstream, "a"),
        Agent::through(&proxy, &upstream, "b"),
    );
    for agent in [&a, &b, &a] {
        let (status, _) = ask(agent, "What time is it? 12:00:01").await;
        assert_eq!(status, 200);
    }
    a.recording().await;
    b.recording().await;
    upstream
}

#[tokio::test]
async fn sessions_get_their_own_answers_back_in_order_without_any_upstream() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    let upstream = recorded(&file).await;
    let asked = upstream.asked().len();
    let proxy = Proxy::start(0, cassette(&file, CassetteMode::Replay, true))
        .await
        .unwrap();
    let (a, b) = (
        Agent::through(&proxy, &upstream, "a"),
        Agent::through(&proxy, &upstream, "b"),
    );
    let at = |text: &str| format!("What time is it? {text}");
    for (agent, time, expected) in [
        (&b, "09:10:11", "Answer 1."),
        (&a, "01:02:03", "Answer 0."),
        (&a, "23:59:59", "Answer 2."),
    ] {
        let (status, body) = ask(agent, &at(time)).await;
        assert!(status == 200 && body.contains(expected), "{body}");
    }
    // A session that was not recorded takes what there is.
    let other = Agent::through(&proxy, &upstream, "c");
    assert!(ask(&other, &at("10:00:00")).await.1.contains("Answer 0."));
    assert_eq!(upstream.asked().len(), asked, "nobody was asked");
    let recording = a.recording().await;
    assert!(recording.is_replayed());
    assert_eq!(recording.tokens().tokens.output, Some(2 * 96));
}

#[tokio::test]
async fn a_request_without_a_recorded_answer_is_refused_or_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    recorded(&file).await;
    let upstream = Upstream::always(|| reply("200 OK", "", ANTHROPIC_PLAIN)).await;
    let strict = Agent::with(&upstream, cassette(&file, CassetteMode::Replay, true)).await;
    let (status, body) = ask(&strict, "Something else?").await;
    assert!(
        status == 501 && body.contains("the cassette has no answer to this request"),
        "{body}"
    );
    assert!(matches!(
        strict.recording().await.calls[0].ending,
        Ending::NoAnswer(_)
    ));
    assert!(upstream.asked().is_empty());

    let open = Agent::with(&upstream, cassette(&file, CassetteMode::Replay, false)).await;
    assert_eq!(
        ask(&open, "Something else?").await,
        (200, ANTHROPIC_PLAIN.to_owned())
    );
    assert!(!open.recording().await.calls[0].replayed);
}

#[tokio::test]
async fn a_cassette_holds_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    let key = concat!("sk", "-test-0123456789abcdef");
    let upstream = Upstream::always(|| reply("200 OK", "", ANTHROPIC_PLAIN)).await;
    let agent = Agent::with(&upstream, cassette(&file, CassetteMode::Record, true)).await;
    let path = format!("/v1/messages?key={key}");
    let request = agent.post(Service::Anthropic, &path, question(key));
    request
        .header("x-api-key", key)
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    agent.recording().await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("Done.") && !text.contains(key), "{text}");
}

#[test]
fn a_file_that_is_no_cassette_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.jsonl");
    std::fs::write(&file, "\n{\"a\":1}\n").unwrap();
    let settings = CassetteSettings {
        file,
        mode: CassetteMode::Replay,
        strict: true,
        timing: CassetteTiming::Original,
    };
    let error = Cassette::open(settings).err().unwrap().to_string();
    assert!(error.contains("line 2 is no recorded exchange"), "{error}");
}
