//! What the manifest of one version says: counts, fragments, schema, index names.

use std::collections::BTreeSet;

use lance_index::is_system_index;
use lance_table::format::IndexMetadata;

use super::fragments::FragmentSketch;
use super::{Table, fault};
use crate::error::Result;
use crate::report::baseline::VersionCounts;

/// One version, as far as two versions are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionView {
    /// Fragments, live rows and deleted rows.
    pub counts: VersionCounts,
    /// The ids of the fragments; lance gives out each id once.
    pub fragment_ids: BTreeSet<u64>,
    /// The schema, one line a field, then one line a metadata entry; see [`Table::schema_lines`].
    pub schema: Vec<String>,
}

impl Table {
    /// Fragments, live rows and deleted rows of the version that is read.
    ///
    /// # Errors
    /// As [`Table::fragment_sketches`].
    pub async fn counts(&self) -> Result<VersionCounts> {
        let fragments = self.fragment_sketches().await?;
        Ok(VersionCounts {
            version: self.version(),
            fragments: fragments.len() as u64,
            rows: fragments.iter().map(FragmentSketch::live_rows).sum(),
            tombstones: fragments.iter().map(|f| f.deleted_rows).sum(),
        })
    }

    /// The version that is read, as far as two versions are compared.
    ///
    /// # Errors
    /// As [`Table::counts`].
    pub async fn view(&self) -> Result<VersionView> {
        Ok(VersionView {
            counts: self.counts().await?,
            fragment_ids: self.dataset.iter_fragments().map(|f| f.id).collect(),
            schema: self.schema_lines(),
        })
    }

    /// The schema as text: `path: type [nullable] #field-id {metadata}` for each field, depth
    /// first, then the metadata of the schema itself. Two equal lists are equal schemas.
    #[must_use]
    pub fn schema_lines(&self) -> Vec<String> {
        let schema = self.dataset.schema();
        let mut lines: Vec<String> = schema
            .fields_pre_order()
            .map(|field| {
                let path = schema
                    .field_path_minimal(field.id)
                    .unwrap_or_else(|_| field.name.clone());
                let nullable = if field.nullable { " nullable" } else { "" };
                let metadata = sorted(&field.metadata);
                let metadata = if metadata.is_empty() {
                    String::new()
                } else {
                    format!(" {{{}}}", metadata.join(", "))
                };
                format!(
                    "{path}: {}{nullable} #{}{metadata}",
                    field.logical_type, field.id
                )
            })
            .collect();
        lines.extend(
            sorted(&schema.metadata)
                .into_iter()
                .map(|entry| format!("metadata {entry}")),
        );
        lines
    }

    /// The names of the table's indices, those that this build cannot read included, without
    /// lance's own bookkeeping.
    ///
    /// # Errors
    /// Where the manifest cannot be read.
    pub async fn index_names(&self) -> Result<BTreeSet<String>> {
        Ok(self
            .recorded_indices()
            .await?
            .into_iter()
            .filter(|index| !is_system_index(index))
            .map(|index| index.name)
            .collect())
    }

    /// Every index segment that the manifest records. Lance's own list leaves out what this
    /// build cannot read; its files are referred to all the same.
    pub(super) async fn recorded_indices(&self) -> Result<Vec<IndexMetadata>> {
        let doing = "reading the list of indices";
        let store = self
            .dataset
            .object_store(None)
            .await
            .map_err(|e| fault::of_lance(&e, doing))?;
        lance_table::io::manifest::read_manifest_indexes(
            &store,
            self.dataset.manifest_location(),
            self.dataset.manifest(),
        )
        .await
        .map_err(|e| fault::of_lance(&e, doing))
    }
}

fn sorted(metadata: &std::collections::HashMap<String, String>) -> Vec<String> {
    let mut entries: Vec<String> = metadata
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    entries.sort_unstable();
    entries
}
