//! Whatever a program starts ends with it: on its own end, on timeout, on cancel, and when the handle is dropped.

use std::time::{Duration, Instant};

use assize_process::{Command, Exit, Signal, Status, Stdin, Stopped};

use crate::testbed::{DEADLINE, Mark, await_true};

const SHORT: Duration = Duration::from_millis(300);

/// Runs the script with and without a cgroup and gives its end to `check`, after nothing of it lives.
async fn check(script: &str, change: impl Fn(Command) -> Command, check: impl Fn(Exit)) {
    for use_cgroup in [true, false] {
        let mark = Mark::new();
        let mut command = change(mark.shell(script));
        command.use_cgroup = use_cgroup;
        let output = command.run_to_end().await.unwrap();
        mark.assert_gone();
        assert_eq!(output.exit.survivors, 0);
        check(output.exit);
    }
}

/// Cancels the script as soon as it says something, with and without a cgroup.
async fn check_cancelled(script: &str, signal: Signal, grace: Duration, check: impl Fn(Exit)) {
    for use_cgroup in [true, false] {
        let mark = Mark::new();
        let mut command = mark.shell(script).polite(signal, grace);
        command.use_cgroup = use_cgroup;
        let mut running = command.start().await.unwrap();
        assert_eq!(running.next().await.unwrap().unwrap().bytes, b"ready\n");
        running.cancel();
        let exit = running.wait().await.unwrap();
        mark.assert_gone();
        assert_eq!(
            (exit.stopped, exit.survivors),
            (Some(Stopped::Cancelled), 0)
        );
        check(exit);
    }
}

fn as_it_is(command: Command) -> Command {
    command
}

fn out_of_time(command: Command) -> Command {
    command.timeout(Duration::from_millis(200))
}

fn timed_out(exit: Exit) {
    assert_eq!(exit.stopped, Some(Stopped::TimedOut));
    assert!(exit.wall >= Duration::from_millis(200), "{:?}", exit.wall);
}

#[tokio::test]
async fn a_plain_end_leaves_nothing_to_do() {
    check("exit 3", as_it_is, |exit| {
        assert_eq!((exit.status, exit.stopped), (Some(Status::Exited(3)), None));
        assert_eq!(exit.leftovers, 0);
    })
    .await;
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() {
    check("kill -9 $$", as_it_is, |exit| {
        assert_eq!(exit.status, Some(Status::Signalled(9)));
    })
    .await;
}

#[tokio::test]
async fn a_background_child_is_ended_and_counted() {
    check("sleep 1000 & sleep 1000 & exit 0", as_it_is, |exit| {
        assert!(exit.is_success());
        assert_eq!(exit.leftovers, 2);
    })
    .await;
}

#[tokio::test]
async fn a_helper_that_finishes_by_itself_is_no_leftover() {
    // On a busy machine it may take longer than a helper is waited for, but not every time.
    for _ in 0..20 {
        let output = Mark::new()
            .shell("(sleep 0.01; echo done) & exit 0")
            .run_to_end()
            .await
            .unwrap();
        if output.exit.leftovers == 0 {
            return assert_eq!(output.stdout.text(), "done\n");
        }
    }
    panic!("the helper never finished");
}

#[tokio::test]
async fn a_daemon_without_files_in_its_own_session_is_found() {
    let daemon =
        "(setsid sh -c 'exec <&- >&- 2>&-; trap \"\" TERM INT HUP; while :; do sleep 1; done' &)";
    check(&format!("{daemon}; {daemon}; exit 0"), as_it_is, |exit| {
        assert!(exit.leftovers >= 2);
    })
    .await;
}

#[tokio::test]
async fn a_never_ending_program_times_out() {
    check("while :; do :; done", out_of_time, |exit| {
        timed_out(exit.clone());
        assert_eq!(exit.status, Some(Status::Signalled(15)));
    })
    .await;
}

#[tokio::test]
async fn who_ignores_the_polite_signal_is_killed() {
    let script = "trap '' TERM INT\n\
                  setsid sh -c 'echo ready; while :; do sleep 1; done' & while :; do sleep 1; done";
    check_cancelled(script, Signal::SIGTERM, SHORT, |exit| {
        assert_eq!(exit.status, Some(Status::Signalled(9)));
        assert!(exit.leftovers >= 1);
    })
    .await;
}

#[tokio::test]
async fn the_polite_signal_can_be_chosen_and_answered() {
    let script = "trap 'exit 42' INT; echo ready; while :; do sleep 0.01; done";
    check_cancelled(script, Signal::SIGINT, DEADLINE, |exit| {
        assert_eq!(exit.status, Some(Status::Exited(42)));
    })
    .await;
}

#[tokio::test]
async fn a_stopped_program_can_be_ended() {
    check("kill -STOP $$", out_of_time, timed_out).await;
}

#[tokio::test]
async fn a_tool_that_outlives_its_agent_is_ended_after_it() {
    let script = "trap 'exit 0' TERM\n\
                  setsid sh -c 'echo ready; exec sleep 1000' & while :; do sleep 0.01; done";
    check_cancelled(script, Signal::SIGTERM, DEADLINE, |exit| {
        assert_eq!(exit.status, Some(Status::Exited(0)));
        assert_eq!(exit.leftovers, 1);
    })
    .await;
}

/// Every link of the chain begins a session, starts the next one and is gone at once.
#[tokio::test]
async fn a_chain_of_forks_is_caught() {
    let script = "export LINK='n=$1; [ $n -gt 0 ] || exit; setsid sh -c \"$LINK\" x $((n - 1)) & exit'\n\
                  sh -c \"$LINK\" x 20000; sleep 1000";
    check(script, out_of_time, timed_out).await;
}

/// A bomb, but of at most 400 processes at a time: each lives for a moment and is replaced.
#[tokio::test]
async fn a_fork_loop_is_caught() {
    let script = "i=0; while [ $i -lt 20 ]; do\n\
                  (trap '' TERM; while :; do setsid sh -c 'trap \"\" TERM; sleep 0.2' & sleep 0.01; done) &\n\
                  i=$((i + 1)); done; wait";
    check(script, out_of_time, timed_out).await;
}

#[tokio::test]
async fn cancel_ends_the_tree() {
    let mark = Mark::new();
    let mut running = mark
        .shell("setsid sleep 1000 & sleep 1000")
        .start()
        .await
        .unwrap();
    mark.await_living(3);
    let canceller = running.canceller();
    tokio::spawn(async move { canceller.cancel() });
    let exit = running.wait().await.unwrap();
    mark.assert_gone();
    assert_eq!(exit.stopped, Some(Stopped::Cancelled));
    running.canceller().cancel();
    assert_eq!(running.wait().await.unwrap(), exit);
}

#[tokio::test]
async fn kill_does_not_wait_for_the_grace() {
    let mark = Mark::new();
    let command = mark
        .shell("trap '' TERM; echo ready; while :; do sleep 1; done")
        .polite(Signal::SIGTERM, DEADLINE * 10);
    let mut running = command.start().await.unwrap();
    assert_eq!(running.next().await.unwrap().unwrap().bytes, b"ready\n");
    running.cancel();
    running.kill();
    let start = Instant::now();
    let exit = running.wait().await.unwrap();
    assert!(start.elapsed() < DEADLINE);
    assert_eq!(exit.status, Some(Status::Signalled(9)));
    mark.assert_gone();
}

#[tokio::test]
async fn dropping_the_handle_ends_the_tree() {
    let mark = Mark::new();
    let running = mark
        .shell("setsid sleep 1000 & sleep 1000")
        .start()
        .await
        .unwrap();
    mark.await_living(3);
    drop(running);
    await_true(|| mark.living().is_empty(), "the dropped program goes on");
}

#[tokio::test]
async fn a_program_that_kills_its_keeper_dies_with_it() {
    let mark = Mark::new();
    let command = mark.shell("read go; kill -9 $PPID; sleep 1000");
    let mut running = command.stdin(Stdin::Piped).start().await.unwrap();
    drop(running.take_stdin());
    let error = running.wait().await.unwrap_err().to_string();
    assert_eq!(error, "the keeper of `sh` ended without a report");
    await_true(
        || mark.living().is_empty(),
        "the program outlives its keeper",
    );
}

#[tokio::test]
async fn a_polite_word_to_the_keeper_is_a_cancel() {
    let mark = Mark::new();
    let output = mark
        .shell("kill -INT $PPID; sleep 1000")
        .run_to_end()
        .await
        .unwrap();
    assert_eq!(output.exit.stopped, Some(Stopped::Cancelled));
    mark.assert_gone();
}

#[tokio::test]
async fn cpu_time_and_memory_of_descendants_count() {
    let script = "(setsid sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'); exit 0";
    check(script, as_it_is, |exit| {
        assert!(
            exit.cpu.unwrap().total() >= Duration::from_millis(10),
            "{exit:?}"
        );
        assert!(exit.peak_memory.unwrap().bytes > 500 << 10);
    })
    .await;
}
