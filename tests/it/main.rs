//! Tests on real tables, through the library and through the binary.

#[path = "../support/tables.rs"]
mod tables;

mod acceptance;
mod harness;
mod verify;
