//! Columns of vectors, and vectors that they hold.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, UInt8Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use futures::TryStreamExt;
use lance::dataset::{ProjectionRequest, ROW_ID};
use lance::datatypes::{Field, parse_field_path};

use super::sampling::{draw, mixed};
use super::{Table, fault};
use crate::error::{ErrorKind, GuardError, Result};

/// Rows that are drawn for each vector that is wanted, since some may be null or zero.
const DRAWN_PER_VECTOR: usize = 4;
/// Rows that are drawn beside that.
const DRAWN_AT_LEAST: usize = 32;
/// Rows that are read from the front where none of the drawn ones is usable.
const READ_AT_MOST: usize = 65_536;
/// A column that holds vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorColumn {
    /// Path of the column.
    pub path: String,
    /// Why it cannot be searched here; absent if it can.
    pub unsupported: Option<String>,
}

/// A vector that the table holds.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Its row.
    pub row_id: u64,
    /// Its numbers.
    pub values: Vec<f32>,
}

impl Table {
    /// Columns of fixed-size lists of floating-point numbers, nested ones and lists of them
    /// included.
    #[must_use]
    pub fn vector_columns(&self) -> Vec<VectorColumn> {
        let schema = self.dataset.schema();
        let mut columns = Vec::new();
        let mut fields: Vec<&Field> = schema.fields.iter().rev().collect();
        while let Some(field) = fields.pop() {
            let of_floats = |data_type: &DataType| matches!(data_type, DataType::FixedSizeList(item, _) if item.data_type().is_floating());
            let unsupported = match field.data_type() {
                DataType::FixedSizeList(..) if of_floats(&field.data_type()) => None,
                DataType::List(item) if of_floats(item.data_type()) => {
                    Some("it holds several vectors a row".to_owned())
                }
                DataType::Struct(_) => {
                    fields.extend(field.children.iter().rev());
                    continue;
                }
                _ => continue,
            };
            if let Ok(path) = schema.field_path_minimal(field.id) {
                columns.push(VectorColumn { path, unsupported });
            }
        }
        columns
    }

    /// A column that an index says to be one of vectors.
    #[must_use]
    pub fn vector_column(&self, path: &str) -> VectorColumn {
        let unsupported = match self.dataset.schema().field(path).map(Field::data_type) {
            Some(DataType::FixedSizeList(item, _)) => match item.data_type() {
                DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::UInt8 => None,
                other => Some(format!("its numbers are of type {other}")),
            },
            Some(DataType::List(_)) => Some("it holds several vectors a row".to_owned()),
            Some(other) => Some(format!("it is of type {other}")),
            None => Some("the column does not exist".to_owned()),
        };
        VectorColumn {
            path: path.to_owned(),
            unsupported,
        }
    }

    /// Up to `count` stored vectors of a column that are finite and not zero. The same seed on
    /// the same version gives the same ones.
    ///
    /// Draws rows first; where none of them is usable, it reads the first 65,536 rows with a
    /// vector.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn stored_vectors(
        &self,
        path: &str,
        count: usize,
        seed: u64,
        rows: u64,
    ) -> Result<Vec<StoredVector>> {
        let doing = "reading stored vectors";
        let drawn = draw(count * DRAWN_PER_VECTOR + DRAWN_AT_LEAST, seed, rows);
        if drawn.is_empty() {
            return Ok(Vec::new());
        }
        let projection = ProjectionRequest::from_columns([path, ROW_ID], self.dataset.schema());
        let batch = self
            .dataset
            .take(&drawn, projection)
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        let mut vectors = usable(&batch, path, seed)?;
        if vectors.is_empty() {
            vectors = self.first_vectors(path, count, seed).await?;
        }
        vectors.truncate(count);
        Ok(vectors)
    }

    async fn first_vectors(
        &self,
        path: &str,
        count: usize,
        seed: u64,
    ) -> Result<Vec<StoredVector>> {
        let doing = "reading stored vectors";
        let fault = |e: lance::Error| fault::of_lance(&e, doing);
        let sql_path = lance::datatypes::escape_field_path_for_project(path);
        let mut scan = self.dataset.scan();
        scan.project(&[path]).map_err(fault)?;
        scan.filter(&format!("{sql_path} IS NOT NULL"))
            .map_err(fault)?;
        scan.with_row_id().batch_size(1024);
        let mut stream = scan.try_into_stream().await.map_err(fault)?;
        let mut vectors = Vec::new();
        let mut read = 0;
        while let Some(batch) = stream.try_next().await.map_err(fault)? {
            vectors.extend(usable(&batch, path, seed)?);
            read += batch.num_rows();
            if vectors.len() >= count || read >= READ_AT_MOST {
                break;
            }
        }
        Ok(vectors)
    }
}

/// The vectors of a batch that are finite and not zero, in an order that the seed chooses.
fn usable(batch: &RecordBatch, path: &str, seed: u64) -> Result<Vec<StoredVector>> {
    let mut vectors = all_in(batch, path)?;
    vectors.retain(|vector| {
        vector.values.iter().all(|value| value.is_finite())
            && vector.values.iter().any(|value| *value != 0.0)
    });
    vectors.sort_by_key(|vector| (mixed(seed ^ mixed(vector.row_id)), vector.row_id));
    Ok(vectors)
}

/// The vectors of a batch that are not null, with their row ids.
pub(super) fn all_in(batch: &RecordBatch, path: &str) -> Result<Vec<StoredVector>> {
    let unexpected = || {
        GuardError::new(
            ErrorKind::Internal,
            format!("the column {path} is not what its schema says"),
        )
    };
    let ids = batch
        .column_by_name(ROW_ID)
        .and_then(|column| column.as_primitive_opt::<UInt64Type>())
        .ok_or_else(unexpected)?;
    let levels = levels(batch, path).ok_or_else(unexpected)?;
    let lists = levels
        .last()
        .and_then(|level| level.as_fixed_size_list_opt())
        .ok_or_else(unexpected)?;
    Ok((0..batch.num_rows())
        .filter(|row| levels.iter().all(|level| level.is_valid(*row)))
        .filter_map(|row| {
            Some(StoredVector {
                row_id: ids.value(row),
                values: numbers(&lists.value(row))?,
            })
        })
        .collect())
}

/// A column and those around it, the outermost first: a take puts a nested column out inside the
/// outer one, a scan under its path.
fn levels(batch: &RecordBatch, path: &str) -> Option<Vec<ArrayRef>> {
    if let Some(flat) = batch.column_by_name(path) {
        return Some(vec![flat.clone()]);
    }
    let parts = parse_field_path(path).ok()?;
    let (top, below) = parts.split_first()?;
    let mut levels = vec![batch.column_by_name(top)?.clone()];
    for part in below {
        let outer = levels.last()?.as_struct_opt()?;
        levels.push(outer.column_by_name(part)?.clone());
    }
    Some(levels)
}

/// The numbers of a vector as lancedb takes them; none if one is null.
fn numbers(values: &dyn Array) -> Option<Vec<f32>> {
    if values.null_count() > 0 {
        return None;
    }
    match values.data_type() {
        DataType::Float16 => {
            let values = values.as_primitive::<Float16Type>().values();
            Some(values.iter().map(|value| value.to_f32()).collect())
        }
        DataType::Float32 => Some(values.as_primitive::<Float32Type>().values().to_vec()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "lancedb takes queries in single precision, whatever the column holds"
        )]
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>().values();
            Some(values.iter().map(|value| *value as f32).collect())
        }
        DataType::UInt8 => {
            let values = values.as_primitive::<UInt8Type>().values();
            Some(values.iter().map(|value| f32::from(*value)).collect())
        }
        _ => None,
    }
}
