//! The TypeScript kit with its compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the TypeScript kit, with its compiler installed at the pinned version.
fn kit() -> PathBuf {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript");
    let kit = kit.canonicalize().unwrap();
    INSTALLED.get_or_init(|| {
        if !kit.join("node_modules/typescript").exists() {
            let installed = Command::new("npm")
                .args(["ci", "--no-audit", "--no-fund"])
                .current_dir(&kit)
                .output()
                .unwrap();
            assert!(installed.status.success(), "{installed:?}");
        }
    });
    kit
}

/// Lets `import … from "assize"` find the kit, and compiles every `.ts` file of the directory.
pub(crate) fn compile(directory: &Path) {
    let kit = kit();
    let modules = directory.join("node_modules");
    std::fs::create_dir_all(&modules).unwrap();
    if !modules.join("assize").exists() {
        std::os::unix::fs::symlink(&kit, modules.join("assize")).unwrap();
    }
    if !directory.join("package.json").exists() {
        std::fs::write(directory.join("package.json"), r#"{ "type": "module" }"#).unwrap();
    }
    let sources: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ts"))
        .collect();
    let compiler = kit.join("node_modules/typescript/bin/tsc");
    let types = kit.join("node_modules/@types");
    let output = Command::new("node")
        .arg(compiler)
        .args([
            "--strict",
            "--target",
            "es2022",
            "--module",
            "nodenext",
            "--types",
            "node",
            "--typeRoots",
        ])
        .arg(types)
        .args(sources)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
