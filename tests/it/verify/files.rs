//! Files: each referenced one is there, with its recorded size.

use std::path::PathBuf;

use lancedb::index::Index;
use lancedb_guard::report::verify::{CheckId, CheckStatus};

use super::bench::*;

/// The files of a folder of the table.
fn in_folder(bench: &Bench, folder: &str) -> Vec<PathBuf> {
    files_in(&bench.folder().join(folder)).into_keys().collect()
}

fn relative(bench: &Bench, path: &std::path::Path) -> String {
    path.strip_prefix(bench.folder())
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn files_of_data_deletions_and_indices_are_counted() {
    let bench = Bench::with_tombstones().await;
    bench
        .table
        .create_index(&["id"], Index::BTree(Default::default()))
        .execute()
        .await
        .unwrap();
    let outputs = bench.verify(&bench.baseline(8, 8, &[]).await).await;
    assert_passes(&outputs);
    let bytes: u64 = ["data", "_deletions", "_indices"]
        .iter()
        .flat_map(|folder| files_in(&bench.folder().join(folder)).into_values())
        .sum();
    let files = 12 + in_folder(&bench, "_indices").len();
    assert_eq!(
        row(&outputs, CheckId::Files).found,
        format!("{files} files of {bytes} bytes, all as recorded")
    );
}

#[tokio::test]
async fn a_missing_data_file_fails() {
    let bench = Bench::new(batch(0..20)).await;
    bench.add(batch(20..40)).await;
    let baseline = bench.baseline(2, 2, &[]).await;
    let file = in_folder(&bench, "data").remove(0);
    std::fs::remove_file(&file).unwrap();
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Files, CheckId::Canary]);
    assert_eq!(
        row(&outputs, CheckId::Files).found,
        format!(
            "1 of 2 files are not as recorded: {} is missing",
            relative(&bench, &file)
        )
    );
}

#[tokio::test]
async fn a_truncated_data_file_fails() {
    let bench = Bench::new(batch(0..20)).await;
    let baseline = bench.baseline(1, 1, &[]).await;
    let file = in_folder(&bench, "data").remove(0);
    let length = file.metadata().unwrap().len();
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(length - 1)
        .unwrap();
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Files, CheckId::Canary]);
    assert_eq!(
        row(&outputs, CheckId::Files).found,
        format!(
            "1 of 1 files are not as recorded: {} has {} bytes instead of {length}",
            relative(&bench, &file),
            length - 1
        )
    );
}

#[tokio::test]
async fn a_missing_deletion_file_fails() {
    let bench = Bench::with_tombstones().await;
    let baseline = bench.baseline(7, 7, &[]).await;
    for file in in_folder(&bench, "_deletions") {
        std::fs::remove_file(file).unwrap();
    }
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Files, CheckId::Canary]);
    let found = &row(&outputs, CheckId::Files).found;
    assert!(
        found.starts_with("6 of 12 files are not as recorded: _deletions/0-6-"),
        "{found}"
    );
    assert!(found.ends_with(" is missing and 1 more"), "{found}");
}

#[tokio::test]
async fn a_missing_file_of_a_scalar_index_fails() {
    let bench = Bench::new(batch(0..20)).await;
    bench
        .table
        .create_index(&["id"], Index::BTree(Default::default()))
        .execute()
        .await
        .unwrap();
    let baseline = bench.baseline(2, 2, &[]).await;
    for file in in_folder(&bench, "_indices") {
        std::fs::remove_file(file).unwrap();
    }
    let outputs = bench.verify(&baseline).await;
    assert_fails_by(&outputs, &[CheckId::Files, CheckId::ScalarIndices]);
}

#[tokio::test]
async fn files_of_older_versions_do_not_matter() {
    let bench = Bench::with_tombstones().await;
    let old = in_folder(&bench, "data");
    bench.compact().await;
    let baseline = bench.baseline(7, 9, &[8, 9]).await;
    for file in old {
        std::fs::remove_file(file).unwrap();
    }
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    let contents = row(&outputs, CheckId::Contents);
    assert_eq!(contents.status, CheckStatus::Skipped);
    assert!(
        contents
            .found
            .starts_with("version 7 cannot be read any more: "),
        "{contents:?}"
    );
}

#[tokio::test]
async fn files_of_a_shallow_clone_are_looked_for_where_they_are() {
    let origin = Bench::with_tombstones().await;
    let bench = Bench::new(batch(0..20)).await;
    let folder = bench.folder();
    std::fs::remove_dir_all(&folder).unwrap();
    origin
        .dataset()
        .await
        .shallow_clone(folder.to_str().unwrap(), 7_u64, None)
        .await
        .unwrap();
    let version = bench.open().await.version();
    let baseline = bench.baseline(version, version, &[]).await;
    let outputs = bench.verify(&baseline).await;
    assert_passes(&outputs);
    assert!(
        row(&outputs, CheckId::Files)
            .found
            .starts_with("12 files of ")
    );

    std::fs::remove_file(in_folder(&origin, "data").remove(0)).unwrap();
    std::fs::remove_file(in_folder(&origin, "_deletions").remove(0)).unwrap();
    let outputs = bench.verify(&baseline).await;
    assert!(!outputs.verification_passed);
    let found = &row(&outputs, CheckId::Files).found;
    assert!(
        found.starts_with("2 of 12 files are not as recorded: _deletions/"),
        "{found}"
    );
}
