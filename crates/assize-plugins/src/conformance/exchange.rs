//! The conversation with a plugin under test, and what holds for any of them.

use super::Findings;
use crate::connection::Connection;
use crate::error::CallError;
use crate::program::{PluginProgram, PluginSpec};
use crate::protocol::{
    Capabilities, Info, InitializeParams, InitializeResult, PROTOCOL_VERSION, codes,
};
use crate::wire;
use assize_contracts::{JsonMap, QUICK_CALL_LIMIT};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

const PROTOCOL: &str = "protocol";

/// A started plugin.
pub(super) struct Exchange {
    program: Arc<PluginProgram>,
    connection: Arc<Connection>,
    limit: Duration,
}

impl Exchange {
    pub(super) async fn start(spec: &PluginSpec, findings: &mut Findings) -> Option<Self> {
        let program = PluginProgram::new(spec.clone(), Handle::current());
        let started = program.start().await.map(drop);
        let explained = started.map_err(|error| match error.hint {
            Some(hint) => format!(
                "{}\n      {}",
                error.message,
                hint.replace('\n', "\n      ")
            ),
            None => error.message,
        });
        let is_up = explained.is_ok();
        findings.note(PROTOCOL, "it starts and answers `initialize`", explained);
        if !is_up {
            return None;
        }
        let connection = program.connection().await.ok()?;
        Some(Self {
            limit: spec.limits.all.unwrap_or(QUICK_CALL_LIMIT),
            program,
            connection,
        })
    }

    pub(super) fn offer(&self) -> Capabilities {
        self.program
            .offer()
            .map(|offer| offer.capabilities.clone())
            .unwrap_or_default()
    }

    /// Calls and reads the result.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, CallError> {
        let line = self
            .connection
            .call(method, params, Some(self.limit))
            .await?;
        wire::result(&line)
    }

    pub(super) async fn try_protocol(&self, findings: &mut Findings) {
        findings.note(
            PROTOCOL,
            "it serves something, each under a name of its own",
            names(&self.offer()),
        );
        let unknown = self.call::<Value>("_x/nobody-has-this", json!({})).await;
        let outcome = expect_code(unknown, &[codes::UNKNOWN_METHOD]);
        findings.note(
            PROTOCOL,
            "an unknown method is answered with error -32601",
            outcome,
        );
        self.connection.send_raw(b"this is no message\n");
        self.connection
            .send_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"$/nobody-has-this\",\"params\":{}}\n");
        self.connection.send_raw(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":999999}}\n",
        );
        let outcome = self.is_alive().await;
        findings.note(
            PROTOCOL,
            "a broken line and unknown notifications are survived",
            outcome,
        );
        drop(tokio::time::timeout(Duration::ZERO, self.is_alive()).await);
        let outcome = match tokio::time::timeout(self.limit, self.connection.owes_nothing()).await {
            Ok(()) => self.is_alive().await,
            Err(_) => Err("found no answer to a cancelled request".to_owned()),
        };
        findings.note(PROTOCOL, "a cancelled request is answered, too", outcome);
        let many = (0..32).map(|_| self.is_alive());
        let answers = futures_util::future::join_all(many).await;
        let outcome = answers.into_iter().collect();
        findings.note(PROTOCOL, "many requests at once are each answered", outcome);
    }

    /// Still there and answering.
    pub(super) async fn is_alive(&self) -> Result<(), String> {
        let answer = self.call::<Value>("_x/nobody-has-this", json!({})).await;
        expect_code(answer, &[codes::UNKNOWN_METHOD])
    }

    pub(super) async fn finish(&self, findings: &mut Findings) {
        let stray = match self.connection.stray_lines() {
            0 => Ok(()),
            count => Err(format!(
                "found {count} lines on stdout that are no answers; print to stderr instead"
            )),
        };
        findings.note(PROTOCOL, "stdout carries nothing but messages", stray);
        let began = tokio::time::Instant::now();
        self.program.end().await;
        let ending = self.connection.ending().unwrap_or_default();
        let outcome =
            match began.elapsed() < Duration::from_secs(5) && ending == "ended with exit code 0" {
                true => Ok(()),
                false => Err(format!("it {ending}, expected exit code 0 within 5 s")),
            };
        findings.note(
            PROTOCOL,
            "it ends by itself when its stdin is closed",
            outcome,
        );
    }
}

/// A plugin that is asked for a version from the future offers one that it speaks, or says that it cannot.
pub(super) async fn try_another_version(spec: &PluginSpec, findings: &mut Findings) {
    let program = PluginProgram::new(spec.clone(), Handle::current());
    let outcome = match program.open().await {
        Err(error) => Err(error.message),
        Ok(connection) => {
            let params = InitializeParams {
                protocol_version: 999,
                info: Info {
                    name: "assize".to_owned(),
                    version: "999".to_owned(),
                },
                options: spec.options.clone(),
                capabilities: JsonMap::new(),
            };
            let limit = spec.limits.of("initialize");
            let line = connection.call("initialize", params, limit).await;
            let outcome = match line.and_then(|line| wire::result::<InitializeResult>(&line)) {
                Ok(offer) if offer.protocol_version <= PROTOCOL_VERSION => Ok(()),
                Ok(offer) => Err(format!(
                    "it says that it speaks version {}",
                    offer.protocol_version
                )),
                refused => expect_code(refused, &[codes::VERSION]),
            };
            connection.end().await;
            outcome
        }
    };
    findings.note(
        PROTOCOL,
        "asked for a later version, it offers its own or error -32022",
        outcome,
    );
}

/// An error with one of these codes is what should come.
pub(super) fn expect_code<T>(answer: Result<T, CallError>, codes: &[i64]) -> Result<(), String> {
    match answer {
        Ok(_) => Err("found a result, expected an error".to_owned()),
        Err(CallError::Refused(error)) if codes.contains(&error.code) => Ok(()),
        Err(CallError::Refused(error)) => {
            let codes: Vec<String> = codes.iter().map(i64::to_string).collect();
            Err(format!(
                "found error {}, expected {}",
                error.code,
                codes.join(" or ")
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Any error of the plugin's own is fine, as long as it is one.
pub(super) fn expect_refusal<T>(answer: Result<T, CallError>) -> Result<(), String> {
    match answer {
        Ok(_) => Err("found a result, expected an error".to_owned()),
        Err(CallError::Refused(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn names(offer: &Capabilities) -> Result<(), String> {
    let ids: Vec<(&str, &String)> = (offer.providers.iter().map(|offer| ("provider", &offer.id)))
        .chain(offer.scorers.iter().map(|offer| ("scorer", &offer.id)))
        .chain(
            offer
                .collectors
                .iter()
                .map(|offer| ("collector", &offer.id)),
        )
        .chain(
            offer
                .analyzers
                .iter()
                .map(|offer| ("analyzer", &offer.name)),
        )
        .chain(offer.runners.iter().map(|offer| ("runner", &offer.id)))
        .chain(
            offer
                .evaluators
                .iter()
                .map(|offer| ("evaluator", &offer.id)),
        )
        .collect();
    if ids.is_empty() && offer.mode_resolver.is_none() && offer.hooks.is_none() {
        return Err("found empty capabilities, expected at least one contract".to_owned());
    }
    if let Some((kind, _)) = ids.iter().find(|(_, id)| id.trim().is_empty()) {
        return Err(format!("found a {kind} without a name"));
    }
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(**id)) {
        Some((kind, id)) => Err(format!("found two of the name {kind} `{id}`")),
        None => Ok(()),
    }
}
