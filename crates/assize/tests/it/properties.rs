//! Files of people may hold anything.

use assize::fuzzing;
use proptest::prelude::*;

/// Text made of what suites are made of, so that much of it nearly fits.
fn nearly_a_suite() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "modes",
        "scenarios",
        "execution",
        "provider",
        "uses",
        "simulated",
        "paths",
        "repetitions",
        "id",
        "prompt",
        "checks",
        ": ",
        ":\n  ",
        "\n",
        "\n  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "= ",
        "&a ",
        "*a",
        "<<: ",
        "|\n",
        "# x",
        "1e999",
        "-1",
        "0x10",
        "012",
        ".inf",
        "~",
        "true",
        "no",
        "\u{1b}[2J",
        "\u{202e}",
        "ä",
        "\t",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_a_suite_or_a_problem(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::suite_files(&bytes);
    }

    #[test]
    fn any_text_is_a_suite_or_a_problem(text in nearly_a_suite()) {
        fuzzing::suite_files(text.as_bytes());
    }
    #[test]
    fn any_text_is_tasks_or_a_problem(text in nearly_a_suite()) {
        let directory = tempfile::tempdir().unwrap();
        fuzzing::data_sets(directory.path(), text.as_bytes());
    }
}
