//! `cargo xtask test`: every check, in the order in which they are cheap to mend.

use anyhow::{Context, Result, anyhow};

use crate::cargo::{self, Cargo};
use crate::demo;

/// A part of the checks that is one cargo command.
struct Part {
    name: &'static str,
    arguments: &'static [&'static str],
    alone: &'static str,
}

const PARTS: [Part; 3] = [
    Part {
        name: "formatting",
        arguments: &["fmt", "--all", "--check"],
        alone: "cargo fmt --all --check (cargo fmt --all mends it)",
    },
    Part {
        name: "clippy",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        alone: "cargo xtask cargo -- clippy --workspace --all-targets -- -D warnings",
    },
    Part {
        name: "tests",
        arguments: &["test", "--workspace", "--locked"],
        alone: "cargo xtask cargo -- test --workspace (add --test FILE or a name for one of them)",
    },
];

/// Runs every part and stops at the first that fails.
pub fn run(cargo: &Cargo) -> Result<()> {
    let count = PARTS.len() + 1;
    for (index, part) in PARTS.iter().enumerate() {
        announce(index, count, part.name);
        // Snapshots are compared, never written: an unreviewed one is a failure here.
        let mut command = cargo.command(part.arguments);
        command
            .env("INSTA_UPDATE", "no")
            .env("CI", "true")
            .env_remove("INSTA_FORCE_PASS");
        cargo::check(&mut command).map_err(|error| failed(part.name, part.alone, &error))?;
    }
    announce(PARTS.len(), count, "demo");
    let folder = demo::Folder::new(None)?;
    demo::run(cargo, &folder).map_err(|error| failed("demo", "cargo xtask demo", &error))?;
    folder
        .remove()
        .context("cannot remove the folder of the demo")?;
    println!("\nAll {count} parts passed.");
    Ok(())
}

fn announce(index: usize, count: usize, name: &str) {
    println!("\n== {} of {count}: {name}", index + 1);
}

fn failed(name: &str, alone: &str, error: &anyhow::Error) -> anyhow::Error {
    anyhow!("the part \"{name}\" failed: {error:#}\n  alone: {alone}")
}
