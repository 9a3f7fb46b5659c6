//! Tests on real tables, through the library and through the binary.

#[path = "../support/tables.rs"]
mod tables;

mod acceptance;
mod compat;
mod fixtures;
mod harness;
mod races;
mod reads;
mod retention;
mod stores;
mod verify;
