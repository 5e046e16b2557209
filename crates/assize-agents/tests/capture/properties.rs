//! Properties of every answer and every file.

use crate::answers::{ANTHROPIC_TOOL, CHAT};
use crate::support::{Agent, Upstream, reply};
use assize_agents::capture::{Cassette, CassetteMode, CassetteSettings, CassetteTiming, Service};
use proptest::prelude::*;

const PATHS: [(Service, &str); 4] = [
    (Service::Anthropic, "/v1/messages"),
    (Service::OpenAi, "/v1/chat/completions"),
    (Service::OpenAi, "/v1/responses"),
    (
        Service::Gemini,
        "/v1beta/models/m:streamGenerateContent?alt=sse",
    ),
];

const ENCODINGS: [&str; 6] = ["identity", "gzip", "deflate", "br", "zstd", "other"];

/// Arbitrary bytes, and streams that were almost right.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(vec![ANTHROPIC_TOOL.concat(), CHAT.concat()]);
    let spoiled = (text, any::<prop::sample::Index>(), any::<u8>());
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        spoiled.prop_map(|(text, place, byte)| {
            let mut bytes = text.into_bytes();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_answer_arrives_untouched_and_is_recorded(
        answer in body(),
        question in prop::collection::vec(any::<u8>(), 0..100),
        path in prop::sample::select(PATHS.to_vec()),
        encoding in prop::sample::select(ENCODINGS.to_vec()),
        status in 200u16..600,
    ) {
        // These have no body by definition.
        prop_assume!(status != 204 && status != 304);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sent = answer.clone();
            let upstream = Upstream::new(move |_| {
                reply(&format!("{status} X"), &format!("content-encoding: {encoding}\r\n"), &sent)
            })
            .await;
            let agent = Agent::of(&upstream).await;
            let url = format!("{}{}", agent.session.root_url(path.0), path.1);
            let got = agent.client.post(url).body(question.clone()).send().await.unwrap();
            assert_eq!(got.status().as_u16(), status);
            assert_eq!(got.bytes().await.unwrap(), answer);
            assert_eq!(upstream.asked()[0].body, question);
            let recording = agent.recording().await;
            assert_eq!(recording.calls.len(), 1);
            recording.trace("s", None);
        });
    }

    #[test]
    fn a_file_of_any_content_is_a_cassette_or_an_error(content in prop::collection::vec(any::<u8>(), 0..300)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let _ = Cassette::open(CassetteSettings {
            file: file.path().to_owned(),
            mode: CassetteMode::Replay,
            strict: true,
            timing: CassetteTiming::Fast,
        });
    }
}
