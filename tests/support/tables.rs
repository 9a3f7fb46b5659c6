//! Real LanceDB tables for tests, the demo and the fixtures.
//!
//! Every row is a function of its `id` alone, so a test can say what a row must hold without
//! having written it down: `{id: int64, vector: fixed_size_list<f32, 8>, text: utf8}`.
//!
//! Shared by path: `#[path = "support/tables.rs"] mod tables;`

#![expect(
    dead_code,
    reason = "each test binary includes this file and uses a part of it"
)]

use std::fs::{self, File, FileTimes};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::types::Float32Type;
use arrow_array::{Array, FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use lancedb::index::Index;
use lancedb::index::scalar::BTreeIndexBuilder;
use lancedb::index::vector::IvfPqIndexBuilder;
use lancedb::query::{ExecutableQuery, QueryBase, Select};
use lancedb::table::{CompactionOptions, OptimizeAction};
use lancedb::{Connection, Result, Table};

/// Numbers in a vector.
pub const DIMENSION: usize = 8;

/// When the first version of every fixture was committed: 2026-01-05 10:00:00 UTC.
pub const FIXTURES_FROM: Duration = Duration::from_secs(1_767_607_200);

/// The schema of every table made here.
pub fn schema() -> SchemaRef {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new(
            "vector",
            DataType::FixedSizeList(item, DIMENSION as i32),
            true,
        ),
        Field::new("text", DataType::Utf8, true),
    ]))
}

/// The vector of the row with this id: pseudo-random in -1..1, the same in every run.
pub fn vector(id: i64) -> [f32; DIMENSION] {
    let mut state = id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    std::array::from_fn(|_| {
        // splitmix64: neighbouring ids give unrelated vectors, which a plain LCG does not.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    })
}

/// The text of the row with this id.
pub fn text(id: i64) -> String {
    format!("document {id}")
}

/// The rows with these ids.
pub fn rows(ids: Range<i64>) -> RecordBatch {
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        ids.clone().map(|id| Some(vector(id).map(Some))),
        DIMENSION as i32,
    );
    let columns: Vec<Arc<dyn Array>> = vec![
        Arc::new(Int64Array::from_iter_values(ids.clone())),
        Arc::new(vectors),
        Arc::new(StringArray::from_iter_values(ids.map(text))),
    ];
    RecordBatch::try_new(schema(), columns).expect("the columns follow the schema")
}

/// Opens the database in a folder, and makes the folder if need be.
pub async fn connect(folder: &Path) -> Result<Connection> {
    lancedb::connect(&folder.to_string_lossy()).execute().await
}

/// Makes a table with the ids `0..count`, as one commit; without rows it has a schema only.
pub async fn create(db: &Connection, name: &str, count: i64) -> Result<Table> {
    if count == 0 {
        return db.create_empty_table(name, schema()).execute().await;
    }
    db.create_table(name, rows(0..count)).execute().await
}

/// Opens a table.
pub async fn open(db: &Connection, name: &str) -> Result<Table> {
    db.open_table(name).execute().await
}

/// Appends rows whose ids follow the largest id of the table: one commit, one fragment.
pub async fn append(table: &Table, count: i64) -> Result<()> {
    append_times(table, 1, count).await
}

/// Appends that many times: as many commits, as many fragments.
pub async fn append_times(table: &Table, times: usize, count: i64) -> Result<()> {
    let mut next = next_id(table).await?;
    for _ in 0..times {
        table.add(rows(next..next + count)).execute().await?;
        next += count;
    }
    Ok(())
}

/// The id after the largest of the table.
pub async fn next_id(table: &Table) -> Result<i64> {
    Ok(ids(table).await?.last().map_or(0, |last| last + 1))
}

/// The ids of the table, sorted.
pub async fn ids(table: &Table) -> Result<Vec<i64>> {
    let batches: Vec<RecordBatch> = table
        .query()
        .select(Select::columns(&["id"]))
        .execute()
        .await?
        .try_collect()
        .await?;
    let mut ids: Vec<i64> = batches
        .iter()
        .filter_map(|batch| batch["id"].as_any().downcast_ref::<Int64Array>())
        .flat_map(|column| column.values().iter().copied())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Deletes the rows that match.
pub async fn delete(table: &Table, predicate: &str) -> Result<()> {
    table.delete(predicate).await.map(drop)
}

/// Builds an IVF_PQ index on `vector`; its training needs 256 rows.
pub async fn ivf_pq(table: &Table) -> Result<()> {
    let index = IvfPqIndexBuilder::default()
        .num_partitions(4)
        .num_sub_vectors(4);
    table
        .create_index(&["vector"], Index::IvfPq(index))
        .execute()
        .await
}

/// Builds a BTREE index on a column.
pub async fn btree(table: &Table, column: &str) -> Result<()> {
    table
        .create_index(&[column], Index::BTree(BTreeIndexBuilder::default()))
        .execute()
        .await
}

/// Brings every index up to date, as LanceDB's own optimize does.
pub async fn optimize_indices(table: &Table) -> Result<()> {
    let action = OptimizeAction::Index(lancedb::table::OptimizeOptions::default());
    table.optimize(action).await.map(drop)
}

/// Compacts with LanceDB's own optimize.
pub async fn compact(table: &Table) -> Result<()> {
    let action = OptimizeAction::Compact {
        options: CompactionOptions::default(),
        remap_options: None,
    };
    table.optimize(action).await.map(drop)
}

/// Tags a version.
pub async fn tag(table: &Table, name: &str, version: u64) -> Result<()> {
    table.tags().await?.create(name, version).await
}

/// Starts a branch from a version and gives it back, to be written to.
pub async fn branch(table: &Table, name: &str, version: u64) -> Result<Table> {
    table.create_branch(name, version).await
}

/// The folder of the fixtures.
pub fn fixtures() -> PathBuf {
    package_folder().join("tests/fixtures")
}

/// The folder of the package. As cargo says it to the running test: two checkouts that share a
/// target folder may share a test binary as well, which would name the wrong one.
pub fn package_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Copies the fixture `name` into the database folder `to`, as a table of the same name.
pub fn copy_fixture(name: &str, to: &Path) -> io::Result<PathBuf> {
    copy_table(&fixtures(), name, to, name)
}

/// Copies table `name` of one database folder into another as `new_name`, with every file as old
/// as the first commit of the fixtures.
pub fn copy_table(from: &Path, name: &str, to: &Path, new_name: &str) -> io::Result<PathBuf> {
    let target = to.join(format!("{new_name}.lance"));
    copy_folder(&from.join(format!("{name}.lance")), &target)?;
    Ok(target)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    // Lance's cleanup lists only data files that are no younger, by the store's clock, than the
    // oldest version it keeps. A checkout makes every file as young as itself, so without this
    // a prune would leave the data files behind.
    let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + FIXTURES_FROM);
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            File::options().write(true).open(&target)?.set_times(old)?;
        }
    }
    Ok(())
}
