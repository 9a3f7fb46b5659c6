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

#![warn(missing_docs, clippy::allow_attributes)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used))]

pub mod audit;
pub mod cli;
pub mod clock;
pub mod compact;
pub mod emit;
pub mod error;
pub mod exit;
pub mod redact;
pub mod report;
pub mod run;
pub mod schemas;
pub mod spec;
pub mod state;
pub mod step;
pub mod stop;
pub mod table;
pub mod verify;

pub use run::{Process, run};
