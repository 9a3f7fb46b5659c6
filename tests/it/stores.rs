//! An object store that writes down every request, and can do something before one.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Read,
    Write,
    Delete,
    List,
    Copy,
}

/// Something to do before a request goes on.
pub type Before = Arc<dyn Fn(Op, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Wraps every store of a table, and keeps what it saw.
#[derive(Clone, Default)]
pub struct Watch {
    seen: Arc<Mutex<Vec<(Op, String)>>>,
    before: Option<Before>,
}

impl Watch {
    /// Does something before each request.
    pub fn before(before: Before) -> Self {
        Self {
            before: Some(before),
            ..Self::default()
        }
    }

    /// The paths of all requests of a kind, oldest first.
    pub fn paths(&self, op: Op) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let of_kind = seen.iter().filter(|(found, _)| *found == op);
        of_kind.map(|(_, path)| path.clone()).collect()
    }

    /// Requests of a kind whose path holds a text.
    pub fn count(&self, op: Op, text: &str) -> usize {
        let paths = self.paths(op);
        paths.iter().filter(|path| path.contains(text)).count()
    }

    fn note(&self, op: Op, path: &str) {
        self.seen.lock().unwrap().push((op, path.to_owned()));
    }

    async fn pass(&self, op: Op, path: &Path) {
        self.note(op, path.as_ref());
        if let Some(before) = &self.before {
            before(op, path.to_string()).await;
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl WrappingObjectStore for Watch {
    fn wrap(&self, _: &str, inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Watched {
            inner,
            watch: self.clone(),
        })
    }

    fn wrap_paginated(
        &self,
        _: &str,
        _: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        None
    }
}

#[derive(Debug)]
struct Watched {
    inner: Arc<dyn ObjectStore>,
    watch: Watch,
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.watch.pass(Op::Write, location).await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.watch.pass(Op::Write, location).await;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.watch.pass(Op::Read, location).await;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        self.watch.pass(Op::Read, location).await;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let watch = self.watch.clone();
        let locations = locations.inspect(move |location| {
            if let Ok(location) = location {
                watch.note(Op::Delete, location.as_ref());
            }
        });
        self.inner.delete_stream(locations.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.watch.note(Op::List, prefix.map_or("", AsRef::as_ref));
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.watch.note(Op::List, prefix.map_or("", AsRef::as_ref));
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.watch.note(Op::List, prefix.map_or("", AsRef::as_ref));
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.watch.pass(Op::Copy, to).await;
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.watch.pass(Op::Copy, to).await;
        self.inner.rename_opts(from, to, options).await
    }
}
