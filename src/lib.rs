//! `lancedb-guard` keeps LanceDB vector tables healthy.
//!
//! ```text
//! spec (JSON) -> spec/     parse and validate
//!             -> table/    the only module that names lance or lancedb types
//!             -> audit/    pure: snapshot -> pressures -> decision -> plan
//!             -> compact/  drives table/: index merge, rewrite, catch-up, checks, prune
//!             -> verify/   drives table/: checks, canary
//!             -> report/   wire types of outputs, metrics, state, errors
//!             -> emit/     Kestra lines, text for people, JSON
//! ```

pub mod audit;
pub mod clock;
pub mod compact;
pub mod error;
pub mod exit;
pub mod redact;
pub mod report;
pub mod spec;
pub mod state;
pub mod table;
pub mod verify;
