//! The fixture tables hold what `tests/fixtures/README.md` says.

#[path = "support/tables.rs"]
mod tables;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use tempfile::TempDir;

/// Name, versions, first and last commit, fragments, rows and tombstones of the last version.
const FIXTURES: [(&str, usize, &str, &str, usize, usize, usize); 8] = [
    (
        "aged",
        47,
        "2026-01-05T10:00:00",
        "2026-01-12T08:00:00",
        2,
        780,
        20,
    ),
    (
        "bloated",
        31,
        "2026-01-05T10:00:00",
        "2026-01-10T10:00:00",
        30,
        285,
        15,
    ),
    (
        "empty",
        1,
        "2026-01-05T10:00:00",
        "2026-01-05T10:00:00",
        0,
        0,
        0,
    ),
    (
        "healthy",
        1,
        "2026-01-05T10:00:00",
        "2026-01-05T10:00:00",
        1,
        1500,
        0,
    ),
    (
        "indexed",
        7,
        "2026-01-05T10:00:00",
        "2026-01-09T10:00:00",
        5,
        500,
        0,
    ),
    (
        "retention",
        4,
        "2026-01-05T10:00:00",
        "2026-01-09T12:00:00",
        4,
        80,
        0,
    ),
    (
        "tagged",
        7,
        "2026-01-05T10:00:00",
        "2026-01-10T11:00:00",
        6,
        72,
        48,
    ),
    (
        "tombstones",
        7,
        "2026-01-05T10:00:00",
        "2026-01-06T10:00:00",
        6,
        72,
        48,
    ),
];

#[tokio::test]
async fn every_fixture_has_the_versions_times_and_counts_it_is_documented_with() {
    for (name, versions, first, last, fragments, rows, tombstones) in FIXTURES {
        let folder = TempDir::new().unwrap();
        tables::copy_fixture(name, folder.path()).unwrap();
        let db = tables::connect(folder.path()).await.unwrap();
        let table = tables::open(&db, name).await.unwrap();
        let found = table.list_versions().await.unwrap();
        let time = |at: usize| {
            found[at]
                .timestamp
                .format("%Y-%m-%dT%H:%M:%S%.f")
                .to_string()
        };
        assert_eq!(found.len(), versions, "{name}");
        assert_eq!(time(0), first, "{name}");
        assert_eq!(time(versions - 1), last, "{name}");
        let native = table.as_native().unwrap();
        assert_eq!(native.count_fragments().await.unwrap(), fragments, "{name}");
        assert_eq!(table.count_rows(None).await.unwrap(), rows, "{name}");
        assert_eq!(
            native.count_deleted_rows().await.unwrap(),
            tombstones,
            "{name}"
        );
        assert_eq!(tables::ids(&table).await.unwrap().len(), rows, "{name}");
    }
}

#[tokio::test]
async fn a_copied_fixture_can_be_searched_appended_to_and_branched() {
    let folder = TempDir::new().unwrap();
    tables::copy_fixture("indexed", folder.path()).unwrap();
    let db = tables::connect(folder.path()).await.unwrap();
    let table = tables::open(&db, "indexed").await.unwrap();
    let indices = table.list_indices().await.unwrap();
    assert_eq!(indices.len(), 2);
    let facts = table.index_stats("vector_idx").await.unwrap().unwrap();
    assert_eq!(
        (facts.num_indexed_rows, facts.num_unindexed_rows),
        (300, 200)
    );
    tables::append(&table, 3).await.unwrap();
    assert_eq!(tables::next_id(&table).await.unwrap(), 503);
    tables::tag(&table, "here", 4).await.unwrap();
    let branch = tables::branch(&table, "trial", 4).await.unwrap();
    assert_eq!(branch.count_rows(None).await.unwrap(), 350);
}

#[test]
fn a_copied_fixture_is_as_old_as_its_first_commit() {
    let folder = TempDir::new().unwrap();
    let table = tables::copy_fixture("tombstones", folder.path()).unwrap();
    let mut seen = 0;
    for part in ["data", "_deletions", "_versions", "_transactions"] {
        for file in fs::read_dir(table.join(part)).unwrap() {
            let modified = file.unwrap().metadata().unwrap().modified().unwrap();
            assert_eq!(modified, SystemTime::UNIX_EPOCH + tables::FIXTURES_FROM);
            seen += 1;
        }
    }
    assert!(seen >= 26, "{seen} files");
}

#[test]
fn the_fixtures_stay_under_two_megabytes() {
    let bytes = bytes_under(&tables::fixtures());
    assert!(bytes > 100_000 && bytes < 2_000_000, "{bytes} bytes");
}

fn bytes_under(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                bytes_under(&entry.path())
            } else {
                entry.metadata().unwrap().len()
            }
        })
        .sum()
}
