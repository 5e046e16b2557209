#!/usr/bin/env node
// Finds the program in the package of this platform and becomes it as far as Node can: same arguments, same terminal, same exit.
"use strict";
const { spawn } = require("node:child_process");

const name = `@assize/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/assize`);
} catch {
  console.error(`error: there is no assize program for ${process.platform} on ${process.arch} (package ${name} is not installed)`);
  console.error("hint: install without --no-optional / --omit=optional, or build it: cargo install --path crates/assize");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to both; the program decides what it means. Other signals are handed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${program} does not start: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
