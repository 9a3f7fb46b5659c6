//! The ceiling: a step does no more than somebody approved, at any time of its run.
//!
//! It is checked before anything is changed, again whenever a phase plans anew (after a lost
//! race, for the next batch), and once more right before the prune deletes.

use crate::error::{ErrorKind, GuardError, Result};
use crate::report::approval::{Approval, ApprovalStatus};

/// What was approved; nothing if the spec has no approval.
#[derive(Debug, Clone, Copy)]
pub struct Ceiling<'a>(pub Option<&'a Approval>);

/// One item in which a plan exceeds what was approved.
struct Excess {
    item: &'static str,
    approved: String,
    allowed: String,
    planned: String,
}

impl Ceiling<'_> {
    /// Whether there is a ceiling, for the outputs of a step that stayed below it.
    #[must_use]
    pub fn status(self) -> ApprovalStatus {
        match self.0 {
            None => ApprovalStatus::NotGiven,
            Some(_) => ApprovalStatus::WithinAllowance,
        }
    }

    /// Whether the prune has a limit in bytes, which only lance can tell.
    #[must_use]
    pub fn limits_pruned_bytes(self) -> bool {
        self.0
            .is_some_and(|approval| approval.bytes_to_prune.is_some())
    }

    /// Whether what is planned, together with what was done already, stays below the ceiling.
    ///
    /// # Errors
    /// `plan_exceeds_approval`, with each item that exceeds it and both plans.
    pub fn check(self, planned: &Approval) -> Result<()> {
        let Some(approved) = self.0 else {
            return Ok(());
        };
        let excesses = excesses(approved, planned);
        if excesses.is_empty() {
            return Ok(());
        }
        let told: Vec<String> = excesses
            .iter()
            .map(|e| format!("{} is {}, allowed is {}", e.item, e.planned, e.allowed))
            .collect();
        let items: Vec<&str> = excesses.iter().map(|e| e.item).collect();
        let mut error = GuardError::new(
            ErrorKind::PlanExceedsApproval,
            format!(
                "the plan exceeds what was approved, with its allowance of {} %: {}",
                approved.allowance_percent,
                told.join("; ")
            ),
        )
        .hint("Nothing beyond the approval was started. Run the audit again and have its plan approved.")
        .with("exceeded", items.join(", "))
        .with("approved_plan", json(approved))
        .with("planned", json(planned));
        for excess in &excesses {
            error = error.with(
                excess.item,
                format!(
                    "approved {}, allowed {}, planned {}",
                    excess.approved, excess.allowed, excess.planned
                ),
            );
        }
        Err(error)
    }
}

fn json(approval: &Approval) -> String {
    serde_json::to_string(approval).unwrap_or_default()
}

fn excesses(approved: &Approval, planned: &Approval) -> Vec<Excess> {
    let percent = approved.allowance_percent;
    let mut found = Vec::new();
    for (item, approved, planned) in [
        (
            "bytes_to_rewrite",
            approved.bytes_to_rewrite,
            planned.bytes_to_rewrite,
        ),
        (
            "fragments_removed",
            Some(approved.fragments_removed),
            Some(planned.fragments_removed),
        ),
        (
            "fragments_added",
            Some(approved.fragments_added),
            Some(planned.fragments_added),
        ),
        (
            "versions_to_prune",
            Some(approved.versions_to_prune),
            Some(planned.versions_to_prune),
        ),
        (
            "bytes_to_prune",
            approved.bytes_to_prune,
            planned.bytes_to_prune,
        ),
    ] {
        // What nobody could tell when it was approved is not limited.
        let Some(approved) = approved else { continue };
        let allowed = allowed(approved, percent);
        // What nobody can tell now may be any size, and so is no less than too much.
        if planned.is_none_or(|planned| planned > allowed) {
            found.push(Excess {
                item,
                approved: approved.to_string(),
                allowed: allowed.to_string(),
                planned: planned.map_or_else(|| "not known".to_owned(), |n| n.to_string()),
            });
        }
    }
    let unnamed: Vec<&str> = planned
        .indices
        .iter()
        .filter(|name| !approved.indices.contains(name))
        .map(String::as_str)
        .collect();
    if !unnamed.is_empty() {
        let named = if approved.indices.is_empty() {
            "none".to_owned()
        } else {
            approved.indices.join(", ")
        };
        found.push(Excess {
            item: "indices",
            approved: named.clone(),
            allowed: named,
            planned: unnamed.join(", "),
        });
    }
    found
}

/// What is approved and the allowance on it, rounded down.
fn allowed(approved: u64, percent: u64) -> u64 {
    let allowed = u128::from(approved) * (100 + u128::from(percent)) / 100;
    u64::try_from(allowed).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval() -> Approval {
        Approval {
            plan_id: "p".to_owned(),
            read_version: 1,
            bytes_to_rewrite: Some(1000),
            fragments_removed: 10,
            fragments_added: 1,
            versions_to_prune: 4,
            bytes_to_prune: None,
            indices: vec!["a".to_owned()],
            allowance_percent: 25,
        }
    }

    fn exceeded(planned: &Approval) -> String {
        match Ceiling(Some(&approval())).check(planned) {
            Ok(()) => String::new(),
            Err(error) => error.context["exceeded"].clone(),
        }
    }

    #[test]
    fn the_allowance_is_on_each_item_and_rounded_down() {
        assert_eq!(exceeded(&approval()), "");
        for (planned, items) in [
            (1250, ""),
            (1251, "bytes_to_rewrite"),
            (u64::MAX, "bytes_to_rewrite"),
        ] {
            let planned = Approval {
                bytes_to_rewrite: Some(planned),
                ..approval()
            };
            assert_eq!(exceeded(&planned), items);
        }
        let planned = Approval {
            fragments_removed: 13,
            fragments_added: 2,
            versions_to_prune: 6,
            ..approval()
        };
        assert_eq!(
            exceeded(&planned),
            "fragments_removed, fragments_added, versions_to_prune"
        );
        assert_eq!(allowed(u64::MAX, 1000), u64::MAX);
        assert_eq!(allowed(3, 0), 3);
    }

    #[test]
    fn an_index_that_was_not_named_exceeds_whatever_the_allowance() {
        let planned = Approval {
            indices: vec!["a".to_owned(), "b".to_owned()],
            ..approval()
        };
        assert_eq!(exceeded(&planned), "indices");
    }

    #[test]
    fn what_was_unknown_is_not_limited_and_what_became_unknown_is_too_much() {
        let planned = Approval {
            bytes_to_prune: Some(u64::MAX),
            ..approval()
        };
        assert_eq!(exceeded(&planned), "");
        let planned = Approval {
            bytes_to_rewrite: None,
            ..approval()
        };
        assert_eq!(exceeded(&planned), "bytes_to_rewrite");
    }

    #[test]
    fn without_an_approval_nothing_is_too_much() {
        let planned = Approval {
            bytes_to_rewrite: None,
            fragments_removed: u64::MAX,
            ..approval()
        };
        assert!(Ceiling(None).check(&planned).is_ok());
        assert_eq!(Ceiling(None).status(), ApprovalStatus::NotGiven);
    }
}
