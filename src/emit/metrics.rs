//! Metrics of a run, taken from its outputs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::report::audit::AuditOutputs;
use crate::report::compact::CompactOutputs;
use crate::report::metrics::{Metric, MetricType};
use crate::report::outcome::Outcome;
use crate::report::text::shorten;
use crate::report::verify::VerifyOutputs;

/// Characters that a tag has at most.
const TAG_LENGTH: usize = 500;

/// The metrics of a run that took so long. A run whose step is not known has none.
#[must_use]
pub fn of(outcome: &Outcome, duration: Duration) -> Vec<Metric> {
    let Some(step) = outcome.step() else {
        return Vec::new();
    };
    let mut tags = BTreeMap::from([("step".to_owned(), step.name().to_owned())]);
    if let Some(table) = outcome.table() {
        // A tag is repeated with every metric and is no place for a long text.
        tags.insert("table".to_owned(), shorten(&table.key, TAG_LENGTH));
    }
    let mut list = List {
        tags,
        metrics: Vec::new(),
    };
    list.timer("duration", duration.as_secs_f64());
    match outcome {
        Outcome::Audit(outputs) => audit(outputs, &mut list),
        Outcome::Compact(outputs) => compact(outputs, &mut list),
        Outcome::Verify(outputs) => verify(outputs, &mut list),
        Outcome::Failure(_) => {}
    }
    list.metrics
}

fn audit(outputs: &AuditOutputs, list: &mut List) {
    let storage = &outputs.audit_manifest.storage;
    list.gauge("fragments", outputs.fragment_count);
    list.gauge("tombstones", outputs.tombstone_count);
    list.gauge("versions", outputs.version_count);
    list.gauge("bytes_on_disk", storage.bytes_on_disk);
    list.gauge("live_bytes", storage.live_bytes);
}

fn compact(outputs: &CompactOutputs, list: &mut List) {
    let compaction = &outputs.compaction_stats;
    let cleanup = &outputs.cleanup_stats;
    list.counter("fragments_removed", compaction.actual.fragments_removed);
    list.counter("tombstones_cleared", compaction.actual.tombstones_cleared);
    list.counter("versions_pruned", cleanup.actual.versions);
    list.counter("bytes_pruned", cleanup.actual.bytes);
    list.counter("conflicts", compaction.conflicts);
    for (name, duration_ms) in [
        ("index_merge", outputs.index_merge.duration_ms),
        ("compaction", compaction.duration_ms),
        ("index_catch_up", outputs.index_catch_up.duration_ms),
        ("checks", outputs.checks.duration_ms),
        ("prune", cleanup.duration_ms),
    ] {
        list.timer(name, float(duration_ms) / 1000.0);
    }
}

fn verify(outputs: &VerifyOutputs, list: &mut List) {
    list.gauge("passed", outputs.verification_passed.into());
    if let Some(latency_ms) = outputs.canary_latency_ms {
        list.timer("canary_latency", latency_ms / 1000.0);
    }
}

struct List {
    tags: BTreeMap<String, String>,
    metrics: Vec<Metric>,
}

impl List {
    fn counter(&mut self, name: &str, value: u64) {
        self.push(name, MetricType::Counter, float(value));
    }

    fn gauge(&mut self, name: &str, value: u64) {
        self.push(name, MetricType::Gauge, float(value));
    }

    fn timer(&mut self, name: &str, seconds: f64) {
        // Kestra stores milliseconds.
        let seconds = (seconds * 1_000_000.0).round() / 1_000_000.0;
        self.push(name, MetricType::Timer, seconds);
    }

    fn push(&mut self, name: &str, metric_type: MetricType, value: f64) {
        self.metrics.push(Metric {
            name: name.to_owned(),
            metric_type,
            value,
            tags: self.tags.clone(),
        });
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Kestra's metrics are doubles; bytes above 2^53 may be rounded"
)]
fn float(value: u64) -> f64 {
    value as f64
}
