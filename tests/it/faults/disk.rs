//! A disk that fills up while a compaction writes.

use std::collections::BTreeSet;

use lancedb_guard::exit::Exit;
use serde_json::json;

use super::copies::Template;
use super::{check_run, facts};
use crate::stores::{Fault, Faults, Op, Watch, Which};

/// Steps between an empty disk and one that takes all.
const LEVELS: u64 = 24;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_midway_leaves_the_table_at_the_last_commit() {
    let template = Template::bloated("compact", json!({"stale_version_retention_hours": 1})).await;
    let all = Faults::new(Op::Write, Which::Every(1), Fault::Full(u64::MAX));
    let reference = template
        .copy()
        .run(&Watch::with_faults(&all))
        .await
        .unwrap();
    assert_eq!(all.hits(), 0);
    let needed = all.written();
    let reference = facts(&reference);
    let mut exits = BTreeSet::new();
    for level in 0..LEVELS {
        let limit = needed * level / LEVELS;
        let faults = Faults::new(Op::Write, Which::Every(1), Fault::Full(limit));
        exits.insert(check_run(&template.copy(), &template, &reference, &faults).await);
        assert!(faults.hits() > 0, "{limit} of {needed} bytes were enough");
    }
    assert_eq!(exits, [Exit::NotReachable, Exit::PartlyDone].into());
}
