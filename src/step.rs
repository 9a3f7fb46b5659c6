//! Which module does which step.

use crate::clock::Clock;
use crate::error::Result;
use crate::report::outcome::Outcome;
use crate::spec::TaskSpec;
use crate::table::Table;

/// Does the step of a spec on its open table.
///
/// # Errors
/// Whatever kept the step from answering. A failure after something was committed is no error
/// here: it stands in the outputs.
pub async fn run(spec: &TaskSpec, table: Table, clock: &Clock) -> Result<Outcome> {
    Ok(match spec {
        TaskSpec::Audit(spec) => {
            Outcome::Audit(Box::new(crate::audit::run(spec, &table, clock).await?))
        }
        TaskSpec::Compact(spec) => {
            Outcome::Compact(Box::new(crate::compact::run(spec, table, clock).await?))
        }
        TaskSpec::Verify(spec) => {
            Outcome::Verify(Box::new(crate::verify::run(spec, &table, clock).await?))
        }
    })
}
