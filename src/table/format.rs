//! How the table is set up, as far as it matters to maintenance.

use super::Table;
use crate::redact;
use crate::report::table::FormatFacts;

impl Table {
    /// Whether a column keeps its payloads in files beside the data files.
    #[must_use]
    pub fn has_blob_files(&self) -> bool {
        self.dataset
            .schema()
            .fields_pre_order()
            .any(|field| field.is_blob_v2())
    }

    /// Storage version, row ids, bases and `lance.*` settings of the version that is read.
    #[must_use]
    pub fn format_facts(&self) -> FormatFacts {
        let manifest = self.dataset.manifest();
        FormatFacts {
            storage_version: manifest.data_storage_format.version.to_string(),
            stable_row_ids: manifest.uses_stable_row_ids(),
            shallow_clone: !manifest.base_paths.is_empty(),
            settings: self
                .dataset
                .config()
                .iter()
                .filter(|(key, _)| key.starts_with("lance."))
                .map(|(key, value)| (key.clone(), redact::text(value)))
                .collect(),
        }
    }
}
