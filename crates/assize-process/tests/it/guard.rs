//! Actions that a guarded program can take, and those it cannot. Skipped by name where the kernel has no Landlock.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use assize_process::workspace::{Method, Scratch, ScratchRoom, Workspaces};
use assize_process::{Command, Guard, GuardVersion, Output, Surroundings};

struct Place {
    _root: tempfile::TempDir,
    secret: PathBuf,
    own: PathBuf,
    guard: Guard,
}

/// A hidden directory with a file, and one of the program's own.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn place() -> Option<Place> {
    match GuardVersion::of_this_machine() {
        Ok(version) if version >= GuardVersion::WHOLE => {}
        Ok(version) => {
            eprintln!(
                "skipped: Landlock here is version {}, the tests need 6",
                version.0
            );
            return None;
        }
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return None;
        }
    }
    let root = tempfile::tempdir().unwrap();
    let (secret, own) = (root.path().join("secret"), root.path().join("own"));
    for directory in [&secret, &own] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(secret.join("answer"), "forty-two").unwrap();
    let guard = Guard {
        surroundings: Arc::new(Surroundings::without(&[root.path().to_owned()])),
        writable: vec![own.clone()],
        ..Guard::default()
    };
    Some(Place {
        _root: root,
        secret,
        own,
        guard,
    })
}

impl Place {
    async fn run(&self, script: &str) -> Output {
        let command = Command::new("sh", &self.own)
            .args(["-c", script, "sh"])
            .arg(&self.secret)
            .pass_usual_env()
            .guarded(self.guard.clone());
        command.run_to_end().await.unwrap()
    }

    /// The script says `got in` where it gets what it must not.
    async fn refuses(&self, script: &str) {
        let output = self.run(script).await;
        let said = format!("{}{}", output.stdout.text(), output.stderr.text());
        assert!(
            !said.contains("got in") && !said.contains("forty-two"),
            "{script}: {said}"
        );
    }

    async fn allows(&self, script: &str) {
        let output = self.run(script).await;
        assert!(
            output.exit.is_success(),
            "{script}: {}{}",
            output.stdout.text(),
            output.stderr.text()
        );
    }
}

#[tokio::test]
async fn a_guarded_program_reads_no_hidden_file() {
    let Some(place) = place() else { return };
    for script in [
        "cat $1/answer",
        "cat ../secret/answer",
        "ls $1 && echo got in",
        "ln -s $1/answer link; cat link",
        "ln $1/answer hard && echo got in; cat hard",
        "mv $1/answer mine && echo got in",
        "cat /proc/self/root$1/answer",
        "cd $1 && cat answer",
        "cat /proc/$PPID/cwd/secret/answer /proc/$PPID/root$1/answer",
        "cat /proc/$PPID/environ && echo got in",
        "cat /proc/$PPID/maps && echo got in",
        "cat /proc/$PPID/fd/* && echo got in",
    ] {
        place.refuses(script).await;
    }
}

#[tokio::test]
async fn a_guarded_program_changes_nothing_outside() {
    let Some(place) = place() else { return };
    for script in [
        "echo x > $1/answer && echo got in",
        "echo x >> $1/answer && echo got in",
        "rm -f $1/answer && echo got in",
        "touch $1/new && echo got in",
        "truncate -s 0 $1/answer && echo got in",
        "echo x > /tmp/assize-guard-test && echo got in",
        "mkdir ../beside && echo got in",
    ] {
        place.refuses(script).await;
    }
    assert_eq!(
        fs::read_to_string(place.secret.join("answer")).unwrap(),
        "forty-two"
    );
}

#[tokio::test]
async fn a_guarded_program_does_not_reach_other_processes() {
    let Some(place) = place() else { return };
    place.refuses("kill -0 $PPID && echo got in").await;
    place
        .refuses(&format!("kill -0 {} && echo got in", std::process::id()))
        .await;
    place
        .allows("sleep 5 & kill $!; wait $!; test $? -eq 143")
        .await;
}

#[tokio::test]
async fn a_guarded_program_inherits_no_open_file() {
    let Some(place) = place() else { return };
    let open = fs::File::open(place.secret.join("answer")).unwrap();
    // As a careless library would: open in every program that is started.
    let flags = nix::fcntl::FdFlag::empty();
    nix::fcntl::fcntl(&open, nix::fcntl::FcntlArg::F_SETFD(flags)).unwrap();
    let script = format!(
        "cat <&{0}; cat /dev/fd/{0}; cat /proc/self/fd/{0}",
        open.as_raw_fd()
    );
    place.refuses(&script).await;
    place
        .allows("test \"$(ls /proc/self/fd | tr '\\n' ' ')\" = '0 1 2 3 '")
        .await;
}

#[tokio::test]
async fn a_guarded_program_does_its_usual_work() {
    let Some(place) = place() else { return };
    for script in [
        "echo x > a && mkdir -p b/c && mv a b/c/a && ln b/c/a b/hard && ln -s a b/link && cat b/hard",
        "echo x > /dev/null && head -c1 /dev/urandom > r && echo y > /dev/stderr && cat /dev/fd/0",
        "cat <<END | grep -q text\ntext\nEND",
        "test -r /etc/passwd && cat /proc/self/status /proc/meminfo > /dev/null && ls /usr/bin > /dev/null",
        "mkfifo p && (echo x > p &) && read y < p && test $y = x",
        "rm -rf b && pwd && : > r && cp /bin/sh copy && ./copy -c true",
        "echo x > /dev/shm/assize-$$ && rm /dev/shm/assize-$$",
    ] {
        place.allows(script).await;
    }
}

#[tokio::test]
async fn files_are_shown_one_by_one() {
    let Some(mut place) = place() else { return };
    fs::write(place.secret.join("tool"), "#!/bin/sh\necho tool").unwrap();
    fs::write(place.secret.join("data"), "data").unwrap();
    place.guard.shown = vec![place.secret.join("tool")];
    place.allows("sh $1/tool && cat $1/tool").await;
    place.refuses("cat $1/data && echo got in").await;
    place.refuses("echo x > $1/tool && echo got in").await;
}

#[tokio::test]
async fn connections_are_limited_to_ports() {
    let Some(mut place) = place() else { return };
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (allowed, other) = (listen(), listen());
    let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
    place.guard.ports = Some(vec![port(&allowed)]);
    let connect = |port: u16| {
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'")
    };
    place.allows(&connect(port(&allowed))).await;
    place
        .refuses(&format!("{} && echo got in", connect(port(&other))))
        .await;
}

#[tokio::test]
async fn a_guarded_program_works_in_workspaces_of_every_method() {
    let Some(place) = place() else { return };
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::open(root.path()).unwrap();
    for method in [
        Method::Overlay,
        Method::Reflink,
        Method::Recycle,
        Method::Copy,
    ] {
        if workspaces.choose(method).is_err() {
            continue;
        }
        let draft = workspaces.copy_of(&place.secret).unwrap();
        fs::create_dir(draft.path().join("directory")).unwrap();
        let layer = Arc::new(draft.into_layer(method).unwrap());
        let (mine, other) = (layer.view().await.unwrap(), layer.view().await.unwrap());
        let guard = Guard {
            surroundings: Arc::new(Surroundings::without(&[root.path().to_owned()])),
            writable: vec![mine.path().parent().unwrap().to_owned()],
            ..Guard::default()
        };
        let script = "grep -q forty answer && echo new > new && echo more >> answer && mv new directory/ && rm answer \
                      && rmdir ../nothing 2>/dev/null; cd .. && mv workspace w && mv w workspace && cat workspace/directory/new \
                      && ! cat $1/answer";
        let output = Command::new("sh", mine.path())
            .args(["-c", script, "sh"])
            .arg(other.path())
            .pass_usual_env()
            .guarded(guard)
            .run_to_end()
            .await
            .unwrap();
        let said = format!("{}{}", output.stdout.text(), output.stderr.text());
        assert!(output.exit.is_success(), "{method:?}: {said}");
        assert!(!said.contains("forty"), "{method:?}: {said}");
        assert!(mine.changes().unwrap().len() >= 2, "{method:?}");
    }
}

#[tokio::test]
async fn what_is_replaced_between_starts_stays_readable() {
    let Some(place) = place() else { return };
    // Beside the hidden directory, made anew before every start, as a hook may do.
    let beside = tempfile::tempdir().unwrap();
    let (hidden, built) = (beside.path().join("hidden"), beside.path().join("built"));
    fs::create_dir_all(&hidden).unwrap();
    fs::write(hidden.join("answer"), "forty-two").unwrap();
    fs::create_dir_all(&built).unwrap();
    let guard = Guard {
        surroundings: Arc::new(Surroundings::without(std::slice::from_ref(&hidden))),
        writable: vec![place.own.clone()],
        ..Guard::default()
    };
    for round in 0..6 {
        fs::remove_dir_all(&built).unwrap();
        fs::create_dir_all(&built).unwrap();
        fs::write(built.join("round"), round.to_string()).unwrap();
        let command = Command::new("sh", &place.own)
            .args(["-c", "cat \"$0/round\"; cat \"$1/answer\""])
            .arg(&built)
            .arg(&hidden)
            .pass_usual_env()
            .guarded(guard.clone());
        let output = command.run_to_end().await.unwrap();
        assert_eq!(output.stdout.text(), round.to_string());
        // Time for the rules of the next start to be made.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_one_program_may_change_is_nobody_elses() {
    let Some(place) = place() else { return };
    let root = place.own.parent().unwrap().to_owned();
    let owned = |number: usize| root.join(format!("own-{number}"));
    let mut starts = tokio::task::JoinSet::new();
    for number in 0..12 {
        fs::create_dir(owned(number)).unwrap();
        let guard = Guard {
            writable: vec![owned(number)],
            ..place.guard.clone()
        };
        let script = "echo $1 > own-file; sleep 0.2; for n in 0 1 2 3 4 5 6 7 8 9 10 11; do \
                      [ $n = $1 ] || { cat ../own-$n/own-file; echo x > ../own-$n/was-here; }; done 2> /dev/null";
        let command = Command::new("sh", owned(number))
            .args(["-c", script, "sh"])
            .arg(number.to_string())
            .pass_usual_env()
            .guarded(guard);
        starts.spawn(async move { (number, command.run_to_end().await.unwrap()) });
    }
    while let Some(done) = starts.join_next().await {
        let (_, output) = done.unwrap();
        assert_eq!(output.stdout.text(), "");
    }
    for number in 0..12 {
        assert_eq!(
            fs::read_to_string(owned(number).join("own-file")).unwrap(),
            format!("{number}\n")
        );
        assert!(!owned(number).join("was-here").exists());
    }
}

/// Rules are used again from start to start. What an earlier program was allowed must not come with them.
#[tokio::test]
async fn what_an_earlier_program_was_allowed_is_not_inherited() {
    let Some(place) = place() else { return };
    let root = place.own.parent().unwrap().to_owned();
    fs::write(place.secret.join("tool"), "a tool").unwrap();
    for round in 0..4 {
        let (own, other) = (root.join(format!("{round}")), root.join("other"));
        for directory in [&own, &other] {
            let _ = fs::create_dir(directory);
            fs::write(directory.join("file"), "mine").unwrap();
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let allowed = Guard {
            shown: vec![place.secret.join("tool")],
            writable: vec![own.clone(), other.clone()],
            ports: Some(vec![port]),
            ..place.guard.clone()
        };
        let run = async |guard: Guard, script: &str| {
            let command = Command::new("sh", &root)
                .args(["-c", script, "sh"])
                .args([&own, &other, &place.secret.join("tool")])
                .arg(port.to_string())
                .pass_usual_env()
                .guarded(guard);
            let output = command.run_to_end().await.unwrap();
            format!("{}{}", output.stdout.text(), output.stderr.text())
        };
        let script = "cat $1/file $2/file $3; python3 -c 'import socket, sys; socket.create_connection((\"127.0.0.1\", int(sys.argv[1]))); print(\"connected\")' $4";
        assert_eq!(
            run(allowed.clone(), script).await,
            "minemineatoolconnected\n".replace("atool", "a tool")
        );
        for less in [
            Guard {
                shown: Vec::new(),
                ..allowed.clone()
            },
            Guard {
                writable: vec![own.clone()],
                ..allowed.clone()
            },
            Guard {
                ports: Some(Vec::new()),
                ..allowed.clone()
            },
        ] {
            let said = run(less.clone(), script).await;
            let found = ["minemine", "a tool", "connected"].map(|word| said.contains(word));
            let expected = [
                less.writable.len() == 2,
                !less.shown.is_empty(),
                less.ports != Some(Vec::new()),
            ];
            assert_eq!(found, expected, "{said}");
        }
    }
}

/// A copy that serves again may come to another program than the rules that it had before.
#[tokio::test]
async fn recycled_workspaces_belong_to_one_program_at_a_time() {
    let Some(place) = place() else { return };
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::open(root.path()).unwrap();
    let draft = workspaces.copy_of(&place.secret).unwrap();
    let layer = Arc::new(draft.into_layer(Method::Recycle).unwrap());
    let surroundings = Arc::new(Surroundings::without(&[root.path().to_owned()]));
    for _ in 0..4 {
        let views = [layer.view().await.unwrap(), layer.view().await.unwrap()];
        for (mine, other) in [(&views[0], &views[1]), (&views[1], &views[0])] {
            let guard = Guard {
                surroundings: Arc::clone(&surroundings),
                writable: vec![mine.place().to_owned()],
                ..Guard::default()
            };
            let command = Command::new("sh", mine.path())
                .args(["-c", "cat answer && ! cat \"$0/answer\" 2>/dev/null"])
                .arg(other.path())
                .pass_usual_env()
                .guarded(guard);
            let output = command.run_to_end().await.unwrap();
            assert_eq!(output.stdout.text(), "forty-two");
            assert!(output.exit.is_success());
        }
        // They come back in the other order.
        let [first, second] = views;
        drop(first);
        drop(second);
    }
}

/// Directories of sessions that serve again keep nothing for the next one, and belong to it alone.
#[tokio::test]
async fn directories_that_serve_again_belong_to_one_program_at_a_time() {
    let Some(place) = place() else { return };
    let hidden = assize_process::workspace::default_root().unwrap();
    let surroundings = Arc::new(Surroundings::without(&[hidden]));
    let _room = ScratchRoom::open().unwrap();
    for round in 0..6 {
        let mut pair = [Scratch::new().unwrap(), Scratch::new().unwrap()];
        for scratch in &mut pair {
            scratch.allow_reuse();
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        }
        let turn = round % 2;
        for (mine, other) in [(turn, 1 - turn), (1 - turn, turn)] {
            let (mine, other) = (&pair[mine], &pair[other]);
            let guard = Guard {
                surroundings: Arc::clone(&surroundings),
                writable: vec![mine.path().to_owned()],
                ..Guard::default()
            };
            let script = "echo x > \"$0/file\" && ! ls \"$1\" 2>/dev/null && ! echo x 2>/dev/null > \"$1/was-here\"";
            let command = Command::new("sh", &place.own)
                .args(["-c", script])
                .args([mine.path(), other.path()])
                .pass_usual_env()
                .guarded(guard);
            let output = command.run_to_end().await.unwrap();
            assert!(output.exit.is_success(), "{}", output.stderr.text());
        }
        assert!(
            pair.iter()
                .all(|scratch| !scratch.path().join("was-here").exists())
        );
    }
}
