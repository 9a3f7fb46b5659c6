//! Looks up stored keys through a scalar index, and without it.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use futures::TryStreamExt;
use lance::dataset::scanner::Scanner;
use lance::dataset::{ProjectionRequest, ROW_ID};
use lance::datatypes::{format_field_path_minimal, parse_field_path};
use lance::deps::datafusion::functions::core::expr_fn::get_field;
use lance::deps::datafusion::functions::string::expr_fn::contains;
use lance::deps::datafusion::functions_nested::expr_fn::array_has;
use lance::deps::datafusion::logical_expr::{Expr, ident, lit};
use lance::deps::datafusion::scalar::ScalarValue;
use xxhash_rust::xxh3::xxh3_128;

use super::contents::Part;
use super::coverage::IndexCoverage;
use super::sampling::draw;
use super::{ROW_ADDR, Table, fault};
use crate::error::{ErrorKind, GuardError, Result};

const DOING: &str = "looking up keys";

/// Rows that are read in search of deleted ones, at most.
const READ_AT_MOST: usize = 65_536;
/// Rows that are read at once where only a key and an address are asked for.
const BATCH_ROWS: usize = 8192;
/// Letters of a text from which an index on its parts answers.
const SHORTEST_PART: usize = 3;

/// How an index is asked for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Rows whose value is the key.
    Equal,
    /// Rows whose list holds the key.
    Holds,
    /// Rows whose text contains the key.
    Contains,
}

/// Different values of an indexed column.
#[derive(Debug, Clone)]
pub struct Keys {
    column: Vec<String>,
    question: Question,
    values: BTreeSet<Key>,
}

/// A value, with its text to be sorted by.
#[derive(Debug, Clone)]
struct Key(String, ScalarValue);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Keys {
    /// No key for an index; none where it is not one that answers by key.
    #[must_use]
    pub fn none_for(table: &Table, index: &IndexCoverage) -> Option<Self> {
        let column = parse_field_path(&index.column).ok()?;
        let data_type = table.dataset.schema().field(&index.column)?.data_type();
        let kind = index.index_type.to_ascii_uppercase();
        let question = match data_type {
            _ if matches!(kind.as_str(), "INVERTED" | "FTS" | "RTREE") => return None,
            DataType::List(_) | DataType::LargeList(_) => Question::Holds,
            _ if matches!(kind.as_str(), "NGRAM" | "FM") => Question::Contains,
            _ => Question::Equal,
        };
        Some(Self {
            column,
            question,
            values: BTreeSet::new(),
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds these keys.
    pub fn extend(&mut self, other: Self) {
        self.values.extend(other.values);
    }

    /// Adds up to `count` values of a column, those that no filter finds left out.
    fn add(&mut self, values: &dyn Array, count: usize) -> Result<()> {
        for row in 0..values.len() {
            if self.values.len() >= count {
                break;
            }
            if values.is_null(row) {
                continue;
            }
            if self.question == Question::Holds && values.data_type().is_nested() {
                let inner: ArrayRef = match values.data_type() {
                    DataType::List(_) => values.as_list::<i32>().value(row),
                    DataType::LargeList(_) => values.as_list::<i64>().value(row),
                    _ => continue,
                };
                self.add(&inner, count)?;
                continue;
            }
            let value = ScalarValue::try_from_array(values, row)
                .map_err(|e| GuardError::new(ErrorKind::Internal, format!("reading a key: {e}")))?;
            let is_nan = match &value {
                ScalarValue::Float16(Some(value)) => value.is_nan(),
                ScalarValue::Float32(Some(value)) => value.is_nan(),
                ScalarValue::Float64(Some(value)) => value.is_nan(),
                _ => false,
            };
            let text = value.to_string();
            let too_short = self.question == Question::Contains && text.len() < SHORTEST_PART;
            if !is_nan && !too_short {
                self.values.insert(Key(text, value));
            }
        }
        Ok(())
    }

    fn filter(&self) -> Option<Expr> {
        let (top, below) = self.column.split_first()?;
        let column = below
            .iter()
            .fold(ident(top), |outer, part| get_field(outer, part.as_str()));
        let values = self.values.iter().map(|key| lit(key.1.clone()));
        match self.question {
            Question::Equal => Some(column.in_list(values.collect(), false)),
            Question::Holds => values
                .map(|value| array_has(column.clone(), value))
                .reduce(Expr::or),
            Question::Contains => values
                .map(|value| contains(column.clone(), value))
                .reduce(Expr::or),
        }
    }

    /// The path of the column.
    fn path(&self) -> String {
        let parts: Vec<&str> = self.column.iter().map(String::as_str).collect();
        format_field_path_minimal(&parts)
    }

    /// The column of a batch: a scan puts a nested one out under its path, a take inside the
    /// outer one. None where it is not there.
    fn column_of(&self, batch: &RecordBatch) -> Option<ArrayRef> {
        if let Some(flat) = batch.column_by_name(&self.path()) {
            return Some(flat.clone());
        }
        let (top, below) = self.column.split_first()?;
        below
            .iter()
            .try_fold(batch.column_by_name(top)?.clone(), |level, part| {
                level.as_struct_opt()?.column_by_name(part).cloned()
            })
    }
}

/// The rows that a lookup found, whatever their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// How many. A row that is found twice counts twice.
    pub count: u64,
    /// The sum of hashes of their addresses.
    sum: u128,
}

impl Table {
    /// Keys of the live rows of a part, chosen by the seed: the values of up to `count` rows.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn live_keys(
        &self,
        none: &Keys,
        part: &Part,
        count: usize,
        seed: u64,
    ) -> Result<Keys> {
        let mut keys = none.clone();
        let places = part.in_version(&draw(count, seed, part.rows()));
        if places.is_empty() {
            return Ok(keys);
        }
        let projection = ProjectionRequest::from_columns([keys.path()], self.dataset.schema());
        let batch = self
            .dataset
            .take(&places, projection)
            .await
            .map_err(|e| fault::of_lance(&e, DOING))?;
        if let Some(values) = keys.column_of(&batch) {
            keys.add(&values, count)?;
        }
        Ok(keys)
    }

    /// Keys of up to `count` rows that are deleted and still stored. No index may find them,
    /// unless a live row has the same key.
    ///
    /// # Errors
    /// Where the rows cannot be read.
    pub async fn deleted_keys(&self, none: &Keys, count: usize) -> Result<Keys> {
        let fault = |e: lance::Error| fault::of_lance(&e, DOING);
        let mut keys = none.clone();
        let part = self
            .part(|fragment| fragment.deletion_file.is_some())
            .await?;
        if part.fragments() == 0 {
            return Ok(keys);
        }
        let mut scan = self.key_scan(&keys, &part)?;
        scan.with_row_id().include_deleted_rows();
        let mut stream = scan.try_into_stream().await.map_err(fault)?;
        let mut read = 0;
        while let Some(batch) = stream.try_next().await.map_err(fault)? {
            let ids = batch.column_by_name(ROW_ID).cloned();
            if let (Some(ids), Some(values)) = (ids, keys.column_of(&batch)) {
                // A deleted row has no id.
                for row in (0..batch.num_rows()).filter(|row| ids.is_null(*row)) {
                    keys.add(&values.slice(row, 1), count)?;
                }
            }
            read += batch.num_rows();
            if keys.len() >= count || read >= READ_AT_MOST {
                break;
            }
        }
        Ok(keys)
    }

    fn key_scan(&self, keys: &Keys, part: &Part) -> Result<Scanner> {
        let mut scan = self.dataset.scan();
        scan.project(&[keys.path()])
            .map_err(|e| fault::of_lance(&e, DOING))?;
        scan.with_fragments(part.fragments.clone())
            .batch_size(BATCH_ROWS);
        Ok(scan)
    }

    /// The live rows of a part that have one of the keys: through the index of this name, or by
    /// reading the column. None where the engine does not ask that index.
    ///
    /// # Errors
    /// Where the index or the rows cannot be read.
    pub async fn look_up(
        &self,
        keys: &Keys,
        part: &Part,
        index: Option<&str>,
    ) -> Result<Option<FoundRows>> {
        let fault = |e: lance::Error| fault::of_lance(&e, DOING);
        let mut found = FoundRows::default();
        let Some(filter) = keys.filter() else {
            return Ok(Some(found));
        };
        let mut scan = self.dataset.scan();
        scan.empty_project().map_err(fault)?;
        scan.with_fragments(part.fragments.clone())
            .batch_size(BATCH_ROWS)
            .with_row_address()
            .filter_expr(filter)
            .use_scalar_index(index.is_some());
        if let Some(name) = index {
            let plan = scan.explain_plan(true).await.map_err(fault)?;
            if !plan.contains(&format!("@{name}(")) {
                return Ok(None);
            }
        }
        let mut stream = scan.try_into_stream().await.map_err(fault)?;
        while let Some(batch) = stream.try_next().await.map_err(fault)? {
            let addresses = batch
                .column_by_name(ROW_ADDR)
                .and_then(|column| column.as_primitive_opt::<UInt64Type>())
                .ok_or_else(|| {
                    GuardError::new(ErrorKind::Internal, "a scan gave no row addresses")
                })?;
            for address in addresses.values() {
                found.count += 1;
                found.sum = found.sum.wrapping_add(xxh3_128(&address.to_le_bytes()));
            }
        }
        Ok(Some(found))
    }
}
