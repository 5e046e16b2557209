//! Views of a prepared directory: each begins as the first one did, whatever was done in those before.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;

use assize_process::workspace::{Method, Workspaces};
use rustix::fs::{XattrFlags, llistxattr_query, setxattr};

/// Mode, owner, links and the size of the names of all attributes.
fn look(path: &Path) -> [u64; 5] {
    let metadata = fs::symlink_metadata(path).unwrap();
    let links = if metadata.is_dir() {
        0
    } else {
        metadata.nlink()
    };
    let attributes = llistxattr_query(path).unwrap_or_default() as u64;
    let (user, group) = (metadata.uid().into(), metadata.gid().into());
    [metadata.mode().into(), user, group, links, attributes]
}

/// Not every filesystem takes an attribute, and only root may give files away: then there is less to compare.
fn mark(path: &Path, name: &str, owner: u32) {
    let _ = setxattr(path, name, b"1", XattrFlags::empty());
    let _ = chown(path, Some(owner), Some(owner));
}

#[tokio::test]
async fn owners_and_attributes_of_one_attempt_do_not_reach_the_next() {
    const PATHS: [&str; 5] = ["", "dir", "dir/file", "marked", "twin"];
    for method in [Method::Copy, Method::Recycle] {
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(root.path()).unwrap();
        let draft = workspaces.blank().unwrap();
        let prepared = draft.path().to_owned();
        fs::create_dir(prepared.join("dir")).unwrap();
        fs::write(prepared.join("dir/file"), "x").unwrap();
        fs::hard_link(prepared.join("dir/file"), prepared.join("twin")).unwrap();
        fs::create_dir(prepared.join("marked")).unwrap();
        mark(&prepared.join("marked"), "user.prepared", 5);
        mark(&prepared.join("dir/file"), "user.prepared", 5);
        fs::set_permissions(prepared.join("marked"), fs::Permissions::from_mode(0o2775)).unwrap();
        let layer = Arc::new(draft.into_layer(method).unwrap());
        let expected = PATHS.map(|path| look(&prepared.join(path)));
        assert_eq!(expected[4][3], 1, "every name is a file of its own");
        for _ in 0..3 {
            let view = layer.view().await.unwrap();
            let found = PATHS.map(|path| look(&view.path().join(path)));
            assert_eq!(found, expected, "{method:?}");
            for path in PATHS {
                mark(&view.path().join(path), "user.attempt", 1234);
            }
            fs::set_permissions(view.path(), fs::Permissions::from_mode(0o711)).unwrap();
            view.remove().unwrap();
        }
    }
}
