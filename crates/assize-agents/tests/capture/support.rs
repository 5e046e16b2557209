//! A server that answers with exactly the bytes a test gives it, and an agent that asks it through the proxy.

use assize_agents::capture::{
    CaptureError, CapturedSession, Cassette, Proxy, Recording, Service, SessionOptions, Upstreams,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A step of the server's answer to a request.
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends this over and over until the client hangs up.
    Forever(Vec<u8>),
    /// Waits until the test goes on.
    Hold,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec())
}

/// A whole answer in one go.
pub(crate) fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    vec![send([head.as_bytes(), body].concat())]
}

/// A stream of server-sent events, a chunk each.
pub(crate) fn events(events: &[&str]) -> Vec<Step> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |text: &str| send(format!("{:x}\r\n{text}\r\n", text.len()));
    let mut steps = vec![send(head)];
    steps.extend(events.iter().map(|event| chunk(event)));
    steps.push(send("0\r\n\r\n"));
    steps
}

type Script = Arc<dyn Fn(&Asked) -> Vec<Step> + Send + Sync>;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The number of requests before it.
    pub(crate) number: usize,
}

pub(crate) struct Upstream {
    pub(crate) url: String,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
    /// Lets one `Hold` go on.
    pub(crate) go_on: mpsc::UnboundedSender<()>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    pub(crate) async fn new(script: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (go_on, held) = mpsc::unbounded_channel();
        let held = Arc::new(tokio::sync::Mutex::new(held));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (script, seen): (Script, _) = (Arc::new(script), Arc::clone(&asked));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (script, seen, held) =
                    (Arc::clone(&script), Arc::clone(&seen), Arc::clone(&held));
                connections.spawn(async move {
                    let mut stream = stream;
                    while let Some(mut asked) = read_request(&mut stream).await {
                        {
                            let mut seen = seen.lock().unwrap();
                            asked.number = seen.len();
                            seen.push(asked.clone());
                        }
                        for step in script(&asked) {
                            let sent = match step {
                                Step::Send(bytes) => stream.write_all(&bytes).await,
                                Step::Forever(bytes) => loop {
                                    if let Err(error) = stream.write_all(&bytes).await {
                                        break Err(error);
                                    }
                                },
                                Step::Hold => {
                                    held.lock().await.recv().await;
                                    Ok(())
                                }
                            };
                            if sent.is_err() {
                                return;
                            }
                        }
                        if asked.head.contains("x-then: close") {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            url,
            asked,
            go_on,
            _tasks: tasks,
        }
    }

    /// Always the same answer.
    pub(crate) async fn always(steps: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::new(move |_| steps()).await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = bytes[end..].to_vec();
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked {
        head,
        body,
        number: 0,
    })
}

/// An agent whose requests go through the proxy to one upstream, whatever API they speak.
pub(crate) struct Agent {
    pub(crate) session: CapturedSession,
    pub(crate) client: reqwest::Client,
    pub(crate) _proxy: Option<Proxy>,
}

pub(crate) fn upstreams(url: &str) -> Result<Upstreams, CaptureError> {
    let all = Service::ALL.map(|service| (service, format!("{url}/base")));
    Upstreams::resolve(&BTreeMap::from(all), |_| None)
}

impl Agent {
    pub(crate) async fn of(upstream: &Upstream) -> Self {
        Self::with(upstream, None).await
    }

    pub(crate) async fn with(upstream: &Upstream, cassette: Option<Cassette>) -> Self {
        let proxy = Proxy::start(0, cassette).await.unwrap();
        let mut agent = Self::through(&proxy, upstream, "a");
        agent._proxy = Some(proxy);
        agent
    }

    pub(crate) fn through(proxy: &Proxy, upstream: &Upstream, label: &str) -> Self {
        let options = SessionOptions {
            label: label.to_owned(),
            ..SessionOptions::default()
        };
        Self {
            session: proxy.open(upstreams(&upstream.url).unwrap(), options),
            client: reqwest::Client::new(),
            _proxy: None,
        }
    }

    pub(crate) fn post(
        &self,
        service: Service,
        path: &str,
        body: impl Into<String>,
    ) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.session.root_url(service));
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json");
        request.body(body.into())
    }

    /// Asks and gives the status and the whole body.
    pub(crate) async fn ask(&self, service: Service, path: &str, body: &str) -> (u16, Vec<u8>) {
        let answer = self.post(service, path, body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.bytes().await.unwrap().to_vec())
    }

    pub(crate) async fn recording(&self) -> Recording {
        self.session.settle().await;
        self.session.recording()
    }
}
