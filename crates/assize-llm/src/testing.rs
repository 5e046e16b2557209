//! An endpoint on loopback that answers by script, for testing what talks to models without any.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A request that a scripted endpoint got.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The path with its query.
    pub path: String,
    /// Header lines, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null when it is not JSON.
    pub body: Value,
}

impl Received {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// An answer of a scripted endpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// This status with this body.
    Body(u16, String),
    /// The same with a `retry-after-ms` header.
    Later(u16, String, u64),
    /// Status 200 with the beginning of a body, before the connection breaks.
    Cut(String),
    /// Nothing, until the client gives up.
    Silence,
    /// The beginning of a body, and then nothing until the client gives up.
    Stall(String),
}

impl Reply {
    /// A good answer with this JSON.
    pub fn json(value: &Value) -> Self {
        Self::Body(200, value.to_string())
    }
}

/// Answers requests on a loopback port by a function. Ends with the test program.
#[derive(Debug)]
pub struct ScriptedEndpoint {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl ScriptedEndpoint {
    /// Starts to answer. The function gets each request and its number, from 0.
    pub fn start(
        script: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&received), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &seen, &*script));
            }
        });
        Ok(Self { address, received })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything it was sent until now.
    pub fn received(&self) -> Vec<Received> {
        let received = self.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Received>>,
    script: &dyn Fn(&Received, usize) -> Reply,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    while let Some(request) = read_request(&mut reader) {
        let number = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(request.clone());
            seen.len() - 1
        };
        let (status, body, later) = match script(&request, number) {
            Reply::Body(status, body) => (status, body, String::new()),
            Reply::Cut(body) => {
                // The connection is closed when the stream is dropped.
                let _ = stream.write_all(beginning(&body).as_bytes());
                return None;
            }
            Reply::Stall(body) => {
                stream.write_all(beginning(&body).as_bytes()).ok()?;
                wait_for_the_end(&stream, &mut reader);
                return None;
            }
            Reply::Later(status, body, millis) => {
                (status, body, format!("retry-after-ms: {millis}\r\n"))
            }
            Reply::Silence => {
                wait_for_the_end(&stream, &mut reader);
                return None;
            }
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n{later}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
    }
    Some(())
}

/// A body that says to be longer than it is.
fn beginning(body: &str) -> String {
    let length = body.len() + 1;
    format!(
        "HTTP/1.1 200 Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The client hangs up, or the test program ends.
fn wait_for_the_end(stream: &TcpStream, reader: &mut impl Read) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(600)));
    let _ = reader.read(&mut [0]);
}

fn read_request(reader: &mut impl BufRead) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

#[cfg(feature = "broken-decoders")]
static IS_BROKEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// From now on every answer has one token of output too many, for tests that must notice it.
#[cfg(feature = "broken-decoders")]
pub fn break_decoders() {
    IS_BROKEN.store(true, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "broken-decoders")]
pub(crate) fn miscount(tokens: &mut assize_contracts::TokenBreakdown) {
    if IS_BROKEN.load(std::sync::atomic::Ordering::Relaxed) {
        tokens.output = tokens.output.map(|output| output + 1);
    }
}
