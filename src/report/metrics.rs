//! Metrics for Kestra.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How Kestra treats a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricType {
    /// Adds up.
    Counter,
    /// A value at a time.
    Gauge,
    /// A duration in seconds.
    Timer,
}

/// One metric. Kestra leaves a task running for ever on a metric without `value`, so it is
/// not optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of the metric.
    pub name: String,
    /// How it is treated.
    #[serde(rename = "type")]
    pub metric_type: MetricType,
    /// The value; seconds for a timer.
    pub value: f64,
    /// Tags `table` and `step`.
    pub tags: BTreeMap<String, String>,
}
