//! Hundreds of programs at once.

use assize_process::{Command, Stdin, raise_open_files};

use crate::testbed::Mark;

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_run_at_once() {
    raise_open_files().unwrap();
    let mark = Mark::new();
    let mut all = tokio::task::JoinSet::new();
    for number in 0..500 {
        let command = mark.shell("read word; echo $word").stdin(Stdin::Piped);
        all.spawn(async move { (number, command.start().await.unwrap()) });
    }
    let mut running = all.join_all().await;
    assert_eq!(mark.living().len(), 500);
    let mut ends = tokio::task::JoinSet::new();
    for (number, mut program) in running.drain(..) {
        ends.spawn(async move {
            let mut stdin = program.take_stdin().unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{number}\n").as_bytes())
                .await
                .unwrap();
            let chunk = program.next().await.unwrap().unwrap();
            assert_eq!(chunk.bytes, format!("{number}\n").as_bytes());
            assert!(program.wait().await.unwrap().is_success());
        });
    }
    ends.join_all().await;
    mark.assert_gone();
}

#[tokio::test]
async fn programs_get_the_limit_of_open_files_the_host_began_with() {
    let (soft, _) =
        nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    raise_open_files().unwrap();
    let output = Command::from_argv(["sh", "-c", "ulimit -n"], "/")
        .run_to_end()
        .await
        .unwrap();
    let limit: u64 = output.stdout.text().trim().parse().unwrap();
    assert!(limit <= soft);
}
