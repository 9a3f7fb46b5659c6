//! Which module does which step.

use crate::clock::Clock;
use crate::error::Result;
use crate::report::outcome::Outcome;
use crate::spec::TaskSpec;
use crate::stop::Stop;
use crate::table::Table;

/// Does the step of a spec on its open table.
///
/// # Errors
/// Whatever kept the step from answering. A failure after something was committed is no error
/// here: it stands in the outputs.
pub async fn run(spec: &TaskSpec, table: Table, clock: &Clock, stop: &Stop) -> Result<Outcome> {
    Ok(match spec {
        TaskSpec::Audit(spec) => {
            // It only reads, and so can be dropped at any time.
            let outputs = stop.or(crate::audit::run(spec, &table, clock)).await?;
            Outcome::Audit(Box::new(outputs))
        }
        TaskSpec::Compact(spec) => Outcome::Compact(Box::new(
            crate::compact::run(spec, table, clock, stop).await?,
        )),
        TaskSpec::Verify(spec) => {
            let outputs = stop.or(crate::verify::run(spec, &table, clock)).await?;
            Outcome::Verify(Box::new(outputs))
        }
    })
}
