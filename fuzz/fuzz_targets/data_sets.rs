#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assize::fuzzing::data_sets(directory.path(), bytes);
});
