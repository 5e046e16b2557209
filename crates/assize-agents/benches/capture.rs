//! Measures the cost of the proxy: the same stream with and without it, one alone and 500 at once through one thread.
//! Run with `cargo bench -p assize-agents`. The budget is one millisecond per piece at the median.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use assize_agents::capture::{Proxy, Service, SessionOptions, Upstreams};
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PIECES: usize = 100;
const STREAMS: usize = 500;

/// As fast as people read, and twice as fast as most models write.
const PACE: Duration = Duration::from_millis(20);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let start = Instant::now();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, start));
        let proxied = proxy_in_its_own_thread(&upstream);
        let (direct, through) = (address(&upstream), address(&proxied));
        warm_up(&through, start).await;
        let alone = show("direct", listen(&direct, start).await, None);
        show(
            "through the proxy",
            listen(&through, start).await,
            Some(alone),
        );
        let together = show("direct, 500 at once", many(&direct, start).await, None);
        show(
            "through the proxy, 500 at once",
            many(&through, start).await,
            Some(together),
        );
    });
}

/// One thread for everything the proxy does.
fn proxy_in_its_own_thread(upstream: &str) -> String {
    let given = BTreeMap::from([(Service::Anthropic, upstream.to_owned())]);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let proxy = Proxy::start(0, None).await.unwrap();
            let upstreams = Upstreams::resolve(&given, |_| None).unwrap();
            let session = proxy.open(upstreams, SessionOptions::default());
            sender.send(session.root_url(Service::Anthropic)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

struct Address {
    host: String,
    path: String,
}

fn address(url: &str) -> Address {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = match path.is_empty() {
        true => "/v1/messages".to_owned(),
        false => format!("/{path}/v1/messages"),
    };
    Address {
        host: host.to_owned(),
        path,
    }
}

/// Answers every request with a stream whose pieces say when they were sent.
async fn serve(listener: TcpListener, start: Instant) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            stream.set_nodelay(true).unwrap();
            let mut request = vec![0; 64 << 10];
            while let Ok(1..) = stream.read(&mut request).await {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
                let mut pace = tokio::time::interval(PACE);
                for _ in 0..PIECES {
                    pace.tick().await;
                    let at = start.elapsed().as_nanos();
                    let event = format!(
                        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"some words <{at}>\"}}}}\n\n"
                    );
                    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                    if stream.write_all(chunk.as_bytes()).await.is_err() {
                        return;
                    }
                }
                let _ = stream.write_all(b"0\r\n\r\n").await;
            }
        });
    }
}

/// Connections are made and code is loaded.
async fn warm_up(address: &Address, start: Instant) {
    listen(address, start).await;
}

/// The time of each piece, in milliseconds.
async fn listen(address: &Address, start: Instant) -> Vec<f64> {
    let mut stream = TcpStream::connect(&address.host).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let body = r#"{"model":"m","stream":true,"messages":[]}"#;
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n{body}",
        address.path,
        address.host,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut times = Vec::new();
    let mut text = String::new();
    let mut buffer = vec![0; 16 << 10];
    while times.len() < PIECES {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the stream broke off");
        let now = start.elapsed().as_nanos();
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        while let Some((before, after)) = text.split_once('>') {
            let sent = before.rsplit_once('<').map(|(_, sent)| sent);
            if let Some(sent) = sent.and_then(|sent| sent.parse::<u128>().ok()) {
                times.push((now - sent) as f64 / 1e6);
            }
            text = after.to_owned();
        }
    }
    times
}

async fn many(address: &Address, start: Instant) -> Vec<f64> {
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        let address = Address {
            host: address.host.clone(),
            path: address.path.clone(),
        };
        streams.spawn(async move { listen(&address, start).await });
    }
    streams.join_all().await.into_iter().flatten().collect()
}

/// Prints and gives the median.
fn show(name: &str, mut times: Vec<f64>, without: Option<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let added = without.map_or(String::new(), |without| {
        format!(", {:.3} ms added at the median", at(0.5) - without)
    });
    println!(
        "{name:<32} {:>6} pieces: median {:.3} ms, p99 {:.3} ms, longest {:.3} ms{added}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    at(0.5)
}
