//! Takes the versions of the engine out of Cargo.lock, so that `--version` cannot drift.

use std::path::Path;

fn main() {
    let manifest_dir = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| ".".to_owned());
    let path = Path::new(&manifest_dir).join("Cargo.lock");
    println!("cargo:rerun-if-changed={}", path.display());
    let lock = std::fs::read_to_string(&path).unwrap_or_default();
    for name in ["lancedb", "lance"] {
        let version = locked(&lock, name).unwrap_or("unknown");
        println!(
            "cargo:rustc-env=LOCKED_{}={version}",
            name.to_ascii_uppercase()
        );
    }
}

/// The version of a package in the text of a Cargo.lock.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    after.split('"').next()
}
