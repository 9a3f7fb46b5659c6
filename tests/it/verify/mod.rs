//! Verify: every check holds on a healthy table, and fails on a table broken in its way.

mod bench;
mod canary;
mod contents;
mod files;
mod indices;
mod outcome;
mod recall;
mod scalar;
mod versions;
