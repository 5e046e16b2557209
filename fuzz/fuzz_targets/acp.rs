#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assize_agents::fuzzing::acp(bytes));
