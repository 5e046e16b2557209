//! Object stores: uploads while a shard runs, downloads for merging. Credentials come from the environment alone.

use super::Parts;
use super::part::{PartName, pack, unpack};
use crate::commands::Obstructed;
use crate::private;
use crate::terminal::warn;
use anyhow::{Context, Result};
use assize_engine::store::{PartMarks, RunDirectory, RunFile, restore_shard, runs_below};
use assize_engine::{Event, Listener, ProfileSuite, Round, Shard, runs_like};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, RetryConfig, WriteMultipart};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Time between parts: what a lost machine costs at most, against the number of objects.
const INTERVAL: Duration = Duration::from_secs(300);

/// Archives above this are uploaded piece by piece.
const ONE_PIECE: usize = 32 << 20;

/// Downloads at once.
const DOWNLOADS: usize = 8;

/// Retries of a request by the client, with growing pauses.
const RETRIES: usize = 6;

/// Uploads of the last part before giving up, on top of the client's own retries.
const LAST_ATTEMPTS: u32 = 5;

/// This build has object stores.
pub(crate) fn check() -> Result<()> {
    Ok(())
}

/// A store, and the prefix below which everything lies.
struct Place {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// The directory, where it is one on this machine.
    local: Option<PathBuf>,
    runtime: Runtime,
}

impl Place {
    fn open(url: &str) -> Result<Self> {
        super::check_url(url)?;
        // A second call finds the first one's provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (scheme, rest) = url.split_once("://").context("the URL was checked")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let explain = |error: object_store::Error| Obstructed {
            message: format!("cannot use `{url}`: {error}"),
            hint: "credentials and endpoint come from the environment: AWS_*, GOOGLE_*, AZURE_*"
                .to_owned(),
        };
        let retry = RetryConfig {
            max_retries: RETRIES,
            ..RetryConfig::default()
        };
        let store: Arc<dyn ObjectStore> = match scheme {
            "s3" => {
                let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap_or_default();
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                let builder = builder.with_allow_http(endpoint.starts_with("http://"));
                let builder = builder.with_retry(retry);
                Arc::new(builder.build().map_err(explain)?)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let builder = builder.with_retry(retry);
                Arc::new(builder.build().map_err(explain)?)
            }
            "az" => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                let builder = builder.with_retry(retry);
                Arc::new(builder.build().map_err(explain)?)
            }
            _ => {
                let made = private::directory(Path::new(rest));
                made.with_context(|| format!("cannot create `{rest}`"))?;
                Arc::new(LocalFileSystem::new_with_prefix(rest).map_err(explain)?)
            }
        };
        let prefix = match scheme {
            "file" => ObjectPath::default(),
            _ => ObjectPath::from(prefix),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        Ok(Self {
            store,
            prefix,
            local: (scheme == "file").then(|| rest.into()),
            runtime,
        })
    }

    fn path(&self, below: &str) -> ObjectPath {
        let parts = below.split('/');
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The parts below the prefix, of all shards or of one.
    fn parts(&self, shard: Option<Shard>) -> Result<Vec<(PartName, ObjectPath)>> {
        let below = match shard {
            Some(shard) => self.path(&PartName::folder(shard)),
            None => self.prefix.clone(),
        };
        let listed = self.store.list(Some(&below));
        let listed: Vec<_> = self.runtime.block_on(listed.try_collect())?;
        let mut parts: Vec<_> = listed
            .into_iter()
            .filter_map(|object| {
                Some((PartName::parse(object.location.as_ref())?, object.location))
            })
            .collect();
        parts.sort_by(|(a, _), (b, _)| {
            (a.shard, &a.run_id, a.number).cmp(&(b.shard, &b.run_id, b.number))
        });
        Ok(parts)
    }

    /// Puts an archive there, whole or not at all.
    fn upload(&self, archive: &Path, name: &PartName) -> Result<()> {
        let path = self.path(&name.path());
        let local = self.local.as_ref().map(|local| local.join(path.as_ref()));
        // In a directory, results are as private as they are in a run's.
        if let Some(parent) = local.as_ref().and_then(|local| local.parent()) {
            private::directory(parent)?;
        }
        self.put(archive, &path)?;
        if let Some(local) = local {
            std::fs::set_permissions(local, std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(())
    }

    fn put(&self, archive: &Path, path: &ObjectPath) -> Result<()> {
        let size = std::fs::metadata(archive)?.len() as usize;
        if size <= ONE_PIECE {
            let content = PutPayload::from(std::fs::read(archive)?);
            self.runtime.block_on(self.store.put(path, content))?;
            return Ok(());
        }
        self.runtime.block_on(async {
            use std::io::Read;
            let mut file = std::fs::File::open(archive)?;
            let mut upload = WriteMultipart::new(self.store.put_multipart(path).await?);
            let mut piece = vec![0; 8 << 20];
            loop {
                let length = file.read(&mut piece)?;
                if length == 0 {
                    break;
                }
                upload.wait_for_capacity(4).await?;
                upload.write(&piece[..length]);
            }
            upload.finish().await?;
            Ok(())
        })
    }

    /// Downloads parts and unpacks each into a directory of its own.
    fn fetch(&self, parts: Vec<(PartName, ObjectPath)>, directory: &Path) -> Result<()> {
        use futures_util::StreamExt;
        let fetched = futures_util::stream::iter(parts.into_iter().enumerate());
        let mut fetched = fetched
            .map(|(number, (_, path))| async move {
                let content = self.store.get(&path).await?.bytes().await?;
                anyhow::Ok((number, path, content))
            })
            .buffer_unordered(DOWNLOADS);
        self.runtime.block_on(async {
            while let Some(part) = fetched.next().await {
                let (number, path, content) = part?;
                let target = directory.join(format!("part-{number:06}"));
                unpack(&content, &target).with_context(|| format!("`{path}` is damaged"))?;
            }
            Ok(())
        })
    }
}

/// All runs below a URL, in a directory beside the one that they are merged into.
pub(crate) fn download(url: &str, out: &Path) -> Result<TempDir> {
    let place = Place::open(url)?;
    let beside = out.parent().filter(|parent| *parent != Path::new(""));
    let beside = beside.unwrap_or(Path::new("."));
    std::fs::create_dir_all(beside)?;
    let directory = assize_secrets::private_directory_in(beside, ".downloaded-")?;
    let parts = place.parts(None)?;
    if parts.is_empty() {
        return Err(Obstructed {
            message: format!("there are no results of shards below `{url}`"),
            hint: "shards put them there with `assize run --shard I/N --results URL`".to_owned(),
        }
        .into());
    }
    place.fetch(parts, directory.path())?;
    Ok(directory)
}

/// Trials done and planned, by round and shard, from the names of the parts.
pub(crate) fn progress(url: &str) -> Result<Vec<Parts>> {
    let mut shards: BTreeMap<(Option<u32>, u32), (u64, u64)> = BTreeMap::new();
    for (part, _) in Place::open(url)?.parts(None)? {
        let round = Round::number_in(&part.run_id);
        let (done, planned) = shards.entry((round, part.shard.index)).or_default();
        *planned = part.planned;
        *done = (*done + part.rows).min(part.planned);
    }
    let parts = shards.into_iter();
    Ok(parts
        .map(|((round, shard), (done, planned))| Parts {
            shard,
            round,
            done,
            planned,
        })
        .collect())
}

/// Puts the record of a round beside the results of shards.
pub(crate) fn publish_round(url: &str, record: &[u8]) -> Result<()> {
    let place = Place::open(url)?;
    let path = place.path(RunFile::Round.name());
    let content = PutPayload::from(record.to_vec());
    let put = place.runtime.block_on(place.store.put(&path, content));
    put.map_err(|error| Obstructed {
        message: format!(
            "the merged run is there, but `{url}/{path}` could not be written: {error}"
        ),
        hint: "the same command again writes it; shards of the next round read it".to_owned(),
    })?;
    Ok(())
}

/// The record of a round beside the results of shards. Absent before the first merge.
pub(crate) fn round(url: &str) -> Result<Option<Vec<u8>>> {
    let place = Place::open(url)?;
    let path = place.path(RunFile::Round.name());
    let found = place.runtime.block_on(async {
        match place.store.get(&path).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    Ok(found.map(|bytes| bytes.to_vec()))
}

/// The uploads of a shard, which listen to its run.
pub(crate) struct Uploads {
    listener: Arc<dyn Listener>,
    state: Mutex<Upload>,
}

struct Upload {
    sender: Option<Sender<PartMarks>>,
    worker: Option<JoinHandle<Result<()>>>,
    place: Option<Place>,
    run: PathBuf,
    last: Instant,
    interval: Duration,
}

impl Uploads {
    /// Opens the store before anything is spent.
    pub(crate) fn new(url: &str, listener: Arc<dyn Listener>) -> Result<Arc<Self>> {
        let place = Place::open(url)?;
        let seconds = std::env::var("ASSIZE_UPLOAD_SECONDS");
        let seconds = seconds.ok().and_then(|text| text.parse().ok());
        Ok(Arc::new(Self {
            listener,
            state: Mutex::new(Upload {
                sender: None,
                worker: None,
                place: Some(place),
                run: PathBuf::new(),
                last: Instant::now(),
                interval: seconds.map_or(INTERVAL, Duration::from_secs_f64),
            }),
        }))
    }

    /// Makes a shard's run again from its parts, where another machine has begun it. True if there was something.
    pub(crate) fn fetch(url: &str, suite: &ProfileSuite, results: &Path) -> Result<bool> {
        let Some(plan) = &suite.execution.shard else {
            return Ok(false);
        };
        let place = Place::open(url)?;
        let mut parts = place.parts(Some(plan.shard))?;
        let round = plan.round.as_ref().map(|round| round.number);
        parts.retain(|(part, _)| Round::number_in(&part.run_id) == round);
        if parts.is_empty() {
            return Ok(false);
        }
        private::directory(results)?;
        let directory = assize_secrets::private_directory_in(results, ".downloaded-")?;
        place.fetch(parts, directory.path())?;
        let found = runs_below(directory.path())?;
        let found: Vec<RunDirectory> = found
            .iter()
            .filter_map(|path| RunDirectory::open(path).ok())
            .collect();
        let same = runs_like(suite, found)?;
        let same: Vec<PathBuf> = same.iter().map(|run| run.path().to_owned()).collect();
        if same.is_empty() {
            return Ok(false);
        }
        let restored = restore_shard(&same, results)?;
        // Records from the store need not be uploaded again.
        PartMarks::of(restored.run.path()).note(restored.run.path())?;
        Ok(true)
    }

    /// Uploads what is left. On failure the results are still on this machine, and the same command tries again.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut state = self.state();
        let (Some(sender), Some(worker)) = (state.sender.take(), state.worker.take()) else {
            return Ok(());
        };
        let run = state.run.clone();
        drop(state);
        let sent = sender.send(PartMarks::of(&run));
        drop((sent, sender));
        let uploaded = worker
            .join()
            .map_err(|_| anyhow::anyhow!("the uploads ended unexpectedly"))?;
        uploaded.map_err(|error| {
            Obstructed {
                message: format!("the results could not be uploaded: {error:#}"),
                hint: format!(
                    "they are in `{}`; the same command with `--resume auto` tries again",
                    run.display()
                ),
            }
            .into()
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Upload> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, directory: &Path) {
        let mut state = self.state();
        let Some(place) = state.place.take() else {
            return;
        };
        let (sender, receiver) = channel();
        let run = directory.to_owned();
        state.run.clone_from(&run);
        state.last = Instant::now();
        state.sender = Some(sender);
        state.worker = Some(std::thread::spawn(move || {
            upload_parts(&place, &run, &receiver)
        }));
    }
}

impl Listener for Uploads {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::RunStarted { directory, .. } => self.start(directory),
            // Called between commits, so that no trial is cut in two.
            Event::TrialFinished { .. } => {
                let mut state = self.state();
                if state.last.elapsed() >= state.interval {
                    state.last = Instant::now();
                    let marks = PartMarks::of(&state.run);
                    if let Some(sender) = &state.sender {
                        let _ = sender.send(marks);
                    }
                }
            }
            _ => {}
        }
        self.listener.on_event(event);
    }
}

/// Uploads a part for every mark. A part that fails is part of the next one; the last one must succeed.
fn upload_parts(place: &Place, run: &Path, marks: &Receiver<PartMarks>) -> Result<()> {
    let manifest = RunDirectory::open(run)?.manifest().clone();
    let record = manifest.shard.context("only shards are uploaded")?;
    let mut from = PartMarks::noted(run);
    let mut name = PartName {
        shard: record.shard,
        run_id: manifest.run_id.clone(),
        number: from.parts,
        rows: 0,
        planned: record.cells,
    };
    // A shard without trials is known by a part without rows.
    let mut is_known = from != PartMarks::default();
    let mut last = Ok(());
    while let Ok(to) = marks.recv() {
        if to.is_as_far_as(&from) && is_known {
            last = Ok(());
            continue;
        }
        last = upload_part(place, run, &mut from, to, &mut name);
        match &last {
            Ok(()) => is_known = true,
            Err(error) => warn(&format!(
                "a part could not be uploaded, and will be with the next: {error:#}"
            )),
        }
    }
    for attempt in 1..LAST_ATTEMPTS {
        if last.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_secs(1 << attempt));
        last = upload_part(place, run, &mut from, PartMarks::of(run), &mut name);
    }
    last
}

/// Uploads what came since the last part and notes that it is there.
fn upload_part(
    place: &Place,
    run: &Path,
    from: &mut PartMarks,
    to: PartMarks,
    name: &mut PartName,
) -> Result<()> {
    let archive = tempfile::Builder::new().prefix(".part-").tempfile_in(run)?;
    name.rows = pack(run, from, &to, archive.path())?;
    name.number = from.parts + 1;
    place.upload(archive.path(), name)?;
    *from = to;
    from.parts = name.number;
    Ok(from.note(run)?)
}
