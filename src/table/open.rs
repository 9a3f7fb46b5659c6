//! Finds and opens a table without creating anything.

use std::collections::BTreeMap;

use lance::dataset::ReadParams;
use lance_io::object_store::ObjectStoreParams;

use super::volume::Volume;
use super::{OpenOptions, Table, fault, table_id};
use crate::error::{ErrorKind, GuardError, Result};
use crate::spec::{Location, TableName};

/// Names that are shown where a table is not found.
const NEAREST_NAMES: usize = 3;

impl Table {
    /// Opens a table at its newest version, within the deadline of the options.
    ///
    /// # Errors
    /// `database_not_found`, `table_not_found`, `storage_*`, `manifest_scheme_mixed`,
    /// `table_too_new` or `table_damaged`.
    pub async fn open(
        location: &Location,
        name: &TableName,
        storage_options: &BTreeMap<String, String>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let opening = open(location, name, storage_options, options);
        tokio::time::timeout(options.deadline, opening)
            .await
            .unwrap_or_else(|_| Err(no_answer(location, options)))
    }
}

/// The error of a store that did not answer in time.
fn no_answer(location: &Location, options: &OpenOptions) -> GuardError {
    GuardError::new(
        ErrorKind::StorageUnreachable,
        format!(
            "{} did not answer within {} s",
            location.printable(),
            options.deadline.as_secs_f64()
        ),
    )
    .hint("Nothing was changed. Something accepts the connection and never answers: check the endpoint, a proxy or firewall on the way, and for a local path that the volume it lies on is still there.")
}

/// Whether a local database is there, and may be looked into.
async fn is_folder(path: &std::path::Path) -> Result<()> {
    let shown = path.display();
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(GuardError::new(
            ErrorKind::DatabaseNotFound,
            format!("{shown} is not a folder, and so no database"),
        )
        .hint("db_uri names the folder that holds the tables, not a file.")),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(GuardError::new(
            ErrorKind::StorageDenied,
            format!("the database folder {shown} may not be looked into"),
        )
        .hint("Run as a user who may read and write it, or change its permissions.")),
        Err(_) => Err(GuardError::new(
            ErrorKind::DatabaseNotFound,
            format!("there is no database folder {shown}"),
        )
        .hint("Check db_uri; in a container, check that the volume is mounted at this path.")),
    }
}

async fn open(
    location: &Location,
    name: &TableName,
    storage_options: &BTreeMap<String, String>,
    options: &OpenOptions,
) -> Result<Table> {
    // lancedb creates a local folder that does not exist, and a typing error in a path would
    // look like a database without tables.
    if let Location::Local(path) = location {
        is_folder(path).await?;
    }
    let doing = "opening the database";
    let connection = lancedb::connect(&location.to_open())
        .storage_options(storage_options.clone())
        .execute()
        .await
        .map_err(|e| fault::of_lancedb(&e, doing))?;
    let mut opening = connection.open_table(name.as_str());
    if let Some(wrapper) = &options.store_wrapper {
        opening = opening.lance_read_params(ReadParams {
            store_options: Some(ObjectStoreParams {
                object_store_wrapper: Some(wrapper.clone()),
                ..ObjectStoreParams::default()
            }),
            ..ReadParams::default()
        });
    }
    let lancedb = match opening.execute().await {
        Ok(table) => table,
        Err(lancedb::Error::TableNotFound { .. }) => {
            return Err(not_found(&connection, location, name).await);
        }
        Err(error) => return Err(fault::of_lancedb(&error, "opening the table")),
    };
    let wrapper = lancedb.dataset().ok_or_else(|| {
        GuardError::new(
            ErrorKind::ManagedDatabase,
            "the table is not stored in Lance files that this tool can reach",
        )
    })?;
    let dataset = wrapper
        .get()
        .await
        .map_err(|e| fault::of_lancedb(&e, "opening the table"))?;
    Ok(Table {
        id: table_id(location, name),
        dataset: dataset.as_ref().clone(),
        lancedb,
        volume: Volume::of(location, name, options),
    })
}

/// The error for a missing table, with the nearest names that exist.
async fn not_found(
    connection: &lancedb::Connection,
    location: &Location,
    name: &TableName,
) -> GuardError {
    let mut names = match connection.table_names().execute().await {
        Ok(names) => names,
        Err(error) => return fault::of_lancedb(&error, "listing the tables"),
    };
    let count = names.len();
    names.sort_by_cached_key(|other| {
        (
            strsim::damerau_levenshtein(name.as_str(), other),
            other.clone(),
        )
    });
    names.truncate(NEAREST_NAMES);
    let error = GuardError::new(
        ErrorKind::TableNotFound,
        format!(
            "the database {} has no table {}",
            location.printable(),
            name.as_str()
        ),
    )
    .with("tables_in_database", count);
    if names.iter().any(|other| other == name.as_str()) {
        error.hint("There is a folder of that name, but no version of a table in it.")
    } else if names.is_empty() {
        error.hint("The database holds no tables at all; check db_uri.")
    } else {
        error.hint(format!("Nearest names: {}.", names.join(", ")))
    }
}
