//! Makes tables for the demo and the fixtures. Not part of the tool: it only writes tables that
//! the tool may then be run on.
//!
//! - `bloated DIR`: the table of `cargo xtask demo`.
//! - `step DIR TABLE ACTION…`: one commit, so that `tests/fixtures/make.sh` can give each commit
//!   a time of its own.
//! - `describe DIR TABLE`: every version with its time and counts.

#[path = "../tests/support/tables.rs"]
mod tables;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use lancedb::Table;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the bloated table `documents` in a database folder.
    Bloated {
        /// The database folder.
        dir: PathBuf,
        /// Where the table's old versions come from.
        #[arg(long, default_value_os_t = tables::fixtures())]
        fixtures: PathBuf,
    },
    /// Do one thing to a table.
    Step {
        /// The database folder.
        dir: PathBuf,
        /// The table.
        table: String,
        #[command(subcommand)]
        action: Action,
    },
    /// Print every version of a table.
    Describe {
        /// The database folder.
        dir: PathBuf,
        /// The table.
        table: String,
    },
}

#[derive(Subcommand)]
enum Action {
    /// Make the table; 0 rows make one with a schema only.
    Create { rows: i64 },
    /// Append rows with the next ids.
    Append { rows: i64 },
    /// Delete the rows that match.
    Delete { predicate: String },
    /// Build an IVF_PQ index on `vector`.
    IvfPq,
    /// Build a BTREE index.
    Btree { column: String },
    /// Bring every index up to date.
    OptimizeIndices,
    /// Compact, as LanceDB itself does.
    Compact,
    /// Tag a version.
    Tag { name: String, version: u64 },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Bloated { dir, fixtures } => bloated(&dir, &fixtures).await,
        Command::Step { dir, table, action } => step(&dir, &table, action).await,
        Command::Describe { dir, table } => describe(&dir, &table).await,
    }
}

/// A table as months of small appends leave it: old versions that only take up room, many small
/// fragments, deleted rows in most of them, and indices that cover the oldest rows only.
async fn bloated(dir: &Path, fixtures: &Path) -> Result<(), Box<dyn Error>> {
    tables::copy_table(fixtures, "aged", dir, "documents")?;
    let db = tables::connect(dir).await?;
    let table = tables::open(&db, "documents").await?;
    tables::append_times(&table, 60, 20).await?;
    // One row in eight: enough to matter, and less than the 15 % at which an audit does not wait
    // for a second one.
    tables::delete(&table, "id % 8 = 0").await?;
    Ok(())
}

async fn step(dir: &Path, name: &str, action: Action) -> Result<(), Box<dyn Error>> {
    let db = tables::connect(dir).await?;
    if let Action::Create { rows } = action {
        tables::create(&db, name, rows).await?;
        return Ok(());
    }
    let table = tables::open(&db, name).await?;
    match action {
        Action::Create { .. } => {}
        Action::Append { rows } => tables::append(&table, rows).await?,
        Action::Delete { predicate } => tables::delete(&table, &predicate).await?,
        Action::IvfPq => tables::ivf_pq(&table).await?,
        Action::Btree { column } => tables::btree(&table, &column).await?,
        Action::OptimizeIndices => tables::optimize_indices(&table).await?,
        Action::Compact => tables::compact(&table).await?,
        Action::Tag { name, version } => tables::tag(&table, &name, version).await?,
    }
    Ok(())
}

async fn describe(dir: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let db = tables::connect(dir).await?;
    let table = tables::open(&db, name).await?;
    println!(
        "{:>7}  {:<20}  {:>9}  {:>6}  {:>10}",
        "version", "committed", "fragments", "rows", "tombstones"
    );
    for version in table.list_versions().await? {
        table.checkout(version.version).await?;
        let native = table.as_native().ok_or("not a local table")?;
        println!(
            "{:>7}  {:<20}  {:>9}  {:>6}  {:>10}",
            version.version,
            version.timestamp.format("%Y-%m-%d %H:%M:%S"),
            native.count_fragments().await?,
            table.count_rows(None).await?,
            native.count_deleted_rows().await?,
        );
    }
    table.checkout_latest().await?;
    describe_indices(&table).await?;
    let mut tags: Vec<_> = table.tags().await?.list().await?.into_iter().collect();
    tags.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, tag) in tags {
        println!("tag     {name}: version {}", tag.version);
    }
    Ok(())
}

async fn describe_indices(table: &Table) -> Result<(), Box<dyn Error>> {
    for index in table.list_indices().await? {
        if let Some(facts) = table.index_stats(&index.name).await? {
            println!(
                "index   {}: {}, {} rows indexed, {} not",
                index.name, index.index_type, facts.num_indexed_rows, facts.num_unindexed_rows
            );
        }
    }
    Ok(())
}
