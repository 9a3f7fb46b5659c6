//! Tests that make real LanceDB tables in temporary folders.

mod verify;
