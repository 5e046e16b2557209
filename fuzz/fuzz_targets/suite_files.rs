#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assize::fuzzing::suite_files(bytes));
