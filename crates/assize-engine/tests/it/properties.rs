//! Whatever a crash left behind.

use assize_engine::fuzzing;
use proptest::prelude::*;

const MANIFEST: &str = include_str!(
    "../../../assize/tests/fixtures/runs-0.1/complete/runs/20261116-233444-93c3/manifest.json"
);

/// Lines that are rows, nearly rows, or nothing of the kind; the last one may be cut anywhere.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let cell = |n: u8| {
        format!(
            r#"{{"scenarioId":"ä{n}","mode":"m","model":"x","iteration":{n},"offset":{n},"length":3}}"#
        )
    };
    let line = prop_oneof![
        8 => (0..20_u8).prop_map(cell),
        1 => Just(String::new()),
        1 => Just("{\"scenarioId\":3}".to_owned()),
        1 => ".{0,20}",
    ];
    (prop::collection::vec(line, 0..8), 0..40_usize).prop_map(|(lines, cut)| {
        let mut bytes: Vec<u8> = lines
            .iter()
            .flat_map(|line| [line.as_bytes(), b"\n"].concat())
            .collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    })
}

proptest! {
    #[test]
    fn any_leftovers_are_repaired_or_refused(rows in lines(), index in lines(), pack in prop::collection::vec(any::<u8>(), 0..40)) {
        let directory = tempfile::tempdir().unwrap();
        fuzzing::run_directory(directory.path(), &rows, &index, &pack);
    }
    #[test]
    fn any_stored_run_is_read_or_refused(rows in lines(), index in lines(), pack in prop::collection::vec(any::<u8>(), 0..40)) {
        let directory = tempfile::tempdir().unwrap();
        fuzzing::stored_run(directory.path(), MANIFEST.as_bytes(), &rows, &index, &pack);
        fuzzing::stored_run(directory.path(), &rows, &rows, &index, &pack);
    }
}
