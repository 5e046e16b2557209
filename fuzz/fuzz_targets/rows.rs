#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assize_report::fuzzing::rows(bytes));
