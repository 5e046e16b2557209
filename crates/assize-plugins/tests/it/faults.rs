//! Plugins that break, each in its own way. Whatever they do, the next call is served or refused, and nothing hangs.

use crate::support::{collect, faulty, start};
use assize_plugins::{CallLimits, PluginSpec};
use std::time::Duration;

/// The bad call fails with these words; a good call afterwards is served, by a fresh start where need be.
fn check(fault: &str, words: &str) {
    let host = start(faulty(fault)).unwrap();
    host.block_on(async {
        collect(&host, "good").await.unwrap();
        let error = collect(&host, "bad").await.unwrap_err().to_string();
        assert!(error.contains(words), "{fault}: {error}");
        collect(&host, "good").await.unwrap();
    });
}

#[test]
fn a_crash_fails_the_call_and_is_followed_by_a_fresh_start() {
    check(
        "crash",
        "plugin `mine` ended with exit code 3 before it answered",
    );
}

#[test]
fn a_broken_message_ends_the_program() {
    check("broken", "wrote a broken message");
}

#[test]
fn a_line_without_end_ends_the_program() {
    check("flood", "wrote a line of more than 16777216 bytes");
}

#[test]
fn endless_chatter_ends_the_program() {
    check("chatter", "wrote more than 1000 lines that answer nothing");
}

#[test]
fn an_answer_of_another_shape_is_explained() {
    check(
        "wrong shape",
        "the plugin's answer cannot be used: `result`",
    );
    check("both", "expected either `result` or `error`");
    check("deep", "the plugin's answer cannot be used");
}

#[test]
fn an_error_of_the_plugins_own_is_passed_on() {
    check("error", "cannot");
}

/// As good as any answer, whatever comes with it.
fn check_harmless(fault: &str) {
    let host = start(faulty(fault)).unwrap();
    host.block_on(async {
        assert_eq!(collect(&host, "bad").await.unwrap().len(), 1, "{fault}");
        assert_eq!(collect(&host, "good").await.unwrap().len(), 1, "{fault}");
    });
}

#[test]
fn answers_too_many_do_no_harm() {
    check_harmless("twice");
    check_harmless("wrong id");
    check_harmless("stderr");
}

fn impatient(fault: &str) -> PluginSpec {
    PluginSpec {
        limits: CallLimits::same(Duration::from_millis(1500)),
        ..faulty(fault)
    }
}

#[test]
fn a_stuck_program_is_ended_and_started_again() {
    let host = start(PluginSpec {
        restarts: Some(20),
        ..impatient("hang")
    })
    .unwrap();
    host.block_on(async {
        collect(&host, "good").await.unwrap();
        let error = collect(&host, "bad").await.unwrap_err().to_string();
        assert!(
            error.contains("did not answer `collector/collect` within 1500 ms"),
            "{error}"
        );
        // Until the patience with it is over, calls time out; then there is a fresh start.
        for _ in 0..40 {
            if collect(&host, "good").await.is_ok() {
                return;
            }
        }
        panic!("it was never started again");
    });
}

#[test]
fn text_in_place_of_an_answer_is_a_timeout_and_no_more() {
    let host = start(impatient("text")).unwrap();
    host.block_on(async {
        let error = collect(&host, "bad").await.unwrap_err().to_string();
        assert!(error.contains("did not answer"), "{error}");
        collect(&host, "good").await.unwrap();
    });
}

#[test]
fn a_plugin_that_only_crashes_is_given_up() {
    let host = start(PluginSpec {
        restarts: Some(2),
        ..faulty("crash")
    })
    .unwrap();
    host.block_on(async {
        for _ in 0..3 {
            let error = collect(&host, "bad").await.unwrap_err().to_string();
            assert!(error.contains("ended with exit code 3 before"), "{error}");
        }
        let error = collect(&host, "good").await.unwrap_err().to_string();
        assert_eq!(
            error,
            "plugin `mine` is not started again: ended with exit code 3"
        );
    });
}

#[test]
fn a_plugin_that_cannot_be_used_says_why_at_the_start() {
    let refused = |fault: &str| start(faulty(fault)).err().unwrap();
    assert!(refused("newer").contains("does not speak version 1 of the protocol: it speaks 2"));
    assert!(refused("refuses version").contains("it speaks [7]"));
    let died = refused("no start");
    assert!(
        died.contains("ended with exit code 1") && died.contains("the database is not there"),
        "{died}"
    );
    let missing = start(crate::support::spec(&["no-such-program-anywhere"]))
        .err()
        .unwrap();
    assert!(missing.contains("cannot start plugin `mine`"), "{missing}");
}
