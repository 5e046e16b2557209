//! Real agents on trial, with a scripted LLM and without any other network. `make agents` installs them.
//!
//! A harness of its own, because whether a test can run is known only here: the agent may not be installed, and not
//! every machine lets one make a network namespace. Such tests count as ignored, with the reason. `-- --all` adds those
//! that take long.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a test harness reports")]

mod agents;
mod books;
mod compare;
mod doctor;
mod faults;
mod good_runs;
mod harness;
mod isolation;
mod lab;
mod mcp;
mod offline;
mod recipes;
mod record;
mod sessions;
mod sign_in;
mod skills;
mod walls;

use harness::{Test, quick, slow};

/// Tests by the name of their function.
macro_rules! tests {
    ($($speed:ident $needs:tt: $($test:path),+;)+) => {
        &[$($($speed(stringify!($test), &$needs, $test)),+),+]
    };
}

#[rustfmt::skip]
const TESTS: &[Test] = tests! {
    quick []: offline::only_the_scripted_llm_is_there, offline::what_is_left_behind_is_seen, good_runs::chat;
    quick ["claude", "codex", "gemini"]: doctor::installed_agents_are_reached_through_the_proxy;
    quick ["claude"]: good_runs::claude_code, record::claude_code;
    quick ["codex"]: good_runs::codex, record::codex;
    quick ["claude"]: sign_in::claude_code, sign_in::claude_code_by_a_variable;
    quick ["codex"]: sign_in::codex;
    quick ["claude"]: lab::claude_code;
    quick ["codex"]: lab::codex;
    quick ["opencode"]: record::opencode;
    quick ["opencode"]: good_runs::opencode, good_runs::opencode_acp;
    quick ["gemini"]: good_runs::gemini_acp;
    quick ["claude", "codex", "opencode"]: compare::three_agents_come_to_a_verdict;
    quick ["claude", "codex"]: compare::two_agents_on_ones_own_repository;
    quick ["claude"]: mcp::claude_code;
    quick ["codex"]: mcp::codex, mcp::codex_uses_assize_itself;
    quick ["opencode"]: mcp::opencode;
    quick ["gemini"]: mcp::gemini_acp;
    quick []: mcp::chat;
    quick ["claude"]: skills::claude_code, skills::in_a_subagent;
    quick ["codex"]: skills::codex;
    quick ["claude"]: walls::claude_code;
    quick ["codex"]: walls::codex;
    slow ["opencode"]: walls::opencode;
    slow ["gemini"]: walls::gemini;
    quick ["opencode", "rg"]: skills::opencode;
    quick ["gemini"]: skills::gemini;
    slow ["qwen"]: skills::qwen;
    slow ["goose"]: skills::goose;
    slow ["copilot"]: skills::copilot;
    slow ["pi"]: skills::pi;
    slow ["cline"]: skills::cline;
    quick ["claude"]: sessions::claude_code;
    quick ["codex"]: sessions::codex;
    slow ["opencode"]: sessions::opencode;
    slow ["gemini"]: sessions::gemini;
    slow ["qwen"]: sessions::qwen;
    slow ["goose"]: sessions::goose;
    slow ["cline"]: sessions::cline;
    quick ["mcp-server-filesystem"]: mcp::a_server_by_others;
    quick ["claude"]: books::claude_code::every_number_is_the_served_one, books::claude_code::a_broken_decoder_is_noticed,
        books::claude_code_subagent, books::an_hour_in_the_cache_has_its_price;
    quick ["codex"]: books::codex::every_number_is_the_served_one, books::codex::a_broken_decoder_is_noticed,
        books::codex_without_usage, books::codex_with_its_newest_model;
    slow ["claude"]: books::claude_code_subagents_with_the_same_task, books::claude_code_without_usage;
    slow ["codex"]: books::codex_with_its_newest_model_and_subagents;
    slow ["opencode"]: books::opencode_subagents_with_the_same_task;
    slow ["claude"]: books::claude_code::a_cut_answer_leaves_a_lower_bound, books::claude_code::time_is_over_while_an_answer_streams,
        books::claude_code::a_tool_hangs_when_time_is_over, books::claude_code::large_output_of_a_tool_fails_nobody,
        books::claude_code::not_a_byte_of_an_answer_is_no_verdict, books::claude_code::an_error_inside_every_answer_is_no_verdict;
    slow ["codex"]: books::codex::a_cut_answer_leaves_a_lower_bound, books::codex::time_is_over_while_an_answer_streams,
        books::codex_subagent_is_still_running_at_the_end, books::codex::a_tool_hangs_when_time_is_over, books::codex::large_output_of_a_tool_fails_nobody,
        books::codex::not_a_byte_of_an_answer_is_no_verdict, books::codex::an_error_inside_every_answer_is_no_verdict;
    slow ["opencode"]: books::opencode::every_number_is_the_served_one, books::opencode::a_broken_decoder_is_noticed,
        books::opencode::a_cut_answer_leaves_a_lower_bound, books::opencode_without_usage,
        books::opencode::time_is_over_while_an_answer_streams, books::opencode::a_tool_hangs_when_time_is_over,
        books::opencode::large_output_of_a_tool_fails_nobody,
        books::opencode::not_a_byte_of_an_answer_is_no_verdict, books::opencode::an_error_inside_every_answer_is_no_verdict, books::opencode_subagent;
    slow ["gemini"]: books::gemini::every_number_is_the_served_one, books::gemini::a_broken_decoder_is_noticed,
        books::gemini::a_cut_answer_leaves_a_lower_bound, books::gemini_without_usage,
        books::gemini::time_is_over_while_an_answer_streams, books::gemini::a_tool_hangs_when_time_is_over,
        books::gemini::large_output_of_a_tool_fails_nobody,
        books::gemini::not_a_byte_of_an_answer_is_no_verdict, books::gemini::an_error_inside_every_answer_is_no_verdict;
    slow ["gemini"]: books::gemini_acp::every_number_is_the_served_one, books::gemini_acp::a_broken_decoder_is_noticed,
        books::gemini_acp::a_cut_answer_leaves_a_lower_bound, books::gemini_acp_without_usage,
        books::gemini_acp::time_is_over_while_an_answer_streams, books::gemini_acp::a_tool_hangs_when_time_is_over,
        books::gemini_acp::large_output_of_a_tool_fails_nobody,
        books::gemini_acp::not_a_byte_of_an_answer_is_no_verdict, books::gemini_acp::an_error_inside_every_answer_is_no_verdict;
    slow ["opencode"]: books::opencode_acp::every_number_is_the_served_one, books::opencode_acp::a_broken_decoder_is_noticed,
        books::opencode_acp::a_cut_answer_leaves_a_lower_bound, books::opencode_acp_without_usage,
        books::opencode_acp::time_is_over_while_an_answer_streams, books::opencode_acp::a_tool_hangs_when_time_is_over,
        books::opencode_acp::large_output_of_a_tool_fails_nobody,
        books::opencode_acp::not_a_byte_of_an_answer_is_no_verdict, books::opencode_acp::an_error_inside_every_answer_is_no_verdict;
    slow ["goose"]: books::goose::every_number_is_the_served_one, books::goose::a_broken_decoder_is_noticed,
        books::goose::a_cut_answer_leaves_a_lower_bound, books::goose_without_usage,
        books::goose::time_is_over_while_an_answer_streams, books::goose::a_tool_hangs_when_time_is_over,
        books::goose::large_output_of_a_tool_fails_nobody,
        books::goose::not_a_byte_of_an_answer_is_no_verdict, books::goose::an_error_inside_every_answer_is_no_verdict, books::goose_tools_do_not_tell_whether_they_failed;
    quick []: books::the_table_has_no_other_rows, books::chat::every_number_is_the_served_one, books::chat::a_broken_decoder_is_noticed,
        books::chat::a_cut_answer_leaves_a_lower_bound, books::chat_without_usage;
    slow ["codex"]: books::codex_overflow_inside_an_answer;
    slow ["goose"]: books::goose_overflow_inside_an_answer;
    slow []: books::chat_overflow_inside_an_answer, books::chat::time_is_over_while_an_answer_streams, books::chat::a_tool_hangs_when_time_is_over,
        books::chat::large_output_of_a_tool_fails_nobody, books::chat::not_a_byte_of_an_answer_is_no_verdict,
        books::chat::an_error_inside_every_answer_is_no_verdict;
    slow []: faults::chat::llm_500, faults::chat::llm_429, faults::chat::llm_401, faults::chat::no_key, faults::chat::unknown_model, faults::chat::wrong_address,
        faults::chat::a_prompt_that_grew_too_long, faults::chat::a_page_in_place_of_a_model,
        faults::chat::every_stream_is_cut, faults::chat::one_stream_is_cut, faults::chat::a_void_attempt_is_tried_again,
        faults::chat::time_is_over_while_a_tool_sleeps, faults::chat::tools_in_parallel,
        faults::chat::several_prompts;
    slow ["qwen"]: books::qwen::every_number_is_the_served_one, books::qwen::a_broken_decoder_is_noticed,
        books::qwen::a_cut_answer_leaves_a_lower_bound, books::qwen::time_is_over_while_an_answer_streams,
        books::qwen::a_tool_hangs_when_time_is_over, books::qwen::large_output_of_a_tool_fails_nobody,
        books::qwen::not_a_byte_of_an_answer_is_no_verdict, books::qwen::an_error_inside_every_answer_is_no_verdict;
    slow ["pi"]: books::pi::every_number_is_the_served_one, books::pi::a_broken_decoder_is_noticed,
        books::pi::a_cut_answer_leaves_a_lower_bound, books::pi::time_is_over_while_an_answer_streams,
        books::pi::a_tool_hangs_when_time_is_over, books::pi::large_output_of_a_tool_fails_nobody,
        books::pi::not_a_byte_of_an_answer_is_no_verdict, books::pi::an_error_inside_every_answer_is_no_verdict;
    slow ["cline"]: books::cline::every_number_is_the_served_one, books::cline::a_broken_decoder_is_noticed,
        books::cline::a_cut_answer_leaves_a_lower_bound, books::cline::time_is_over_while_an_answer_streams,
        books::cline::a_tool_hangs_when_time_is_over, books::cline::large_output_of_a_tool_fails_nobody,
        books::cline::not_a_byte_of_an_answer_is_no_verdict, books::cline::an_error_inside_every_answer_is_no_verdict;
    slow ["copilot"]: books::copilot::every_number_is_the_served_one, books::copilot::a_broken_decoder_is_noticed,
        books::copilot::a_cut_answer_leaves_a_lower_bound, books::copilot::time_is_over_while_an_answer_streams,
        books::copilot::a_tool_hangs_when_time_is_over, books::copilot::large_output_of_a_tool_fails_nobody,
        books::copilot::not_a_byte_of_an_answer_is_no_verdict, books::copilot::an_error_inside_every_answer_is_no_verdict;
    slow ["qwen"]: books::qwen_without_usage, faults::no_model::qwen;
    slow ["pi"]: books::pi_without_usage, faults::no_model::pi;
    slow ["cline"]: faults::no_model::cline;
    slow ["copilot"]: faults::no_model::copilot;
    slow ["aider"]: faults::no_model::aider;
    slow ["mini"]: faults::no_model::mini_swe_agent;
    slow ["gemini"]: mcp::gemini;
    slow ["opencode"]: mcp::opencode_acp;
    slow ["qwen"]: mcp::qwen;
    slow ["copilot"]: mcp::copilot;
    slow ["goose"]: mcp::goose;
    slow ["qwen"]: recipes::qwen;
    slow ["goose"]: recipes::goose;
    slow ["pi"]: recipes::pi;
    slow ["cline"]: recipes::cline;
    slow ["copilot"]: recipes::copilot;
    slow ["aider"]: recipes::aider;
    slow ["mini"]: recipes::mini_swe_agent;
    quick ["gemini"]: good_runs::gemini, record::gemini;
    slow ["claude"]: isolation::claude_code, faults::claude_code::llm_500, faults::claude_code::llm_429, faults::claude_code::llm_401, faults::claude_code::no_key, faults::claude_code::unknown_model, faults::claude_code::wrong_address,
        faults::claude_code::a_prompt_that_grew_too_long, faults::claude_code::a_page_in_place_of_a_model,
        faults::claude_code::every_stream_is_cut, faults::claude_code::one_stream_is_cut, faults::claude_code::a_void_attempt_is_tried_again,
        faults::claude_code::time_is_over_while_a_tool_sleeps, faults::claude_code::tools_in_parallel,
        faults::claude_code::several_prompts;
    slow ["codex"]: isolation::codex, faults::codex::llm_500, faults::codex::llm_429, faults::codex::llm_401, faults::codex::no_key, faults::codex::unknown_model, faults::codex::wrong_address,
        faults::codex::a_prompt_that_grew_too_long, faults::codex::a_page_in_place_of_a_model,
        faults::codex::every_stream_is_cut, faults::codex::one_stream_is_cut, faults::codex::a_void_attempt_is_tried_again,
        faults::codex::time_is_over_while_a_tool_sleeps, faults::codex::tools_in_parallel,
        faults::codex::several_prompts;
    slow ["opencode"]: isolation::opencode, faults::opencode::llm_500, faults::opencode::llm_429, faults::opencode::llm_401, faults::opencode::no_key, faults::opencode::unknown_model, faults::opencode::wrong_address,
        faults::opencode::a_prompt_that_grew_too_long, faults::opencode::a_page_in_place_of_a_model,
        faults::opencode::every_stream_is_cut, faults::opencode::one_stream_is_cut, faults::opencode::a_void_attempt_is_tried_again,
        faults::opencode::time_is_over_while_a_tool_sleeps, faults::opencode::tools_in_parallel,
        faults::opencode::several_prompts;
    slow ["gemini"]: isolation::gemini, faults::gemini::llm_500, faults::gemini::llm_429, faults::gemini::llm_401, faults::gemini::no_key, faults::gemini::unknown_model, faults::gemini::wrong_address,
        faults::gemini::a_prompt_that_grew_too_long, faults::gemini::a_page_in_place_of_a_model,
        faults::gemini::every_stream_is_cut, faults::gemini::one_stream_is_cut, faults::gemini::a_void_attempt_is_tried_again,
        faults::gemini::time_is_over_while_a_tool_sleeps, faults::gemini::tools_in_parallel,
        faults::gemini::several_prompts;
    slow ["gemini"]: faults::gemini_acp::llm_500, faults::gemini_acp::llm_429, faults::gemini_acp::llm_401, faults::gemini_acp::no_key, faults::gemini_acp::unknown_model, faults::gemini_acp::wrong_address,
        faults::gemini_acp::a_prompt_that_grew_too_long, faults::gemini_acp::a_page_in_place_of_a_model,
        faults::gemini_acp::every_stream_is_cut, faults::gemini_acp::one_stream_is_cut, faults::gemini_acp::a_void_attempt_is_tried_again,
        faults::gemini_acp::time_is_over_while_a_tool_sleeps, faults::gemini_acp::tools_in_parallel,
        faults::gemini_acp::several_prompts;
    slow ["goose"]: faults::goose::llm_500, faults::goose::llm_429, faults::goose::llm_401, faults::goose::no_key, faults::goose::unknown_model, faults::goose::wrong_address,
        faults::goose::a_prompt_that_grew_too_long, faults::goose::a_page_in_place_of_a_model,
        faults::goose::every_stream_is_cut, faults::goose::time_is_over_while_a_tool_sleeps;
    slow ["opencode"]: faults::opencode_acp::llm_500, faults::opencode_acp::llm_429, faults::opencode_acp::llm_401, faults::opencode_acp::no_key, faults::opencode_acp::unknown_model, faults::opencode_acp::wrong_address,
        faults::opencode_acp::a_prompt_that_grew_too_long, faults::opencode_acp::a_page_in_place_of_a_model,
        faults::opencode_acp::every_stream_is_cut, faults::opencode_acp::one_stream_is_cut, faults::opencode_acp::a_void_attempt_is_tried_again,
        faults::opencode_acp::time_is_over_while_a_tool_sleeps, faults::opencode_acp::tools_in_parallel,
        faults::opencode_acp::several_prompts;
};

fn main() -> std::process::ExitCode {
    harness::run(TESTS)
}
