//! How a run knows its own commits again: every transaction carries the run's properties.

use std::collections::HashMap;

use crate::error::Result;
use crate::table::Table;
use crate::table::history::{Commit, RESERVATION, RUN_PROPERTY};

/// Property that names the execution of the flow, for people.
const EXECUTION: &str = "lancedb_guard.execution_id";

/// Who commits.
#[derive(Debug, Clone)]
pub struct Identity {
    properties: HashMap<String, String>,
}

impl Identity {
    /// A new run of an execution.
    #[must_use]
    pub fn new(execution_id: &str) -> Self {
        Self {
            properties: HashMap::from([
                (RUN_PROPERTY.to_owned(), uuid::Uuid::new_v4().to_string()),
                (EXECUTION.to_owned(), execution_id.to_owned()),
            ]),
        }
    }

    /// The properties that every commit of the run carries.
    #[must_use]
    pub fn properties(&self) -> &HashMap<String, String> {
        &self.properties
    }

    /// The versions after `before`, up to `after`, that this run committed; none if it committed
    /// nothing. A reservation of fragment ids counts as the run's own whoever made it: it changes
    /// nothing.
    ///
    /// # Errors
    /// Where a manifest cannot be read.
    pub async fn committed_versions(
        &self,
        table: &Table,
        before: u64,
        after: u64,
    ) -> Result<Vec<u64>> {
        if before >= after {
            return Ok(Vec::new());
        }
        let history = table.history(before + 1, after).await?;
        let own = |commit: &Commit| {
            commit.properties.get(RUN_PROPERTY) == self.properties.get(RUN_PROPERTY)
        };
        if !history.values().any(own) {
            return Ok(Vec::new());
        }
        Ok(history
            .into_values()
            .filter(|commit| commit.operation == RESERVATION || own(commit))
            .map(|commit| commit.version)
            .collect())
    }
}
