//! `cargo xtask image`: the image, from a binary that cargo builds on this machine.
//!
//! `docker build .` compiles inside the Rust image instead. This way is the one for the tests, and
//! for machines that reach no registry of images: the base is then made from Debian's packages.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{Cargo, check, root};

/// The base that the Dockerfile names.
const BASE: &str = "debian:bookworm-slim";

/// What to build.
#[derive(Debug, clap::Args)]
pub struct Image {
    /// The image's name and tag.
    #[arg(long, default_value = "lancedb-guard:dev")]
    tag: String,
    /// Build in release mode and with object stores, as an image for use should be; a first
    /// build takes the better part of an hour on 2 cores.
    #[arg(long)]
    release: bool,
}

/// Builds the image.
pub fn run(cargo: &Cargo, image: &Image) -> Result<()> {
    if !answers(&["version"]) {
        bail!(
            "no Docker engine answers (`docker version` fails): start one, or set DOCKER_HOST to \
             its socket (Debian: apt-get install docker.io)"
        );
    }
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    if !answers(&["image", "inspect", BASE]) && !answers(&["pull", "--quiet", BASE]) {
        make_base(&folder.path().join("base"))?;
    }
    let context = folder.path().join("context");
    std::fs::create_dir(&context).context("cannot make the build context")?;
    let binary = cargo.build_guard(image.release)?;
    // Symbols are half of the file, and a panic is reported without them.
    check(
        Command::new("strip")
            .arg("-o")
            .arg(context.join("lancedb-guard"))
            .arg(binary),
    )?;
    check(
        Command::new("docker")
            .args(["build", "--target", "prebuilt", "--tag", &image.tag])
            .arg("--build-arg")
            .arg(format!("VERSION={}", env!("CARGO_PKG_VERSION")))
            .arg("--file")
            .arg(root().join("Dockerfile"))
            .arg(&context),
    )?;
    println!("\nBuilt {}.", image.tag);
    Ok(())
}

/// Whether a docker command succeeds; what it prints is dropped.
fn answers(arguments: &[&str]) -> bool {
    Command::new("docker")
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Makes the base image out of Debian's packages, where it can't be pulled.
fn make_base(folder: &Path) -> Result<()> {
    println!("{BASE} can't be pulled; making it with debootstrap");
    check(
        Command::new("debootstrap")
            .args(["--variant=minbase", "--include=ca-certificates", "bookworm"])
            .arg(folder),
    )
    .context("debootstrap (Debian: apt-get install debootstrap, run as root) made no base")?;
    let mut tar = Command::new("tar")
        .arg("-C")
        .arg(folder)
        .args(["-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tar")?;
    let files = tar.stdout.take().context("tar has no output")?;
    check(
        Command::new("docker")
            .args(["import", "-", BASE])
            .stdin(files),
    )?;
    if !tar.wait()?.success() {
        bail!("tar could not read all of {}", folder.display());
    }
    Ok(())
}
