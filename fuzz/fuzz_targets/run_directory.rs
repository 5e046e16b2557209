#![no_main]

// The three parts are divided by zero bytes, which a mutation can move.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    assize_engine::fuzzing::run_directory(directory.path(), part(), part(), part());
});
