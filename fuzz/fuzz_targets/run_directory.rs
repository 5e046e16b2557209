#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (rows, index) = bytes.split_at(bytes.len() / 2);
    assize_engine::fuzzing::run_directory(directory.path(), rows, index);
});
