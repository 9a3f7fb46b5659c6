//! An object store that writes down every request, can do something before one, and can let
//! some of them fail.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, ready};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
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

/// Which requests of a kind meet a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The nth, the 2nth and so on.
    Every(u64),
    /// The nth and all after it.
    From(u64),
}

impl Which {
    fn hits(self, number: u64) -> bool {
        match self {
            Self::Every(n) => number.is_multiple_of(n),
            Self::From(n) => number >= n,
        }
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not done, and fails as a store that is overloaded says it.
    Fails,
    /// It is done, but its answer is lost.
    AnswerLost,
    /// It is done late.
    Late(Duration),
    /// It never ends.
    Hangs,
    /// It fails as on a full disk, once this many bytes were written.
    Full(u64),
}

/// Faults of one kind of request.
#[derive(Debug)]
pub struct Faults {
    op: Op,
    which: Which,
    fault: Fault,
    seen: AtomicU64,
    hits: AtomicU64,
    written: AtomicU64,
}

impl Faults {
    pub fn new(op: Op, which: Which, fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            op,
            which,
            fault,
            seen: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            written: AtomicU64::new(0),
        })
    }

    /// Requests that met the fault.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// What happens to those requests.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether the answer of the request is to be lost; an error if the request fails.
    async fn meet(&self, op: Op, bytes: u64) -> Result<bool> {
        if op != self.op
            || !self
                .which
                .hits(self.seen.fetch_add(1, Ordering::Relaxed) + 1)
        {
            return Ok(false);
        }
        if let Fault::Full(limit) = self.fault
            && self.written.fetch_add(bytes, Ordering::Relaxed) + bytes <= limit
        {
            return Ok(false);
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Fails => Err(overloaded()),
            Fault::AnswerLost => Ok(true),
            Fault::Late(delay) => {
                tokio::time::sleep(delay).await;
                Ok(false)
            }
            Fault::Hangs => std::future::pending().await,
            Fault::Full(_) => Err(full()),
        }
    }
}

fn overloaded() -> object_store::Error {
    let source = "Server returned non-2xx status code: 503 Service Unavailable: <Code>SlowDown</Code> <RequestId>4442587FB7D0A2F9</RequestId>";
    object_store::Error::Generic {
        store: "S3",
        source: source.into(),
    }
}

/// As the local file system says it.
fn full() -> object_store::Error {
    object_store::Error::Generic {
        store: "LocalFileSystem",
        source: Box::new(std::io::Error::from_raw_os_error(28)),
    }
}

/// Something to do before a request goes on.
pub type Before = Arc<dyn Fn(Op, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Wraps every store of a table, and keeps what it saw.
#[derive(Clone, Default)]
pub struct Watch {
    seen: Arc<Mutex<Vec<(Op, String)>>>,
    before: Option<Before>,
    faults: Option<Arc<Faults>>,
}

impl Watch {
    /// Lets some requests meet a fault.
    pub fn with_faults(faults: &Arc<Faults>) -> Self {
        Self {
            faults: Some(faults.clone()),
            ..Self::default()
        }
    }

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

    /// Does what comes before a request, then the request.
    async fn pass<T>(
        &self,
        op: Op,
        path: &Path,
        bytes: usize,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.note(op, path.as_ref());
        if let Some(before) = &self.before {
            before(op, path.to_string()).await;
        }
        let Some(faults) = &self.faults else {
            return request.await;
        };
        let lost = faults.meet(op, bytes as u64).await?;
        let answer = request.await;
        if lost { Err(overloaded()) } else { answer }
    }

    /// A listing, which fails before its first entry.
    fn pass_list(
        &self,
        prefix: Option<&Path>,
        entries: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = prefix.map_or_else(String::new, ToString::to_string);
        self.note(Op::List, &path);
        let (before, faults) = (self.before.clone(), self.faults.clone());
        let first = async move {
            if let Some(before) = before {
                before(Op::List, path).await;
            }
            let Some(faults) = faults else {
                return entries;
            };
            match faults.meet(Op::List, 0).await {
                Ok(false) => entries,
                Ok(true) => stream::once(ready(Err(overloaded()))).boxed(),
                Err(error) => stream::once(ready(Err(error))).boxed(),
            }
        };
        stream::once(first).flatten().boxed()
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
        let bytes = payload.content_length();
        let request = self.inner.put_opts(location, payload, options);
        self.watch.pass(Op::Write, location, bytes, request).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let request = self.inner.put_multipart_opts(location, options);
        let inner = self.watch.pass(Op::Write, location, 0, request).await?;
        Ok(Box::new(Upload {
            inner,
            location: location.clone(),
            watch: self.watch.clone(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let request = self.inner.get_opts(location, options);
        self.watch.pass(Op::Read, location, 0, request).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        let request = self.inner.get_ranges(location, ranges);
        self.watch.pass(Op::Read, location, 0, request).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (inner, watch) = (self.inner.clone(), self.watch.clone());
        locations
            .then(move |location| {
                let (inner, watch) = (inner.clone(), watch.clone());
                async move {
                    let location = location?;
                    let request = inner.delete(&location);
                    watch.pass(Op::Delete, &location, 0, request).await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.watch.pass_list(prefix, self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let entries = self.inner.list_with_offset(prefix, offset);
        self.watch.pass_list(prefix, entries)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let request = self.inner.list_with_delimiter(prefix);
        let folder = prefix.cloned().unwrap_or_default();
        self.watch.pass(Op::List, &folder, 0, request).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let request = self.inner.copy_opts(from, to, options);
        self.watch.pass(Op::Copy, to, 0, request).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let request = self.inner.rename_opts(from, to, options);
        self.watch.pass(Op::Copy, to, 0, request).await
    }
}

/// A large file that is written in parts.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    location: Path,
    watch: Watch,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (watch, location) = (self.watch.clone(), self.location.clone());
        let bytes = payload.content_length();
        let request = self.inner.put_part(payload);
        async move { watch.pass(Op::Write, &location, bytes, request).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let request = self.inner.complete();
        self.watch.pass(Op::Write, &self.location, 0, request).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
