//! Inputs with which fuzzing once made a reader fail: `tests/fuzz/found`, each named after its target.

use std::path::Path;

#[test]
fn nothing_that_was_found_fails_again() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/found");
    let mut count = 0;
    for entry in std::fs::read_dir(found).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((target, _)) = name.split_once('-') else {
            continue;
        };
        let bytes = std::fs::read(&path).unwrap();
        let read = std::panic::catch_unwind(|| read_as(target, &bytes));
        assert!(read.is_ok(), "{name}");
        count += 1;
    }
    assert!(count > 0, "no inputs were found");
}

/// What the fuzz target of that name does.
fn read_as(target: &str, bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    match target {
        "acp" => assize_agents::fuzzing::acp(bytes),
        "agent_output" => assize_agents::fuzzing::agent_output(bytes),
        "cassettes" => assize_agents::fuzzing::cassettes(bytes),
        "checks" => {
            let mut parts = bytes.splitn(2, |byte| *byte == 0);
            let mut part = || parts.next().unwrap_or_default();
            assize_measures::fuzzing::checks(part(), part());
        }
        "data_sets" => assize::fuzzing::data_sets(directory.path(), bytes),
        "gates" => assize_report::fuzzing::gates(bytes),
        "mcp" => assize_agents::fuzzing::mcp(bytes),
        "mcp_messages" => {
            assize_agents::fuzzing::mcp_messages(bytes);
            assize::fuzzing::mcp_requests(directory.path(), bytes);
        }
        "plugin_messages" => assize_plugins::fuzzing::plugin_messages(bytes),
        "prices" => assize_llm::fuzzing::prices(bytes),
        "records" => assize_contracts::fuzzing::records(bytes),
        "rows" => assize_report::fuzzing::rows(bytes),
        "run_directory" => {
            let mut parts = bytes.splitn(3, |byte| *byte == 0);
            let mut part = || parts.next().unwrap_or_default();
            assize_engine::fuzzing::run_directory(directory.path(), part(), part(), part());
        }
        "secrets" => assize_secrets::fuzzing::secrets(bytes),
        "session_logs" => {
            let (format, log) = bytes.split_first().unwrap();
            let formats = assize_sessions::fuzzing::formats();
            assize_sessions::fuzzing::log_of(usize::from(*format) % formats, log);
        }
        "stored_run" => {
            let mut parts = bytes.splitn(4, |byte| *byte == 0);
            let mut part = || parts.next().unwrap_or_default();
            assize_engine::fuzzing::stored_run(directory.path(), part(), part(), part(), part());
        }
        "suite_files" => assize::fuzzing::suite_files(bytes),
        "wire" => assize_llm::fuzzing::wire(bytes),
        other => panic!("there is no target `{other}`"),
    }
}
