//! The program as people use it: one module per command or concern.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agreement;
mod analyze;
mod bad_input;
mod capture;
mod checks;
mod ci;
mod crash;
mod diagnostics;
mod doctor;
mod documents;
mod gates;
mod history;
mod init;
mod judging;
mod lab;
mod lab_again;
mod lab_services;
mod layers;
mod llm;
mod mcp;
mod mcp_server;
mod metrics;
mod odd_rows;
mod plugin;
mod plugins;
mod preflight;
mod prices;
mod programs;
mod properties;
mod recipes;
mod record;
mod replay;
mod run;
mod runs;
mod sandbox;
mod schema;
mod score;
mod stored_runs;
mod support;
mod try_commands;
mod verdict;
mod voids;
mod walkthroughs;
mod workspaces;
