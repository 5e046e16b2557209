//! The environment of a program at its start, and the errors when it cannot start.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use assize_process::{Command, Error, Stdin};
use tokio::io::AsyncWriteExt;

use crate::testbed::Mark;

async fn stdout(command: Command) -> String {
    let output = command.run_to_end().await.unwrap();
    assert!(output.exit.is_success(), "{output:?}");
    output.stdout.text().into_owned()
}

async fn refusal(command: Command) -> (String, String) {
    let error: Error = command.start().await.unwrap_err();
    (
        error.to_string(),
        error.hint().unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let command = Command::new("/usr/bin/env", "/")
        .env("B", "two words")
        .env("A", "");
    assert_eq!(stdout(command).await, "B=two words\nA=\n");
    assert_eq!(stdout(Command::new("env", "/")).await, "");
}

#[tokio::test]
async fn the_program_starts_in_the_given_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let shown = stdout(Command::new("/bin/pwd", &directory)).await;
    assert_eq!(shown.trim_end(), directory.to_str().unwrap());
}

#[tokio::test]
async fn stdin_is_closed_unless_used() {
    assert_eq!(
        stdout(Mark::new().shell("cat && readlink /proc/$$/fd/0")).await,
        "/dev/null\n"
    );
}

#[tokio::test]
async fn bytes_arrive_on_stdin() {
    let bytes = vec![b'x'; 3 << 20];
    let command = Mark::new().shell("wc -c").stdin(Stdin::Bytes(bytes));
    assert_eq!(stdout(command).await.trim(), (3 << 20).to_string());
}

#[tokio::test]
async fn a_program_that_does_not_read_its_stdin_is_no_error() {
    assert_eq!(
        stdout(
            Mark::new()
                .shell("echo done")
                .stdin(Stdin::Bytes(vec![0; 3 << 20]))
        )
        .await,
        "done\n"
    );
}

#[tokio::test]
async fn a_pipe_lets_the_host_talk() {
    let mut running = Mark::new()
        .shell("read a; echo got $a; read b; echo got $b")
        .stdin(Stdin::Piped)
        .start()
        .await
        .unwrap();
    let mut stdin = running.take_stdin().unwrap();
    for word in ["one", "two"] {
        stdin
            .write_all(format!("{word}\n").as_bytes())
            .await
            .unwrap();
        let answer = running.next().await.unwrap().unwrap();
        assert_eq!(answer.bytes, format!("got {word}\n").as_bytes());
    }
    assert!(running.wait().await.unwrap().is_success());
}

#[tokio::test]
async fn nothing_but_the_three_files_is_open() {
    let script =
        "i=0; while [ $i -lt 100 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i + 1)); done; :";
    let shown = stdout(Mark::new().shell(script)).await;
    assert_eq!(shown, "0\n1\n2\n");
}

#[tokio::test]
async fn no_signal_is_ignored_or_blocked() {
    let command = Command::from_argv(["grep", "^Sig[BI]", "/proc/self/status"], "/");
    for line in stdout(command).await.lines() {
        let set = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
        // Beyond the first 31 are those that the C library keeps for itself.
        assert_eq!(set & 0x7fff_ffff, 0, "{line}");
    }
}

#[tokio::test]
async fn arguments_of_the_program_are_not_seen_at_the_keeper() {
    let shown = stdout(
        Mark::new().shell("tr '\\0' ' ' < /proc/$PPID/cmdline; tr '\\0' ' ' < /proc/$PPID/environ"),
    )
    .await;
    assert_eq!(shown, "assize-keeper __keeper ");
}

#[tokio::test]
async fn a_missing_program_is_explained() {
    let (error, hint) =
        refusal(Command::new("no-such-agent", "/tmp").env("PATH", "/usr/bin:/bin")).await;
    assert_eq!(error, "cannot start `no-such-agent` in `/tmp`");
    assert_eq!(hint, "it is in no directory of PATH");
    let (_, hint) = refusal(Command::new("./no-such-agent", "/tmp")).await;
    assert_eq!(hint, "there is no file `/tmp/./no-such-agent`");
}

#[tokio::test]
async fn a_missing_directory_is_explained() {
    let (_, hint) = refusal(Command::new("/bin/true", "/no/such/place")).await;
    assert_eq!(hint, "there is no directory `/no/such/place`");
}

#[tokio::test]
async fn a_file_that_is_no_program_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let shown = path.display();
    let refused = async || refusal(Command::new(&path, "/")).await.1;

    fs::write(&path, "#!/no/such/interpreter -x\n").unwrap();
    assert_eq!(
        refused().await,
        format!("`{shown}` is not executable: `chmod +x {shown}`")
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        refused().await,
        format!("`{shown}` asks for the interpreter `/no/such/interpreter`, which is not there")
    );
    fs::write(&path, "just text").unwrap();
    assert!(refused().await.contains("no program for this machine"));
}

#[tokio::test]
async fn an_empty_or_too_long_command_is_explained() {
    let (_, hint) = refusal(Command::from_argv(Vec::<String>::new(), "/")).await;
    assert_eq!(hint, "the command is empty: name a program");
    let (_, hint) = refusal(Command::new("/bin/echo", "/").arg("x".repeat(3 << 20))).await;
    assert!(hint.contains("pass long texts on stdin"), "{hint}");
    let (_, hint) = refusal(Command::new("/bin/echo", "/").arg("a\0b")).await;
    assert!(hint.contains("NUL byte"), "{hint}");
}

/// A host may be replaced on disk while it runs, by an update or a build.
#[test]
fn a_host_without_its_file_still_has_a_keeper() {
    let directory = tempfile::tempdir().unwrap();
    let host = directory.path().join("host");
    fs::copy(std::env::current_exe().unwrap(), &host).unwrap();
    let role = "starting::host_that_loses_its_file";
    let output = std::process::Command::new(&host)
        .args(["--exact", role, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!host.exists());
}

#[tokio::test]
#[ignore = "started by the test that looks at it"]
async fn host_that_loses_its_file() {
    let own = std::env::current_exe().unwrap();
    // All ignored tests may be started by hand; the real binary must survive that.
    if own.ends_with("host") {
        fs::remove_file(own).unwrap();
        assert_eq!(stdout(Mark::new().shell("echo alive")).await, "alive\n");
    }
}
