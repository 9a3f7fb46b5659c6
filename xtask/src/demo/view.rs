//! The table before and after, side by side.

use anyhow::{Context, Result};

use super::step::Answer;

/// One line of the comparison.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    name: &'static str,
    before: String,
    after: String,
}

/// Compares two audits.
pub fn compare(before: &Answer, after: &Answer) -> Result<Vec<Line>> {
    let count = |name, pointer| -> Result<Line> {
        Ok(Line {
            name,
            before: thousands(before.count(pointer)?),
            after: thousands(after.count(pointer)?),
        })
    };
    Ok(vec![
        count("fragments", "/fragment_count")?,
        count("rows", "/active_rows")?,
        count("deleted rows (tombstones)", "/tombstone_count")?,
        count("versions", "/version_count")?,
        count("bytes in use", "/audit_manifest/storage/live_bytes")?,
        count("bytes on disk", "/audit_manifest/storage/bytes_on_disk")?,
        Line {
            name: "rows in every index",
            before: thousands(rows_indexed(before)?),
            after: thousands(rows_indexed(after)?),
        },
        Line {
            name: "status",
            before: text(before, "/overall_status")?,
            after: text(after, "/overall_status")?,
        },
    ])
}

/// The lines as a text table.
pub fn table(lines: &[Line]) -> String {
    let width = |cell: fn(&Line) -> &str| {
        let longest = lines.iter().map(|line| cell(line).chars().count()).max();
        longest.unwrap_or_default().max("before".len())
    };
    let names = width(|line| line.name);
    let (before, after) = (width(|line| &line.before), width(|line| &line.after));
    let mut out = format!(
        "  {:names$}  {:>before$}  {:>after$}\n",
        "", "before", "after"
    );
    for line in lines {
        out += &format!(
            "  {:names$}  {:>before$}  {:>after$}\n",
            line.name, line.before, line.after
        );
    }
    out
}

fn text(audit: &Answer, pointer: &str) -> Result<String> {
    let value = audit.get(pointer)?;
    Ok(value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned))
}

/// Rows that the index which lags most covers.
fn rows_indexed(audit: &Answer) -> Result<u64> {
    let indices = audit.get("/audit_manifest/indices")?;
    indices
        .as_array()
        .and_then(|all| all.iter().map(|index| index["rows_indexed"].as_u64()).min())
        .flatten()
        .context("the audit names no index with its rows")
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn audit(fragments: u64, indexed: [u64; 2]) -> Answer {
        Answer {
            title: "1-audit".to_owned(),
            outputs: json!({
                "fragment_count": fragments, "active_rows": 1732, "tombstone_count": 0,
                "version_count": 108, "overall_status": "HEALTHY",
                "audit_manifest": {
                    "storage": {"live_bytes": 1000, "bytes_on_disk": 1_234_567},
                    "indices": [{"rows_indexed": indexed[0]}, {"rows_indexed": indexed[1]}]
                }
            }),
        }
    }

    #[test]
    fn the_comparison_shows_the_index_that_lags_most() {
        let lines = compare(&audit(62, [900, 682]), &audit(1, [1732, 1732])).unwrap();
        assert_eq!(
            table(&lines).lines().collect::<Vec<_>>(),
            [
                "                                before      after",
                "  fragments                         62          1",
                "  rows                           1,732      1,732",
                "  deleted rows (tombstones)          0          0",
                "  versions                         108        108",
                "  bytes in use                   1,000      1,000",
                "  bytes on disk              1,234,567  1,234,567",
                "  rows in every index              682      1,732",
                "  status                       HEALTHY    HEALTHY",
            ]
        );
    }

    #[test]
    fn long_numbers_are_grouped_by_three_digits() {
        let grouped = [0, 999, 1000, 12_345, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
