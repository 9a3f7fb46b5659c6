//! What the rows of a version hold: hashed one by one, or summed up.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::{StreamExt, TryStreamExt};
use lance::dataset::ProjectionRequest;
use lance::datatypes::{BlobHandling, format_field_path_minimal};
use lance_table::format::Fragment;

use super::hashing::{self, Hashes, Sums};
use super::sampling::{draw, mixed};
use super::{Table, fault};
use crate::error::{ErrorKind, GuardError, Result};
use crate::spec::tuning::ContentsTuning;

/// Bytes of a batch beyond which it is made of fewer rows than asked for.
const BATCH_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes that may queue up between reading and hashing, for each version.
const BUFFER_BYTES: u64 = 64 * 1024 * 1024;

/// Some fragments of a version.
#[derive(Debug, Clone, Default)]
pub struct Part {
    pub(super) fragments: Vec<Fragment>,
    /// Where the live rows of each fragment begin among all of the version, and how many it has.
    places: Vec<(u64, u64)>,
}

impl Part {
    /// Live rows of the fragments.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.places.iter().map(|(_, rows)| rows).sum()
    }

    /// How many fragments they are.
    #[must_use]
    pub fn fragments(&self) -> usize {
        self.fragments.len()
    }

    /// Their ids.
    #[must_use]
    pub fn ids(&self) -> BTreeSet<u64> {
        self.fragments.iter().map(|fragment| fragment.id).collect()
    }

    /// Places in the version of the rows at these places in the part.
    pub(super) fn in_version(&self, rows: &[u64]) -> Vec<u64> {
        let mut begin = 0;
        let mut fragments = self.places.iter();
        let mut current = fragments.next();
        rows.iter()
            .filter_map(|row| {
                while let Some((_, count)) = current
                    && *row >= begin + count
                {
                    begin += count;
                    current = fragments.next();
                }
                current.map(|(first, _)| first + (row - begin))
            })
            .collect()
    }
}

/// A column that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub column: String,
    /// Why.
    pub reason: String,
}

/// Names of the columns that are hashed, and of those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Those that are, in the order of the schema.
    pub hashed: Vec<String>,
    /// Those that are not.
    pub left_out: Vec<LeftOut>,
}

impl Table {
    /// The fragments that this version and a later one do not have in common: those that were
    /// rewritten, and what they were rewritten to. A fragment is the same if its files and its
    /// deleted rows are.
    ///
    /// # Errors
    /// As [`Table::fragment_sketches`].
    pub async fn rewritten(&self, later: &Self) -> Result<(Part, Part)> {
        let by_id = |table: &Self| -> HashMap<u64, Fragment> {
            let fragments = table.dataset.manifest().fragments.iter();
            fragments.map(|f| (f.id, f.clone())).collect()
        };
        let (old, new) = (by_id(self), by_id(later));
        Ok((
            self.part(|f| new.get(&f.id) != Some(f)).await?,
            later.part(|f| old.get(&f.id) != Some(f)).await?,
        ))
    }

    /// The fragments that are chosen.
    ///
    /// # Errors
    /// As [`Table::fragment_sketches`].
    pub async fn part(&self, chosen: impl Fn(&Fragment) -> bool) -> Result<Part> {
        let sketches = self.fragment_sketches().await?;
        let mut part = Part::default();
        let mut begin = 0;
        for (fragment, sketch) in self.dataset.manifest().fragments.iter().zip(&sketches) {
            if chosen(fragment) {
                part.fragments.push(fragment.clone());
                part.places.push((begin, sketch.live_rows()));
            }
            begin += sketch.live_rows();
        }
        Ok(part)
    }

    /// Fragments with about as many live rows as said, chosen by the seed; all of them if there
    /// are not more.
    ///
    /// # Errors
    /// As [`Table::fragment_sketches`].
    pub async fn some_fragments(&self, rows: u64, seed: u64) -> Result<Part> {
        let mut sketches = self.fragment_sketches().await?;
        sketches.sort_by_key(|fragment| (mixed(seed ^ mixed(fragment.id)), fragment.id));
        let mut chosen = BTreeSet::new();
        let mut sum = 0;
        for fragment in sketches {
            if sum >= rows {
                break;
            }
            sum += fragment.live_rows();
            chosen.insert(fragment.id);
        }
        self.part(|fragment| chosen.contains(&fragment.id)).await
    }

    /// The columns of the version that is read, by whether they are hashed: in a scan, or in
    /// single rows that are picked.
    #[must_use]
    pub fn columns(&self, picked: bool) -> Columns {
        let mut columns = Columns::default();
        for field in &self.dataset.schema().fields {
            let mut below = vec![field];
            let mut has_blob = false;
            while let Some(field) = below.pop() {
                has_blob |= field.is_blob();
                below.extend(&field.children);
            }
            let reason = if has_blob && picked {
                "it holds blobs, which only the level full reads".to_owned()
            } else if has_blob || hashing::is_hashable(&field.data_type()) {
                columns.hashed.push(field.name.clone());
                continue;
            } else {
                format!("values of type {} cannot be hashed", field.data_type())
            };
            columns.left_out.push(LeftOut {
                column: field.name.clone(),
                reason,
            });
        }
        columns
    }

    /// Sums up the hashes of every live row of a part. Holds no more than a few batches at a
    /// time, whatever the size of the part.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn sums(&self, part: &Part, tuning: &ContentsTuning) -> Result<Sums> {
        let columns = Arc::new(self.columns(false).hashed);
        let mut sums = Sums {
            columns: vec![0; columns.len()],
            ..Sums::default()
        };
        if part.fragments.is_empty() {
            return Ok(sums);
        }
        let fault = |e: lance::Error| fault::of_lance(&e, DOING);
        let concurrency = tuning.concurrency as usize;
        let mut scan = self.dataset.scan();
        scan.blob_handling(BlobHandling::AllBinary)
            .with_fragments(part.fragments.clone())
            .batch_size(tuning.batch_rows as usize)
            .batch_size_bytes(BATCH_BYTES)
            .io_buffer_size(BUFFER_BYTES)
            .batch_readahead(concurrency)
            .fragment_readahead(concurrency);
        let mut hashed = scan
            .try_into_stream()
            .await
            .map_err(fault)?
            .map_err(fault)
            .map(|batch| {
                let columns = columns.clone();
                async move {
                    let batch = batch?;
                    tokio::task::spawn_blocking(move || Ok(hash(&batch, &columns)?.sums()))
                        .await
                        .map_err(|e| GuardError::new(ErrorKind::Internal, e.to_string()))?
                }
            })
            .buffered(concurrency);
        while let Some(more) = hashed.try_next().await? {
            sums.add(&more);
        }
        Ok(sums)
    }

    /// Hashes up to `count` live rows of a part, chosen by the seed, in their order.
    /// The same seed chooses the same places in every part of as many rows.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn picked(&self, part: &Part, count: usize, seed: u64) -> Result<Hashes> {
        let columns = self.columns(true).hashed;
        let places = part.in_version(&draw(count, seed, part.rows()));
        let projection = ProjectionRequest::from_columns(
            columns
                .iter()
                .map(|name| format_field_path_minimal(&[name])),
            self.dataset.schema(),
        );
        let batch = self
            .dataset
            .take(&places, projection)
            .await
            .map_err(|e| fault::of_lance(&e, DOING))?;
        hash(&batch, &columns)
    }
}

const DOING: &str = "reading rows";

/// Hashes these columns of a batch.
fn hash(batch: &RecordBatch, columns: &[String]) -> Result<Hashes> {
    let fault = |e: arrow_schema::ArrowError| {
        GuardError::new(ErrorKind::Internal, format!("hashing rows: {e}"))
    };
    let places: Vec<usize> = columns
        .iter()
        .map(|name| batch.schema_ref().index_of(name).map_err(fault))
        .collect::<Result<_>>()?;
    hashing::hash(&batch.project(&places).map_err(fault)?).map_err(fault)
}
