//! A plugin as others see it: there whenever it is called, started again when it has ended, up to a limit.

use crate::connection::Connection;
use crate::error::{CallError, StartError};
use crate::limits::CallLimits;
use crate::log::{PluginLog, Redact};
use crate::protocol::{
    Info, InitializeParams, InitializeResult, PROTOCOL_VERSION, RpcError, codes,
};
use crate::wire;
use assize_contracts::{Concurrency, JsonMap, Plugins};
use assize_process::{Bound, Command, Signal, Stdin};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit, oneshot};

/// The number of restarts in a row for a plugin that has been of no use since.
pub const DEFAULT_RESTARTS: u32 = 3;
/// The time in which a program must end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Stderr beyond this is not passed on, except for its end.
const STDERR: Bound = Bound {
    head: 8 << 20,
    tail: 64 << 10,
};
/// Stdout is a conversation: nothing of it may be left out.
const STDOUT: Bound = Bound {
    head: u64::MAX,
    tail: 0,
};

/// A plugin as a suite declares it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginSpec {
    /// The name under which its mode resolver and hooks are used, and its log is kept.
    pub id: String,
    /// The way to reach it.
    pub transport: Transport,
    /// Options that it receives when it starts.
    pub options: JsonMap,
    /// The directory it starts in.
    pub directory: PathBuf,
    /// Variables besides the usual ones.
    pub environment: BTreeMap<String, String>,
    /// Variables of the host that are passed on.
    pub pass_env: Vec<String>,
    /// Time limits of calls.
    pub limits: CallLimits,
    /// The number of restarts in a row while it is of no use. Absent: [`DEFAULT_RESTARTS`].
    pub restarts: Option<u32>,
}

/// The way to reach a plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// By starting a program: its stdin and stdout carry the messages.
    Program(Vec<String>),
    /// By connecting to a socket on which a program serves already.
    Socket(PathBuf),
}

impl Default for Transport {
    fn default() -> Self {
        Self::Program(Vec::new())
    }
}

impl PluginSpec {
    fn command(&self, argv: &[String]) -> Command {
        let mut command = Command::from_argv(argv, &self.directory).pass_usual_env();
        for name in &self.pass_env {
            command = command.pass_env(name);
        }
        for (name, value) in &self.environment {
            command = command.env(name, value);
        }
        command.stdout = STDOUT;
        command.stderr = STDERR;
        command.stdin(Stdin::Piped).polite(Signal::SIGTERM, GRACE)
    }
}

/// A plugin that was started and can be called.
pub struct PluginProgram {
    spec: PluginSpec,
    log: PluginLog,
    /// The runtime on which programs live. Callers may be on another runtime that ends earlier.
    runtime: Handle,
    current: RwLock<Option<Arc<Connection>>>,
    starting: tokio::sync::Mutex<Starts>,
    offer: OnceLock<InitializeResult>,
    room: OnceLock<Semaphore>,
    /// Calls that must be made again after every start: each provider's `init`.
    set_up: Mutex<BTreeMap<String, Value>>,
}

#[derive(Default)]
struct Starts {
    useless_in_a_row: u32,
    is_over: bool,
}

impl PluginProgram {
    /// A plugin that is started by the first call to it.
    pub fn new(spec: PluginSpec, runtime: Handle) -> Arc<Self> {
        Self::logging_to(spec, runtime, PluginLog::default())
    }

    pub(crate) fn logging_to(spec: PluginSpec, runtime: Handle, log: PluginLog) -> Arc<Self> {
        Arc::new(Self {
            spec,
            log,
            runtime,
            current: RwLock::default(),
            starting: tokio::sync::Mutex::default(),
            offer: OnceLock::new(),
            room: OnceLock::new(),
            set_up: Mutex::default(),
        })
    }

    /// The same plugin in a program of its own with more variables. They share a log.
    pub(crate) fn another(&self, environment: &BTreeMap<String, String>) -> Arc<Self> {
        let mut spec = self.spec.clone();
        spec.environment.extend(environment.clone());
        Self::logging_to(spec, self.runtime.clone(), self.log.clone())
    }

    /// The time limit of a call of this method. Absent: no limit.
    pub(crate) fn limit(&self, method: &str) -> Option<Duration> {
        self.spec.limits.of(method)
    }

    /// The name in the suite.
    pub fn id(&self) -> &str {
        &self.spec.id
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.spec.transport, Transport::Socket(_))
    }

    /// Starts the plugin and asks what it serves.
    pub async fn start(self: &Arc<Self>) -> Result<&InitializeResult, StartError> {
        if let Some(offer) = self.offer.get() {
            return Ok(offer);
        }
        let program = Arc::clone(self);
        let task = self.runtime.spawn(async move { program.connect().await });
        let connection = task
            .await
            .map_err(|error| StartError::new(format!("the start broke: {error}")))??;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(self.offer.get().expect("a connection was made"))
    }

    /// The contracts it serves. Absent before it was started.
    pub fn offer(&self) -> Option<&InitializeResult> {
        self.offer.get()
    }

    /// Everything it serves, ready to be named in a suite. Nothing before it was started.
    pub fn served(self: &Arc<Self>) -> Plugins {
        crate::contracts::served_by(self)
    }

    /// Calls a method within the plugin's limit for it.
    pub async fn call<R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, CallError> {
        self.call_within(method, params, self.limit(method)).await
    }

    /// The same within another limit. It counts from the request to the answer.
    pub(crate) async fn call_within<R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &str,
        params: impl Serialize,
        limit: Option<Duration>,
    ) -> Result<R, CallError> {
        tracing::debug!(plugin = %self.spec.id, method, "call a plugin");
        let connection = self.connection().await?;
        self.call_on(&connection, method, params, limit).await
    }

    /// Calls a method that must be over before anything else happens, whether the caller waits for it or not: a call that
    /// takes too long, or whose caller has left, is cancelled, and `turn` is held until the plugin has answered or
    /// its program has ended.
    pub(crate) async fn call_to_the_end<R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &'static str,
        params: impl Serialize,
        turn: Option<OwnedMutexGuard<()>>,
    ) -> Result<R, CallError> {
        tracing::debug!(plugin = %self.spec.id, method, "call a plugin");
        let connection = self.connection().await?;
        let request = connection.request(method, params)?;
        let (program, limit) = (Arc::clone(self), self.limit(method));
        let (waiting, given_up) = oneshot::channel::<()>();
        let call = self.runtime.spawn(async move {
            let _turn = turn;
            let _place = program.place().await;
            connection.call_to_the_end(request, limit, given_up).await
        });
        let answer = call.await;
        drop(waiting);
        let line = answer.unwrap_or_else(|error| Err(self.given_up(error.to_string())))?;
        wire::result(&line)
    }

    /// A place among the requests that may be under way at once.
    async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.room.get()?.acquire().await.ok()
    }

    /// The same, on one start of the program only.
    pub(crate) async fn call_on<R: DeserializeOwned>(
        &self,
        connection: &Connection,
        method: &str,
        params: impl Serialize,
        limit: Option<Duration>,
    ) -> Result<R, CallError> {
        let _place = self.place().await;
        wire::result(&connection.call(method, params, limit).await?)
    }

    /// The program as it runs now, started anew if need be.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, CallError> {
        if let Some(connection) = self.running() {
            return Ok(connection);
        }
        let program = Arc::clone(self);
        let starting = self
            .runtime
            .spawn(async move { program.start_again().await });
        starting
            .await
            .unwrap_or_else(|error| Err(self.given_up(error.to_string())))
    }

    fn running(&self) -> Option<Arc<Connection>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current
            .as_ref()
            .filter(|connection| !connection.has_ended())
            .cloned()
    }

    async fn start_again(&self) -> Result<Arc<Connection>, CallError> {
        let mut starts = self.starting.lock().await;
        if let Some(connection) = self.running() {
            return Ok(connection);
        }
        let before = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let last_words = before.as_ref().and_then(|connection| connection.ending());
        let last_words = last_words.unwrap_or_else(|| "it was shut down".to_owned());
        match before {
            Some(connection) if connection.was_of_use() => starts.useless_in_a_row = 0,
            _ => {}
        }
        let allowed = self.spec.restarts.unwrap_or(DEFAULT_RESTARTS);
        loop {
            let number = starts.useless_in_a_row;
            if starts.is_over || number >= allowed {
                return Err(self.given_up(last_words));
            }
            starts.useless_in_a_row += 1;
            tracing::info!(plugin = %self.spec.id, number, why = %last_words, "start the plugin again");
            // Whatever made it end may take a moment to go away.
            tokio::time::sleep(Duration::from_millis(50) * number * number).await;
            match self.connect().await {
                Ok(connection) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) =
                        Some(Arc::clone(&connection));
                    return Ok(connection);
                }
                Err(error) if starts.useless_in_a_row >= allowed => {
                    return Err(self.given_up(error.to_string()));
                }
                Err(_) => {}
            }
        }
    }

    fn given_up(&self, why: String) -> CallError {
        CallError::GivenUp {
            plugin: self.spec.id.clone(),
            why,
        }
    }

    /// Starts the program, agrees on a version, and sets its providers up again.
    async fn connect(&self) -> Result<Arc<Connection>, StartError> {
        let connection = Arc::new(self.open().await?);
        let offer = match self.initialize(&connection).await {
            Ok(offer) => offer,
            Err(error) => {
                connection.end().await;
                return Err(error);
            }
        };
        let first = self.offer.get_or_init(|| offer.clone());
        if first.capabilities != offer.capabilities {
            connection.end().await;
            return Err(StartError::new(format!(
                "plugin `{}` serves something else than before after it was started again",
                self.spec.id
            )));
        }
        if let Some(Concurrency::AtMost(most)) = first.capabilities.concurrency {
            self.room
                .get_or_init(|| Semaphore::new(most.get() as usize));
        }
        let set_up = self
            .set_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for params in set_up.into_values() {
            let limit = self.limit("provider/init");
            let answer = connection.call("provider/init", params, limit).await;
            let ready = answer.and_then(|line| wire::result::<Value>(&line));
            if let Err(error) = ready {
                connection.end().await;
                return Err(StartError::new(format!("`provider/init` failed: {error}")));
            }
        }
        Ok(connection)
    }

    pub(crate) async fn open(&self) -> Result<Connection, StartError> {
        let id = &self.spec.id;
        match &self.spec.transport {
            Transport::Socket(path) => Connection::of_socket(id, path, self.log.clone())
                .await
                .map_err(|error| StartError::new(format!("cannot reach plugin `{id}`: {error}"))),
            Transport::Program(argv) => {
                let running = self.spec.command(argv).start().await.map_err(|error| {
                    StartError::new(format!("cannot start plugin `{id}`: {}", error.explained()))
                })?;
                Ok(Connection::of_program(id, running, self.log.clone()))
            }
        }
    }

    async fn initialize(&self, connection: &Connection) -> Result<InitializeResult, StartError> {
        let id = &self.spec.id;
        let params = InitializeParams {
            protocol_version: PROTOCOL_VERSION,
            info: Info {
                name: "assize".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            options: self.spec.options.clone(),
            capabilities: JsonMap::new(),
        };
        let limit = self.limit("initialize");
        let line = connection.call("initialize", params, limit).await;
        let offer = match line.and_then(|line| wire::result::<InitializeResult>(&line)) {
            Ok(offer) => offer,
            Err(CallError::Refused(RpcError {
                code: codes::VERSION,
                message,
                data,
            })) => {
                let spoken = data.and_then(|data| data.get("supported").cloned());
                let spoken = spoken.map_or(message, |spoken| format!("it speaks {spoken}"));
                return Err(other_version(id, &spoken));
            }
            Err(error) => {
                let message = format!("plugin `{id}` cannot be used: {error}");
                let error = StartError::new(message);
                return Err(match self.log.last_words() {
                    Some(words) => error.hint(format!("it said:\n{words}")),
                    None => error.hint("`assize plugins test COMMAND` shows what it says"),
                });
            }
        };
        match offer.protocol_version {
            PROTOCOL_VERSION => Ok(offer),
            other => Err(other_version(id, &format!("it speaks {other}"))),
        }
    }

    /// From now on every start is followed by this provider's `init`.
    pub(crate) fn remember_set_up(&self, provider: &str, params: Option<Value>) {
        let mut set_up = self.set_up.lock().unwrap_or_else(PoisonError::into_inner);
        match params {
            Some(params) => set_up.insert(provider.to_owned(), params),
            None => set_up.remove(provider),
        };
    }

    /// Writes what the plugin says besides its answers into this file.
    pub(crate) fn log_to(&self, path: &Path, redact: Redact) -> std::io::Result<()> {
        self.log.write_to(path, redact)
    }

    /// Lets the program end, for good.
    pub async fn end(self: &Arc<Self>) {
        let program = Arc::clone(self);
        let ending = self.runtime.spawn(async move {
            program.starting.lock().await.is_over = true;
            let current = program
                .current
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            if let Some(connection) = current {
                connection.end().await;
            }
        });
        let _ = ending.await;
    }
}

fn other_version(id: &str, spoken: &str) -> StartError {
    StartError::new(format!(
        "plugin `{id}` does not speak version {PROTOCOL_VERSION} of the protocol: {spoken}"
    ))
    .hint("use a plugin and an Assize that are made for each other")
}
