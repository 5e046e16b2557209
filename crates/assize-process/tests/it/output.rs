//! Output of any size and kind, in bounded memory.

use std::time::Duration;

use assize_process::{Bound, LineSplitter, Status, Stream};

use crate::testbed::Mark;

const SMALL: Bound = Bound {
    head: 1000,
    tail: 100,
};

#[tokio::test]
async fn both_streams_are_kept_apart_and_stamped() {
    let mut running = Mark::new()
        .shell("echo out; sleep 0.05; echo err >&2")
        .start()
        .await
        .unwrap();
    let first = running.next().await.unwrap().unwrap();
    let second = running.next().await.unwrap().unwrap();
    assert_eq!(
        (first.stream, first.bytes.as_slice()),
        (Stream::Stdout, &b"out\n"[..])
    );
    assert_eq!(
        (second.stream, second.bytes.as_slice()),
        (Stream::Stderr, &b"err\n"[..])
    );
    assert!(first.at > Duration::ZERO && second.at > first.at);
    assert!(running.next().await.unwrap().is_none());
    assert!(running.wait().await.unwrap().is_success());
}

#[tokio::test]
async fn a_gigabyte_costs_no_memory_and_does_not_hold_up_the_program() {
    let script = "head -c 1000000000 /dev/zero; printf end; grep VmHWM /proc/$PPID/status >&2";
    let before = resident();
    let output = Mark::new()
        .shell(script)
        .bound(SMALL)
        .run_to_end()
        .await
        .unwrap();
    assert!(output.exit.is_success());
    assert_eq!(
        (output.exit.stdout.seen, output.exit.stdout.kept),
        (1_000_000_003, 1100)
    );
    assert_eq!(output.stdout.cut, 1_000_000_003 - 1100);
    assert_eq!(
        (output.stdout.head.len(), output.stdout.tail.len()),
        (1000, 100)
    );
    assert!(output.stdout.text().ends_with("\0end"));
    let keeper: u64 = output
        .stderr
        .text()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(keeper < 16 << 10, "the keeper grew to {keeper} kB");
    // Other tests run in this process too, so this bound is loose.
    assert!(resident() < before + (200 << 10));
}

#[tokio::test]
async fn a_line_without_end_costs_no_memory() {
    let bound = Bound {
        head: 64 << 20,
        tail: 0,
    };
    let mut running = Mark::new()
        .shell("head -c 50000000 /dev/zero; echo; echo last")
        .bound(bound)
        .start()
        .await
        .unwrap();
    let (mut splitter, mut lines) = (LineSplitter::new(10), Vec::new());
    while let Some(chunk) = running.next().await.unwrap() {
        lines.extend(splitter.push(&chunk));
    }
    assert_eq!((lines[0].bytes.len(), lines[0].cut), (10, 49_999_990));
    assert_eq!(lines[1].text(), "last");
    assert!(splitter.finish().is_none());
}

#[tokio::test]
async fn invalid_utf8_and_escape_codes_arrive_untouched() {
    let output = Mark::new()
        .shell(r"printf '\377\033[31mred\000'")
        .run_to_end()
        .await
        .unwrap();
    assert_eq!(output.stdout.head, b"\xff\x1b[31mred\0");
    assert_eq!(output.stdout.text(), "\u{fffd}\u{1b}[31mred\0");
}

#[tokio::test]
async fn a_program_may_close_its_stdout_early() {
    let output = Mark::new()
        .shell("echo first; exec >&-; sleep 0.1; echo late >&2; exit 7")
        .run_to_end()
        .await
        .unwrap();
    assert_eq!(output.exit.status, Some(Status::Exited(7)));
    assert_eq!(
        (output.stdout.text(), output.stderr.text()),
        ("first\n".into(), "late\n".into())
    );
    assert!(output.exit.wall >= Duration::from_millis(100));
}

#[tokio::test]
async fn the_last_words_before_a_kill_are_kept() {
    let output = Mark::new()
        .shell("echo last words; kill -9 $$")
        .run_to_end()
        .await
        .unwrap();
    assert_eq!(output.stdout.text(), "last words\n");
}

#[tokio::test]
async fn a_host_that_does_not_read_holds_the_program_but_not_the_clock() {
    let command = Mark::new()
        .shell("head -c 5000000 /dev/zero; sleep 1000")
        .timeout(Duration::from_millis(300));
    let mut running = command.start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let exit = running.wait().await.unwrap();
    assert!(exit.stopped.is_some());
    assert!(exit.stdout.seen < 5_000_000);
}

/// Kilobytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
