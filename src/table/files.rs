//! The files that a version refers to, and whether they are there.
//!
//! One recursive listing of the table's folder answers for all files in it. Only the files of a
//! shallow clone that lie in another table are asked for one by one.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::{StreamExt, TryStreamExt, stream};
use lance::Dataset;
use lance_table::io::deletion::relative_deletion_file_path;
use object_store::path::Path;

use super::{Table, fault};
use crate::error::{ErrorKind, GuardError, Result};

/// Files in other tables that are asked for at the same time.
const PARALLEL_HEADS: usize = 16;

/// What a file is to the version that refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Columns of a fragment, or new values laid over them.
    Data,
    /// The deleted rows of a fragment.
    Deletion,
    /// A file of an index segment.
    Index,
}

/// A file that a version refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedFile {
    /// Path in the table's folder, or in the folder of the base that holds it.
    pub path: String,
    /// Its size in bytes, where the manifest records one.
    pub expected_size: Option<u64>,
    /// What it is.
    pub kind: FileKind,
    /// The other table that holds it, for a shallow clone.
    pub base_id: Option<u32>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileProblem {
    /// It is not there.
    Missing,
    /// It does not have the size that the manifest records, in bytes.
    Size {
        /// The recorded size.
        expected: u64,
        /// The size found.
        found: u64,
    },
}

/// A file that is not as the version needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFinding {
    /// The file.
    pub path: String,
    /// What is wrong with it.
    pub problem: FileProblem,
}

impl std::fmt::Display for FileFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.problem {
            FileProblem::Missing => write!(f, "{} is missing", self.path),
            FileProblem::Size { expected, found } => {
                write!(f, "{} has {found} bytes instead of {expected}", self.path)
            }
        }
    }
}

/// How the files of a version are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileCheck {
    /// Files that the version refers to.
    pub referenced: u64,
    /// Bytes of those that are there, as the store counts them.
    pub referenced_bytes: u64,
    /// Files of which the manifest records no size, so that only their presence was checked.
    pub without_size: u64,
    /// Files that are not as they should be, sorted by path.
    pub findings: Vec<FileFinding>,
}

/// The files under the table's folder.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Path in the table's folder, and size in bytes.
    pub sizes: HashMap<String, u64>,
}

impl Listing {
    /// Bytes of all files.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Bytes by the first folder of the path; files at the top count under the empty name.
    #[must_use]
    pub fn bytes_by_folder(&self) -> BTreeMap<String, u64> {
        let mut folders = BTreeMap::new();
        for (path, size) in &self.sizes {
            let folder = path.split_once('/').map_or("", |(folder, _)| folder);
            *folders.entry(folder.to_owned()).or_default() += size;
        }
        folders
    }
}

impl Table {
    /// Every file under the table's folder.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn list_files(&self) -> Result<Listing> {
        let doing = "listing the table's folder";
        let base = self.dataset.branch_location().path;
        let store = self
            .dataset
            .object_store(None)
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        let sizes = store
            .read_dir_all(&base, None)
            .map_ok(|file| (relative(&file.location, &base), file.size))
            .try_collect()
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        Ok(Listing { sizes })
    }

    /// Every file that the version that is read refers to, sorted. The files of an index
    /// segment whose manifest does not list them stand for one: `_indices/UUID/`.
    ///
    /// # Errors
    /// Where the manifest cannot be read.
    pub async fn referenced_files(&self) -> Result<Vec<ReferencedFile>> {
        let mut files = Vec::new();
        for fragment in self.dataset.iter_fragments() {
            for file in fragment.referenced_lance_files() {
                files.push(ReferencedFile {
                    path: in_folder(&self.dataset, file.base_id, "data", &file.path),
                    expected_size: file.file_size_bytes.get().map(u64::from),
                    kind: FileKind::Data,
                    base_id: file.base_id,
                });
            }
            if let Some(file) = &fragment.deletion_file {
                files.push(ReferencedFile {
                    path: relative_deletion_file_path(fragment.id, file),
                    expected_size: None,
                    kind: FileKind::Deletion,
                    base_id: file.base_id,
                });
            }
        }
        for segment in self.recorded_indices().await? {
            let folder = in_folder(
                &self.dataset,
                segment.base_id,
                "_indices",
                &segment.uuid.to_string(),
            );
            let Some(listed) = segment.files else {
                // An index that was never trained, for want of rows, covers nothing and has
                // no files.
                let covers = segment
                    .fragment_bitmap
                    .is_none_or(|covered| !covered.is_empty());
                if covers && has_files(&segment.name) {
                    files.push(ReferencedFile {
                        path: folder + "/",
                        expected_size: None,
                        kind: FileKind::Index,
                        base_id: segment.base_id,
                    });
                }
                continue;
            };
            files.extend(listed.into_iter().map(|file| ReferencedFile {
                path: format!("{folder}/{}", file.path),
                expected_size: Some(file.size_bytes),
                kind: FileKind::Index,
                base_id: segment.base_id,
            }));
        }
        // A fragment with overlays and a rewritten column may name one file twice.
        files.sort_by(|a, b| (a.base_id, &a.path).cmp(&(b.base_id, &b.path)));
        files.dedup_by(|a, b| a.base_id == b.base_id && a.path == b.path);
        Ok(files)
    }

    /// Whether every file that the version that is read refers to is there, with its recorded
    /// size. `listing` comes from [`Table::list_files`], taken after the version was opened:
    /// files that came since do no harm, and referenced ones are not deleted.
    ///
    /// # Errors
    /// Where the store does not answer or the manifest cannot be read.
    pub async fn check_files(&self, listing: &Listing) -> Result<FileCheck> {
        let files = self.referenced_files().await?;
        let folders = folder_sizes(&files, listing);
        let mut check = FileCheck {
            referenced: files.len() as u64,
            ..FileCheck::default()
        };
        let elsewhere: Vec<&ReferencedFile> =
            files.iter().filter(|f| f.base_id.is_some()).collect();
        let heads: Vec<Option<u64>> = stream::iter(elsewhere)
            .map(|file| self.size_elsewhere(file))
            .buffered(PARALLEL_HEADS)
            .try_collect()
            .await?;
        let mut heads = heads.into_iter();
        for file in files {
            let found = if file.base_id.is_some() {
                heads.next().flatten()
            } else if file.path.ends_with('/') {
                folders.get(&file.path).copied()
            } else {
                listing.sizes.get(&file.path).copied()
            };
            check.referenced_bytes += found.unwrap_or(0);
            check.without_size += u64::from(file.expected_size.is_none());
            let problem = match (found, file.expected_size) {
                (None, _) => FileProblem::Missing,
                (Some(found), Some(expected)) if found != expected => {
                    FileProblem::Size { expected, found }
                }
                _ => continue,
            };
            check.findings.push(FileFinding {
                path: file.path,
                problem,
            });
        }
        check.findings.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(check)
    }

    /// The size of a file, or of a folder's first file, in another table; none if it is missing.
    async fn size_elsewhere(&self, file: &ReferencedFile) -> Result<Option<u64>> {
        let doing = "looking for a file of another table";
        let Some(id) = file.base_id else {
            return Ok(None);
        };
        let base = self.dataset.manifest().base_paths.get(&id).ok_or_else(|| {
            GuardError::new(
                ErrorKind::TableDamaged,
                format!("the table refers to base {id}, which it does not name"),
            )
        })?;
        let root = base
            .extract_path(self.dataset.session().store_registry())
            .map_err(|e| fault::of_lance(&e, doing))?;
        let store = self
            .dataset
            .object_store(Some(id))
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        let path = file
            .path
            .split('/')
            .filter(|part| !part.is_empty())
            .fold(root, |path, part| path.join(part));
        if file.path.ends_with('/') {
            let mut found = store.read_dir_all(&path, None);
            return match found.next().await {
                None | Some(Err(lance::Error::NotFound { .. })) => Ok(None),
                Some(Ok(found)) => Ok(Some(found.size)),
                Some(Err(e)) => Err(fault::of_lance(&e, doing)),
            };
        }
        match store.size(&path).await {
            Ok(size) => Ok(Some(size)),
            Err(e) if is_not_found(&e) => Ok(None),
            Err(e) => Err(fault::of_lance(&e, doing)),
        }
    }
}

/// The path in its table: a base that is no table holds the files at its top.
fn in_folder(dataset: &Dataset, base_id: Option<u32>, folder: &str, path: &str) -> String {
    let is_table = base_id
        .and_then(|id| dataset.manifest().base_paths.get(&id))
        .is_none_or(|base| base.is_dataset_root);
    if is_table {
        format!("{folder}/{path}")
    } else {
        path.to_owned()
    }
}

/// Lance keeps the whole of its shard bookkeeping in the manifest.
fn has_files(index: &str) -> bool {
    !matches!(
        index,
        lance_index::mem_wal::MEM_WAL_INDEX_NAME | lance_index::frag_reuse::FRAG_REUSE_INDEX_NAME
    )
}

/// Bytes under each folder that stands for its files; absent if it holds none.
fn folder_sizes(files: &[ReferencedFile], listing: &Listing) -> HashMap<String, u64> {
    let wanted: HashSet<&str> = files
        .iter()
        .filter(|file| file.path.ends_with('/'))
        .map(|file| file.path.as_str())
        .collect();
    let mut sizes = HashMap::new();
    if wanted.is_empty() {
        return sizes;
    }
    for (path, size) in &listing.sizes {
        for (at, _) in path.match_indices('/') {
            if wanted.contains(&path[..=at]) {
                *sizes.entry(path[..=at].to_owned()).or_default() += size;
            }
        }
    }
    sizes
}

fn relative(path: &Path, base: &Path) -> String {
    let path: &str = path.as_ref();
    path.strip_prefix(base.as_ref())
        .unwrap_or(path)
        .trim_start_matches('/')
        .to_owned()
}

fn is_not_found(error: &lance::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if matches!(
            error.downcast_ref::<object_store::Error>(),
            Some(object_store::Error::NotFound { .. })
        ) {
            return true;
        }
        cause = error.source();
    }
    matches!(error, lance::Error::NotFound { .. })
}
