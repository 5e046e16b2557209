//! `assize proxy`: the capture proxy alone, for agents that are started elsewhere.

use crate::cli::ProxyArguments;
use crate::commands::record;
use crate::exit::Exit;
use crate::terminal::{one_line, print, print_json, say};
use anyhow::{Context, Result};
use assize_agents::capture::{Call, CapturedSession, Proxy, Service, SessionOptions};
use assize_contracts::ModelCall;
use assize_llm::Prices;
use tokio::sync::mpsc;

pub(crate) fn proxy(arguments: &ProxyArguments) -> Result<Exit> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: &ProxyArguments) -> Result<Exit> {
    let upstreams = record::upstreams(&arguments.capture)?;
    let prices = record::prices(&arguments.capture)?;
    let cassette = record::cassette(&arguments.capture)?;
    let proxy = Proxy::start(arguments.port, cassette).await?;
    let (listener, calls) = mpsc::unbounded_channel();
    let options = SessionOptions {
        listener: Some(listener),
        ..record::options()
    };
    let session = proxy.open(upstreams, options);
    print_usage(&session);
    print_until_stopped(calls, arguments.json).await?;
    session.settle().await;
    conclude(&session, arguments, &prices)
}

fn print_usage(session: &CapturedSession) {
    say("listening; start the agent with these variables:\n");
    for (name, value) in session.variables(record::environment) {
        say(format!("  export {name}={value}"));
    }
    say("");
    for service in Service::ALL {
        let upstream = session.upstreams().base_url(service);
        say(format!(
            "  {service:<10} goes to {}",
            one_line(&upstream, 100)
        ));
    }
    say("\nCtrl-C stops it and shows what passed by");
}

/// A line per call, until a signal comes.
async fn print_until_stopped(
    mut calls: mpsc::UnboundedReceiver<Call>,
    as_json: bool,
) -> Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut has_tools = false;
    loop {
        tokio::select! {
            Some(call) = calls.recv() => {
                has_tools |= call.tools > 0;
                let side = has_tools && call.tools == 0;
                print_call(&ModelCall { side, ..call.model_call() }, as_json)?;
            }
            _ = tokio::signal::ctrl_c() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        }
    }
}

fn print_call(call: &ModelCall, as_json: bool) -> Result<()> {
    match as_json {
        true => print_json(serde_json::to_string(call)?),
        false => print(in_words(call)),
    }
    Ok(())
}

fn in_words(call: &ModelCall) -> String {
    let tokens = call
        .tokens
        .total
        .map_or("unknown".to_owned(), |total| total.to_string());
    let status = call
        .status
        .map_or("no answer".to_owned(), |status| status.to_string());
    let time = call.duration_ms.map_or(0.0, |ms| ms.value());
    let (model, api) = (one_line(&call.model, 40), call.api.as_deref().unwrap_or(""));
    format!("{status}  {model}  {api}  {tokens} tokens  {time:.0} ms")
}

fn conclude(
    session: &CapturedSession,
    arguments: &ProxyArguments,
    prices: &Prices,
) -> Result<Exit> {
    let recording = session.recording();
    let mut trace = recording.trace("proxy", Some(prices));
    assize_engine::store::clean_trace(&mut trace, session.redactor());
    if let Some(path) = &arguments.out {
        record::write_trace(&trace, path)?;
    }
    say("");
    match recording.is_empty() {
        true => say("no model was asked"),
        false => record::print_totals(&recording, &trace, &prices.version()),
    }
    Ok(Exit::Done)
}
