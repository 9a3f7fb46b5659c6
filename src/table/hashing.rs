//! Hashes of rows that do not depend on their order, nor on how they are stored.
//!
//! ```text
//! value  -> bytes, by arrow-row; numbers of vectors as they are
//! bytes  -> 128 bits, by XXH3
//! column -> sum of its values' hashes      row -> hash of its values' hashes
//!                                          all -> sum of the rows' hashes
//! ```
//! A sum, not an exclusive or: a row that is there twice must not cancel out. The hash of the
//! row ties its values together, so that values which change places between rows are noticed.
//! Floats go in bit by bit: `-0.0` is not `0.0`, and each NaN is itself. What lies under a null
//! does not count, and a dictionary is its values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use xxhash_rust::xxh3::xxh3_128;

/// Sums over rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// Rows.
    pub rows: u64,
    /// Bytes of the values that were hashed.
    pub bytes: u64,
    /// The sum of the rows' hashes.
    pub all: u128,
    /// The sum for each column, in the order of the columns.
    pub columns: Vec<u128>,
}

impl Sums {
    /// Adds the rows of another part of the same columns.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.all = self.all.wrapping_add(other.all);
        self.columns.resize(other.columns.len(), 0);
        for (sum, more) in self.columns.iter_mut().zip(&other.columns) {
            *sum = sum.wrapping_add(*more);
        }
    }
}

/// The hashes of a batch: by row, in their order, for each column and for whole rows.
pub struct Hashes {
    /// For each column, the hash of each value.
    pub columns: Vec<Vec<u128>>,
    /// The hash of each row.
    pub rows: Vec<u128>,
    /// Bytes of the values.
    pub bytes: u64,
}

impl Hashes {
    /// The sums over the batch.
    pub fn sums(&self) -> Sums {
        let sum = |hashes: &Vec<u128>| hashes.iter().fold(0_u128, |sum, h| sum.wrapping_add(*h));
        Sums {
            rows: self.rows.len() as u64,
            bytes: self.bytes,
            all: sum(&self.rows),
            columns: self.columns.iter().map(sum).collect(),
        }
    }
}

/// Whether values of a type can be hashed.
pub fn is_hashable(data_type: &DataType) -> bool {
    RowConverter::supports_fields(&[SortField::new(without_maps(data_type))])
}

/// Hashes every row of a batch, whose columns must all be hashable.
pub fn hash(batch: &RecordBatch) -> Result<Hashes, ArrowError> {
    let mut bytes = 0;
    let columns: Vec<Vec<u128>> = batch
        .columns()
        .iter()
        .map(|column| values(column, &mut bytes))
        .collect::<Result<_, _>>()?;
    let mut together = Vec::with_capacity(columns.len() * 16);
    let rows = (0..batch.num_rows())
        .map(|row| {
            together.clear();
            for column in &columns {
                together.extend_from_slice(&column[row].to_le_bytes());
            }
            xxh3_128(&together)
        })
        .collect();
    Ok(Hashes {
        columns,
        rows,
        bytes,
    })
}

fn values(column: &ArrayRef, bytes: &mut u64) -> Result<Vec<u128>, ArrowError> {
    if let Some(vectors) = column.as_fixed_size_list_opt()
        && let Some(width) = vectors.value_type().primitive_width()
    {
        return fixed_vectors(vectors, width, bytes);
    }
    encoded(column, bytes)
}

fn encoded(column: &ArrayRef, bytes: &mut u64) -> Result<Vec<u128>, ArrowError> {
    let plain = without_maps(column.data_type());
    let column = if plain == *column.data_type() {
        column.clone()
    } else {
        make_array(as_lists(column.to_data())?)
    };
    let converter = RowConverter::new(vec![SortField::new(plain)])?;
    let rows = converter.convert_columns(&[column])?;
    Ok(rows
        .iter()
        .map(|row| {
            *bytes += row.as_ref().len() as u64;
            xxh3_128(row.as_ref())
        })
        .collect())
}

/// Vectors of numbers, which are most of the bytes of a table, go in without being encoded. It
/// depends on the row alone which way it takes, so that its hash is the same in every batch.
fn fixed_vectors(
    vectors: &FixedSizeListArray,
    width: usize,
    bytes: &mut u64,
) -> Result<Vec<u128>, ArrowError> {
    let numbers = vectors.values().to_data();
    let stride = width * usize::try_from(vectors.value_length()).unwrap_or_default();
    let stored = &numbers.buffers()[0].as_slice()[numbers.offset() * width..];
    (0..vectors.len())
        .map(|row| {
            if vectors.is_null(row) || vectors.value(row).null_count() > 0 {
                let alone: ArrayRef = Arc::new(vectors.slice(row, 1));
                return Ok(encoded(&alone, bytes)?[0]);
            }
            *bytes += stride as u64;
            Ok(xxh3_128(&stored[row * stride..(row + 1) * stride]))
        })
        .collect()
}

/// The type with every map as the list of its entries, which has the same layout: arrow-row
/// knows lists only.
fn without_maps(data_type: &DataType) -> DataType {
    let inner = |field: &Arc<Field>| {
        let plain = without_maps(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(plain))
    };
    match data_type {
        DataType::Map(entries, _) => DataType::List(inner(entries)),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Fields>()),
        other => other.clone(),
    }
}

fn as_lists(data: ArrayData) -> Result<ArrayData, ArrowError> {
    let plain = without_maps(data.data_type());
    if plain == *data.data_type() {
        return Ok(data);
    }
    let children = data
        .child_data()
        .iter()
        .cloned()
        .map(as_lists)
        .collect::<Result<_, _>>()?;
    data.into_builder()
        .data_type(plain)
        .child_data(children)
        .build()
}

#[cfg(test)]
#[path = "hashing_tests.rs"]
mod tests;
