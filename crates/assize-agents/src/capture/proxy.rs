//! The server on the loopback: access, and sessions while they are open.

use super::cassette::SessionTape;
use super::pass::respond;
use super::session::{Call, Recording, Session};
use super::{CaptureError, Cassette, Service, Upstreams, WatchedSkill, service};
use crate::lock;
use assize_secrets::{Redactor, Secrets};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;

/// The time limit of calls to end after their agent has.
const PATIENCE: Duration = Duration::from_secs(3);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The proxy while it runs. Ends when dropped, with everything that passes through it.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Made for the first container.
    door: OnceCell<Door>,
    _connections: JoinSet<()>,
}

/// A Unix socket of the proxy, for containers that have no network.
struct Door {
    socket: PathBuf,
    _directory: tempfile::TempDir,
    _connections: JoinSet<()>,
}

/// State that all connections share.
pub(super) struct Shared {
    pub(super) client: reqwest::Client,
    cassette: Option<Arc<Cassette>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

impl Shared {
    pub(super) fn session(&self, token: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).get(token).map(Arc::clone)
    }
}

/// Settings of a session.
#[derive(Default)]
pub struct SessionOptions {
    /// Names the session on a cassette: the same in every run for the same trial.
    pub label: String,
    /// The directory the agent works in.
    pub workspace: Option<String>,
    /// Hears of every call when it has ended.
    pub listener: Option<mpsc::UnboundedSender<Call>>,
    /// Gets to know the keys that the agent sends.
    pub secrets: Secrets,
    /// Skills that are looked for in requests.
    pub skills: Arc<[WatchedSkill]>,
}

/// A session of an agent that goes through the proxy. Its address is closed when it is dropped.
pub struct CapturedSession {
    shared: Arc<Shared>,
    address: SocketAddr,
    token: String,
    session: Arc<Session>,
}

impl Proxy {
    /// Listens on the loopback. Port 0 is any free one.
    pub async fn start(port: u16, cassette: Option<Cassette>) -> Result<Self, CaptureError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| CaptureError::Listen { port, source })?;
        let address = listener
            .local_addr()
            .map_err(|source| CaptureError::Listen { port, source })?;
        let shared = Arc::new(Shared {
            client: client()?,
            cassette: cassette.map(Arc::new),
            sessions: Mutex::default(),
        });
        let mut connections = JoinSet::new();
        connections.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            door: OnceCell::new(),
            _connections: connections,
        })
    }

    /// The port on the loopback.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A Unix socket that leads to the proxy just as its port does. It may be mounted into containers; who comes in still needs
    /// the prefix of a session.
    pub async fn socket(&self) -> Result<&Path, CaptureError> {
        let open = async || Door::open(&self.shared).map_err(CaptureError::Socket);
        let door = self.door.get_or_try_init(open).await?;
        Ok(&door.socket)
    }

    /// Opens a session with an unguessable prefix of its own.
    pub fn open(&self, upstreams: Upstreams, options: SessionOptions) -> CapturedSession {
        let cassette = self.shared.cassette.as_ref().map(Arc::clone);
        let SessionOptions {
            label,
            workspace,
            listener,
            secrets,
            skills,
        } = options;
        let tape = cassette.map(|cassette| SessionTape::new(cassette, label, workspace));
        let session = Arc::new(Session::new(upstreams, tape, listener, secrets, skills));
        let token = unguessable();
        lock(&self.shared.sessions).insert(token.clone(), Arc::clone(&session));
        CapturedSession {
            shared: Arc::clone(&self.shared),
            address: self.address,
            token,
            session,
        }
    }
}

impl CapturedSession {
    /// The proxy's address of a service, as an agent expects it in a base URL without a version.
    pub fn root_url(&self, service: Service) -> String {
        format!("http://{}/s/{}/{service}", self.address, self.token)
    }

    /// The same with the version, `/v1`, if the upstream's base URL has one.
    pub fn base_url(&self, service: Service) -> String {
        let version = self.session.upstreams.version(service);
        format!("{}{version}", self.root_url(service))
    }

    /// The variables that send an agent through the proxy. `environment` is what the agent would have without them.
    pub fn variables(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> BTreeMap<String, String> {
        let prefix = |service| self.root_url(service);
        service::variables(&self.session.upstreams, prefix, environment)
    }

    /// The addresses that the requests go to.
    pub fn upstreams(&self) -> &Upstreams {
        &self.session.upstreams
    }

    /// Removes the keys that the agent sent, and other secrets, from text.
    pub fn redactor(&self) -> &Redactor {
        &self.session.redactor
    }

    /// Waits for calls that still end, a few seconds at most.
    pub async fn settle(&self) {
        self.session.settle(PATIENCE).await;
    }

    /// The traffic until now.
    pub fn recording(&self) -> Recording {
        self.session.recording()
    }
}

impl Drop for CapturedSession {
    fn drop(&mut self) {
        lock(&self.shared.sessions).remove(&self.token);
    }
}

fn client() -> Result<reqwest::Client, CaptureError> {
    // Another part of the program may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .http1_only()
        .build()
        .map_err(CaptureError::Client)
}

/// 128 bits of the system's randomness.
fn unguessable() -> String {
    let mut bytes = [0; 16];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .expect("the system has randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Door {
    fn open(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let directory = assize_secrets::private_directory("assize-model-")?;
        let socket = directory.path().join("model");
        let listener = UnixListener::bind(&socket)?;
        // Programs in containers have users of their own; the directory keeps others of this machine out.
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666))?;
        let mut connections = JoinSet::new();
        connections.spawn(accept_unix(listener, Arc::clone(shared)));
        Ok(Self {
            socket,
            _directory: directory,
            _connections: connections,
        })
    }
}

async fn accept_unix(listener: UnixListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // A chunk that waits for a fuller packet is late.
                    let _ = stream.set_nodelay(true);
                    drop(connections.spawn(serve(stream, Arc::clone(&shared))));
                }
                // Too many open files, for example: those under way will end.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(respond(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    // When an agent hangs up, its session learns it where the exchange is dropped.
    let _ = connection.await;
}
