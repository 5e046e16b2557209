#![no_main]

// The first byte chooses the agent, so that the corpus of one format does not crowd out another's.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((format, log)) = bytes.split_first() {
        assize_sessions::fuzzing::log_of(usize::from(*format) % assize_sessions::fuzzing::formats(), log);
    }
});
