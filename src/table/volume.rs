//! The volume that the table lies on, as far as it can be asked.

use std::path::PathBuf;

use super::{OpenOptions, Table};
use crate::spec::{Location, TableName};

/// Where the free space of a table's storage is known from.
#[derive(Debug, Clone)]
pub(super) enum Volume {
    /// An object store, which does not tell and is not full in any way that counts here.
    ObjectStore,
    /// The volume of a folder.
    Folder(PathBuf),
    /// What a test gives.
    Given(u64),
}

impl Volume {
    pub(super) fn of(location: &Location, name: &TableName, options: &OpenOptions) -> Self {
        match (options.free_bytes, location) {
            (Some(bytes), _) => Self::Given(bytes),
            // The folder of the table may be a volume of its own.
            (None, Location::Local(path)) => {
                Self::Folder(path.join(format!("{}.lance", name.as_str())))
            }
            (None, Location::Remote(_)) => Self::ObjectStore,
        }
    }
}

impl Table {
    /// Bytes that this process may still write to the table's volume; none where that is not
    /// known, as on an object store. A quota of the user is not seen.
    #[must_use]
    pub fn free_bytes(&self) -> Option<u64> {
        match &self.volume {
            Volume::ObjectStore => None,
            Volume::Given(bytes) => Some(*bytes),
            Volume::Folder(folder) => free_bytes_of(folder),
        }
    }
}

#[cfg(unix)]
fn free_bytes_of(folder: &std::path::Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    // `f_bavail` leaves out what is reserved for root.
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes_of(_: &std::path::Path) -> Option<u64> {
    None
}
