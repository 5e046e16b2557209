// Reports made by the program itself, opened in a real browser.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const tools = join(root, ".cache/browser");
const program = process.env.ASSIZE ?? join(root, "target/debug/assize");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

/// Why the tests cannot run here; undefined when they can.
export const obstacle = !existsSync(chromium)
  ? `no browser at ${chromium}: install Debian's chromium package as root`
  : !existsSync(join(tools, "node_modules/playwright-core"))
    ? "playwright-core is not installed: run make browser-tools"
    : undefined;

const directory = mkdtempSync(join(tmpdir(), "assize-browser-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

/// Runs the program and gives what it prints.
export const assize = (...words) => execFileSync(program, words, {
  cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"],
  // The last run of whoever tests stays what it is.
  env: { ...process.env, XDG_STATE_HOME: directory },
});

/// Runs a suite and gives the path of its page. `code` is the exit code that is expected.
export const runSuite = (suite, name, flags = [], code = 0) => {
  const output = join(directory, `runs-${name}`);
  try {
    assize("run", suite, "--quiet", "--yes", "--output", output, ...flags);
  } catch (error) {
    if (error.status !== code) throw error;
  }
  const run = readdirSync(output).sort().at(-1);
  return join(output, run, "report/report.html");
};

/// A suite of files.
export const writeSuite = (name, files) => {
  const suite = join(directory, name);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(suite, path)), { recursive: true });
    writeFileSync(join(suite, path), content);
  }
  return suite;
};

export const rowsReport = (rows, name) => {
  const out = join(directory, `report-${name}`);
  assize("report", rows, "--out", out);
  return join(out, "report.html");
};

let browser;

export const startBrowser = async () => {
  const { chromium: engine } = createRequire(join(tools, "package.json"))("playwright-core");
  browser = await engine.launch({
    executablePath: chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
};

export const stopBrowser = () => browser?.close();

/// A page, and everything that happened in it that must not.
export const open = async (file, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const trouble = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) trouble.push(message.text()); });
  page.on("pageerror", (error) => trouble.push(error.message));
  page.on("dialog", (dialog) => { trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (request.url() !== `file://${file}`) trouble.push(`request: ${request.url()}`); });
  await page.goto(`file://${file}`);
  return { page, trouble };
};
