#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assize_agents::fuzzing::mcp_messages(bytes);
    // The campaign runs every target in an empty directory.
    assize::fuzzing::mcp_requests(&std::env::temp_dir(), bytes);
});
