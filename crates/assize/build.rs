//! Tells the tests whether the seeds lie beside the checkout; they are read in place, never copied.

fn main() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/seeds");
    println!("cargo::rustc-check-cfg=cfg(has_seeds)");
    println!("cargo::rerun-if-changed={seeds}");
    if std::path::Path::new(seeds).is_dir() {
        println!("cargo::rustc-cfg=has_seeds");
    }
}
