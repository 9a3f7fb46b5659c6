//! A spec of each step that validates and, with the right location, works.

use super::Step;

/// A spec of the step, as pretty JSON.
#[must_use]
pub const fn example(step: Step) -> &'static str {
    match step {
        Step::Audit => {
            r#"{
  "spec_version": 1,
  "step": "audit",
  "db_uri": "/data/lancedb",
  "table_name": "documents",
  "execution_id": "manual",
  "fragment_count_threshold": 20,
  "critical_fragment_threshold": 100,
  "tombstone_percent_threshold": 15,
  "stale_version_retention_hours": 24,
  "stale_version_threshold": 100,
  "unindexed_percent_threshold": 20,
  "target_rows_per_fragment": 100000,
  "min_consecutive_runs": 2,
  "previous_state": {}
}
"#
        }
        Step::Compact => {
            r#"{
  "spec_version": 1,
  "step": "compact",
  "db_uri": "/data/lancedb",
  "table_name": "documents",
  "execution_id": "manual",
  "target_rows_per_fragment": 100000,
  "stale_version_retention_hours": 24,
  "dry_run": true
}
"#
        }
        Step::Verify => {
            r#"{
  "spec_version": 1,
  "step": "verify",
  "db_uri": "/data/lancedb",
  "table_name": "documents",
  "execution_id": "manual",
  "level": "standard",
  "canary": { "queries": 5, "neighbours": 10, "seed": 42 },
  "previous_state": {}
}
"#
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_valid_spec() {
        for step in Step::ALL {
            let checked = crate::spec::parse(example(step).as_bytes(), std::path::Path::new("/"));
            assert_eq!(checked.unwrap().spec.common().step, step);
        }
    }
}
