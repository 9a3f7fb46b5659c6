//! Tests on real tables, through the library and through the binary.

#[path = "../support/tables.rs"]
mod tables;

mod acceptance;
mod approval;
mod budgets;
mod command_line;
mod compat;
mod faults;
mod fixtures;
mod guard;
mod harness;
mod hostile_specs;
mod races;
mod reads;
mod refusals;
mod replay;
mod retention;
mod stops;
mod stores;
mod verify;
mod wide_rows;
mod writers;
