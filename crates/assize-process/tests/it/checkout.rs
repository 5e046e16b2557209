//! One commit of a repository, without the later ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use assize_process::workspace::Workspaces;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn repository(directory: &Path) {
    fs::create_dir(directory).unwrap();
    git(directory, &["init", "--quiet"]);
    for state in ["problem", "solution"] {
        fs::write(directory.join("file"), state).unwrap();
        git(directory, &["add", "."]);
        git(directory, &["commit", "--quiet", "-m", state]);
        git(directory, &["tag", state]);
    }
}

#[tokio::test]
async fn a_revision_is_checked_out_alone() {
    let root = tempfile::tempdir().unwrap();
    let source = root.path().join("a source");
    repository(&source);
    let workspaces = Workspaces::open(&root.path().join("work")).unwrap();
    for revision in ["problem", "main~1"] {
        let workspace = workspaces.checkout(&source, revision).await.unwrap();
        assert_eq!(
            fs::read_to_string(workspace.path().join("file")).unwrap(),
            "problem"
        );
        assert_eq!(
            git(workspace.path(), &["log", "--all", "--format=%s"]),
            "problem"
        );
        assert_eq!(git(workspace.path(), &["status", "--porcelain"]), "");
        assert_eq!(
            git(
                workspace.path(),
                &["cat-file", "-t", &git(&source, &["rev-parse", "solution"])]
            ),
            ""
        );
    }
}

#[tokio::test]
async fn an_unknown_revision_is_said() {
    let root = tempfile::tempdir().unwrap();
    let source = root.path().join("source");
    repository(&source);
    let workspaces = Workspaces::open(&root.path().join("work")).unwrap();
    let error = workspaces
        .checkout(&source, "no-such")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("git cannot check out `no-such` of "),
        "{error}"
    );
    assert!(
        workspaces
            .checkout(&source, "--upload-pack=touch x")
            .await
            .is_err()
    );
}
