//! Tells the tests whether the published data set lies beside the checkout; it is read in place, never copied.

fn main() {
    let published = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/fixtures/published"
    );
    println!("cargo::rustc-check-cfg=cfg(has_published)");
    println!("cargo::rerun-if-changed={published}");
    if std::path::Path::new(published).is_dir() {
        println!("cargo::rustc-cfg=has_published");
    }
}
