#![no_main]

// The two parts are divided by a zero byte, which a mutation can move.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    assize_measures::fuzzing::checks(part(), part());
});
