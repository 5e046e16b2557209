// What a person does with report.html, in headless Chromium.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { obstacle, open, root, rowsReport, runSuite, startBrowser, stopBrowser, tools, writeSuite } from "./support.mjs";

const published = join(root, "../shared/fixtures/published/rows.jsonl");
const pictures = join(tools, "pictures");

const HOSTILE = [
  "</script><script>window.hit = 1</script>",
  "<img src=x onerror='window.hit = 2'><svg onload='window.hit = 3'>",
  "<style>body { display: none }</style><base href='http://192.0.2.1/'>",
  "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b[2J",
  "\u202egnp.exe\u202c \u2066x\u2069 \u200bhidden\u{e0041}",
  "{{constructor.constructor('window.hit = 4')()}} ${window.hit = 5} javascript:window.hit=6",
  "]]><!-- --!> <!--<script>",
].join("\n");

const session = (steps) => JSON.stringify({
  sessionId: "s",
  events: [{ type: "turn_boundary", turnNumber: 0, timestamp: "2026-01-01T00:00:00.000Z" }, ...steps],
  turns: [],
  summary: { totalTurns: 1, totalToolCalls: 1, totalTokens: { input: 10, output: 5, cacheRead: 0, total: 15, active: 15 }, totalDuration: 1000 },
});
const call = (name, input, output) => ({ type: "tool_call", name, input, output, durationMs: 5, success: true });
const text = (content) => ({ type: "text_output", content, tokenCount: 3 });

const replaySuite = (name, sessions) => writeSuite(name, {
  "assize.yaml": `name: ${name}\nprovider: { uses: replay, session: "sessions/{mode}.json" }\nmodes: { ${Object.keys(sessions).map((mode) => `${mode}: {}`).join(", ")} }\nscenarios: { paths: [s.yaml] }\nexecution: { repetitions: 1, warmup: false }\n`,
  "s.yaml": "id: s\nprompt: do it\nchecks:\n  - output: { contains: done }\n",
  ...Object.fromEntries(Object.entries(sessions).map(([mode, steps]) => [`sessions/${mode}.json`, session(steps)])),
});

describe("report.html", { skip: obstacle }, () => {
  let quickstart;
  before(async () => {
    quickstart = runSuite(join(root, "examples/quickstart"), "quickstart");
    mkdirSync(pictures, { recursive: true });
    await startBrowser();
  });
  after(stopBrowser);

  test("it opens without an error and asks for nothing", async () => {
    const { page, trouble } = await open(quickstart);
    assert.equal(await page.locator("h1").first().textContent(), "quickstart");
    assert.match(await page.locator(".nature").textContent(), /^Simulated\./);
    assert.match(await page.locator(".card .headline").textContent(), /fewer active tokens/);
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("every chart has a name, and everything drawn lies inside it", async () => {
    const { page } = await open(quickstart);
    await page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
    const charts = await page.evaluate(() => [...document.querySelectorAll("svg")].map((svg) => {
      const frame = svg.viewBox.baseVal;
      const outside = [...svg.querySelectorAll("circle, rect, line, polyline, path, text")].filter((shape) => {
        const box = shape.getBBox();
        const slack = shape.tagName === "text" ? 3 : 8;
        return box.x < -slack || box.y < -slack || box.x + box.width > frame.width + slack || box.y + box.height > frame.height + slack;
      });
      return { name: svg.getAttribute("aria-label"), role: svg.getAttribute("role"), outside: outside.map((shape) => shape.outerHTML) };
    }));
    assert.ok(charts.length > 40, `${charts.length} charts`);
    for (const { name, role, outside } of charts) {
      assert.equal(role, "img");
      assert.ok(name.length > 5, name);
      assert.deepEqual(outside, [], name);
    }
    for (const section of ["#verdict", "#glance", "#measurements", "#scenarios", "#time", "#tools"]) {
      assert.ok(await page.locator(`${section} svg`).count() > 0, section);
    }
    await page.close();
  });

  test("trials are filtered and sorted", async () => {
    const { page, trouble } = await open(quickstart);
    const rows = page.locator("#list tbody tr");
    const column = async (at) => rows.evaluateAll((found, place) => found.map((row) => row.children[place].textContent), at);
    const all = await rows.count();
    assert.equal(all, 80);
    await page.getByLabel("Outcome", { exact: true }).selectOption("fail");
    const failed = await rows.count();
    assert.ok(failed > 0 && failed < all);
    assert.deepEqual([...new Set(await column(1))], ["fail"]);
    await page.getByLabel("Outcome", { exact: true }).selectOption("");
    await page.getByLabel("Mode", { exact: true }).selectOption({ label: "plain" });
    assert.equal(await rows.count(), 40);
    await page.getByRole("searchbox").fill("parser");
    assert.equal(await rows.count(), 10);
    assert.match(await page.locator("#list [role=status]").textContent(), /10 of 80/);
    await page.getByRole("searchbox").fill("no such trial");
    assert.equal(await rows.count(), 0);
    await page.getByRole("searchbox").fill("");
    await page.getByRole("button", { name: "Time" }).click();
    const sorted = (await column(5)).map((cell) => parseFloat(cell));
    assert.deepEqual(sorted, [...sorted].sort((a, b) => a - b));
    await page.getByRole("button", { name: "Time" }).click();
    assert.equal(await page.locator("#list th[aria-sort]").getAttribute("aria-sort"), "descending");
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("a keyboard is enough", async () => {
    const { page, trouble } = await open(quickstart);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the verdict");
    await page.getByRole("button", { name: "Tokens" }).focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#list th[aria-sort]").count(), 1);
    await page.locator("#list tbody a").first().focus();
    await page.keyboard.press("Enter");
    await page.locator("#trial h1").waitFor();
    assert.ok(await page.locator("#report").isHidden());
    const first = await page.locator("#trial h1").textContent();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((before) => document.querySelector("#trial h1").textContent !== before, first);
    await page.keyboard.press("Escape");
    await page.locator("#list").waitFor({ state: "visible" });
    assert.ok(await page.locator("#trial").isHidden());
    const boxes = page.locator("#list tbody input");
    await boxes.nth(0).focus();
    await page.keyboard.press("Space");
    await boxes.nth(1).focus();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Compare these two" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#trial .sides").waitFor();
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("a trial is told step by step, and two show where they part", async () => {
    const file = runSuite(replaySuite("parting", {
      careful: [text("I look first."), call("read", { path: "a" }, "one"), call("edit", { path: "a" }, "ok"), text("done")],
      hasty: [text("I know it."), call("read", { path: "a" }, "one"), call("bash", { command: "rm a" }, "gone"), call("bash", { command: "ls" }, ""), text("done")],
    }), "parting");
    const { page, trouble } = await open(file);
    await page.locator("#list tbody tr", { hasText: "careful" }).locator("a").click();
    await page.locator("#trial h1").waitFor();
    const kinds = await page.locator("#trial .event .kind").allTextContents();
    assert.deepEqual(kinds, ["says", "calls", "calls", "says"]);
    assert.match(await page.locator("#trial").textContent(), /Turn 0/);
    assert.match(await page.locator("#trial").textContent(), /holds/);
    await page.getByLabel("Show another trial beside this one").selectOption({ index: 1 });
    await page.locator("#split").waitFor();
    assert.match(await page.locator("#split").textContent(), /from step 2 on/);
    const sides = await page.locator(".sides .tool").allTextContents();
    assert.deepEqual(sides, ["read", "read", "edit", "bash", "bash"]);
    await page.getByRole("button", { name: /Go to where they part/ }).click();
    await page.screenshot({ path: join(pictures, "side-by-side.png"), fullPage: true });
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("agents cannot act on the page", async () => {
    const long = "x".repeat(300_000) + HOSTILE;
    const file = runSuite(replaySuite("hostile", {
      evil: [{ type: "reasoning", content: HOSTILE, durationMs: 1, tokenCount: 2 }, call(HOSTILE, { command: HOSTILE, [HOSTILE]: 1 }, HOSTILE),
        call("bash", {}, long), { type: "error", message: HOSTILE, recoverable: true }, text(HOSTILE + " done")],
      good: [call("bash", { command: "ls" }, "a"), text("done")],
    }), "hostile");
    const { page, trouble } = await open(file);
    const scripts = await page.evaluate(() => document.scripts.length);
    assert.equal(scripts, 5, "data, Markdown, two traces and the program");
    await page.locator("#list tbody tr", { hasText: "evil" }).locator("a").click();
    await page.locator("#trial .event").first().waitFor();
    await page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
    const found = await page.evaluate(() => ({
      hit: window.hit ?? null,
      scripts: document.scripts.length,
      foreign: document.querySelectorAll("#trial img, #trial svg, #trial style, #trial base, #trial script").length,
      title: document.title,
      shown: getComputedStyle(document.body).display,
      text: document.getElementById("trial").textContent,
    }));
    assert.equal(found.hit, null);
    assert.equal(found.scripts, scripts);
    assert.equal(found.foreign, 0);
    assert.equal(found.title, "hostile · Assize");
    assert.notEqual(found.shown, "none");
    assert.ok(found.text.includes("</script><script>window.hit = 1</script>"), "it is shown as it is");
    assert.ok(found.text.includes("‹U+202E›gnp.exe") && found.text.includes("‹U+200B›hidden‹U+E0041›"));
    assert.ok(!/[\u001b\u202a-\u202e\u2066-\u2069]/.test(found.text));
    assert.match(found.text, /Cut here; the whole text has 30\d,\d+ bytes/);
    await page.evaluate(() => { location.hash = "trial-0-vs-1"; });
    await page.locator(".sides").waitFor();
    assert.equal(await page.evaluate(() => window.hit ?? null), null);
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("the head tells what was run, and the list at the top leads to every section", async () => {
    const { page, trouble } = await open(quickstart);
    const origin = await page.locator(".origin").textContent();
    for (const word of ["started", "UTC", "took", "tokens", "cost", "assize"]) assert.ok(origin.includes(word), `${word} in ${origin}`);
    const sections = await page.locator("main#report > section").evaluateAll((found) => found.map((section) => section.id));
    const links = await page.locator("nav a").evaluateAll((found) => found.map((link) => link.getAttribute("href").slice(1)));
    assert.deepEqual(links, sections);
    assert.match(await page.locator("#modes").textContent(), /with-docs/);
    assert.match(await page.locator(".card .values").first().textContent(), /^\d+ % → \d+ %$/);
    // Parts of the time have colours that no mode has.
    const shades = await page.locator("#time .chip").evaluateAll((found) => found.map((chip) => [...chip.classList].at(-1)));
    assert.ok(shades.some((shade) => /^p\d$/.test(shade)), shades.join(" "));
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("the result is copied as Markdown", async () => {
    const { page, trouble } = await open(quickstart);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as Markdown" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /^## quickstart/);
    assert.ok(copied.includes("with-docs") && copied.includes("| "), copied);
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("trials that did not pass come first, and a scenario shows its answers side by side", async () => {
    const { page, trouble } = await open(quickstart);
    const outcomes = await page.locator("#list tbody th").allTextContents();
    assert.deepEqual(outcomes, [...outcomes].sort((a, b) => ["fail", "void", "pass"].indexOf(a) - ["fail", "void", "pass"].indexOf(b)));
    await page.locator("#scenarios tbody th a").first().click();
    await page.locator("#trial .modes").waitFor();
    assert.deepEqual(await page.locator("#trial .mode h2").allTextContents(), ["plain", "with-docs"]);
    assert.ok(await page.locator("#trial .answer pre").count() >= 2);
    assert.ok(await page.locator("#report").isHidden());
    await page.getByRole("button", { name: "← Report" }).click();
    await page.locator("#scenarios").waitFor();
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("the time of a trial is a waterfall", async () => {
    const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, "0")}.000Z`;
    const suite = replaySuite("falling", { one: [], two: [] });
    const timed = JSON.stringify({
      sessionId: "s",
      events: [{ type: "turn_boundary", turnNumber: 0, timestamp: at(1) }, { ...call("bash", { command: "ls" }, "a"), timestamp: at(3), durationIsBound: true }, text("done")],
      turns: [], summary: { totalTurns: 1, totalToolCalls: 1, totalTokens: {}, totalDuration: 6000 },
      userTurns: [{ startedAt: at(0), durationMs: 6000 }],
      modelCalls: [{ id: "call-1", model: "gpt-x", startedAt: at(1), ttftMs: 400, durationMs: 1500, tokens: {} }],
    });
    for (const mode of ["one", "two"]) writeSuite("falling", { [`sessions/${mode}.json`]: timed });
    const { page, trouble } = await open(runSuite(suite, "falling"));
    await page.evaluate(() => { location.hash = "trial-0"; });
    await page.locator("#trial .waterfall svg").waitFor();
    const name = await page.locator("#trial .waterfall svg").getAttribute("aria-label");
    assert.match(name, /start-up.*gpt-x.*bash/);
    assert.match(await page.locator("#trial .waterfall .legend").textContent(), /waiting for the first token/);
    assert.match(await page.locator("#trial .waterfall svg").textContent(), /≤ 5\.0 ms/);
    await page.close();
    assert.deepEqual(trouble, []);
  });

  // The pages that docs/reading-a-report.md speaks of, and those that are hard to draw.
  const six = () => writeSuite("six", {
    "assize.yaml": "name: six\nprovider: { uses: simulated, latency_ms: 0 }\nmodes:\n" +
      [["plain", 0.5], ["docs", 0.8], ["careful", 0.7], ["cheap", 0.3], ["fast", 0.6], ["never", 0]].map(([mode, rate]) => `  ${mode}: { provider: { uses: simulated, latency_ms: 0, success_rate: ${rate} } }\n`).join("") +
      "scenarios: { paths: ['s*.yaml'] }\nexecution: { repetitions: 5, concurrency: 8, warmup: false }\n",
    ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`s${n}.yaml`, `id: task-${n}\nprompt: do it\nchecks: [ { output: { matches: '.' } } ]\n`])),
  });

  test("six modes are ranked and held against each other", async () => {
    const { page, trouble } = await open(runSuite(six(), "six"));
    const rows = page.locator("#verdict table").first().locator("tbody tr");
    assert.equal(await rows.count(), 6);
    assert.match(await rows.first().textContent(), /^1docs/);
    assert.match(await rows.last().textContent(), /never0 %/);
    assert.equal(await page.locator("#verdict td small", { hasText: "the baseline" }).count(), 1);
    const matrix = page.locator("#verdict table").nth(1);
    assert.equal(await matrix.locator("tbody tr").count(), 6);
    assert.match(await matrix.locator("tbody tr").first().textContent(), /\+/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth) <= 0);
    await page.screenshot({ path: join(pictures, "six-modes.png"), fullPage: true });
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("a run in which nothing worked says why, and nothing else", async () => {
    const suite = writeSuite("void", {
      "assize.yaml": "name: void\nmodes:\n  one: { provider: { uses: command, command: [./gone.sh], free: true } }\n  two: { provider: { uses: command, command: [./gone.sh], free: true } }\nscenarios: { paths: [s.yaml] }\nexecution: { repetitions: 3, warmup: false }\n",
      "s.yaml": "id: s\nprompt: do it\nchecks: [ { output: { contains: done } } ]\n",
    });
    const { page, trouble } = await open(runSuite(suite, "void", ["--no-preflight"], 5));
    const verdict = await page.locator("#verdict").textContent();
    assert.match(verdict, /No verdict: every trial of every mode ended with an error/);
    assert.ok(!/better|worse|equivalent/.test(verdict.replace("nothing is known about which one is better", "")), verdict);
    assert.match(await page.locator("#failures").textContent(), /gone\.sh/);
    await page.screenshot({ path: join(pictures, "all-void.png"), fullPage: true });
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("five hundred trials with traces stay small and open at once", async () => {
    const suite = writeSuite("many", {
      "assize.yaml": "name: many\nprovider: { uses: simulated, latency_ms: 0, events: 160, tool_calls: 60 }\nmodes: { a: {}, b: {} }\nscenarios: { paths: ['s*.yaml'] }\nexecution: { repetitions: 50, concurrency: 8, warmup: false }\n",
      ...Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`s${n}.yaml`, `id: s${n}\nprompt: do it\n`])),
    });
    const file = runSuite(suite, "many");
    const bytes = statSync(file).size;
    assert.ok(bytes < 20_000_000, `${bytes} bytes`);
    const begin = performance.now();
    const { page, trouble } = await open(file);
    await page.locator("#list tbody tr").first().waitFor();
    const opened = performance.now() - begin;
    assert.equal(await page.evaluate(() => document.querySelectorAll("script[id^=trace-]").length), 500);
    const step = await page.evaluate(async () => {
      const begin = performance.now();
      location.hash = "trial-499";
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return performance.now() - begin;
    });
    await page.locator("#trial .event").first().waitFor();
    console.log(`500 trials: ${(bytes / 1e6).toFixed(1)} MB, opened in ${opened.toFixed(0)} ms, a trial in ${step.toFixed(0)} ms`);
    // Generous, because the machine may be busy; on a quiet one it is far less than a second.
    assert.ok(opened < 15_000, `${opened} ms`);
    await page.close();
    assert.deepEqual(trouble, []);
  });

  test("it fits a phone, a dark room and paper", async () => {
    for (const [name, options] of Object.entries({
      light: {},
      dark: { colorScheme: "dark" },
      narrow: { viewport: { width: 390, height: 844 } },
      tablet: { viewport: { width: 768, height: 1024 } },
    })) {
      const { page, trouble } = await open(quickstart, options);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${name} is ${wider} px too wide`);
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
      await page.evaluate(() => { location.hash = "trial-0"; });
      await page.locator("#trial h1").waitFor();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth) <= 0, `${name}, one trial`);
      await page.screenshot({ path: join(pictures, `${name}-trial.png`), fullPage: true });
      await page.close();
      assert.deepEqual(trouble, []);
    }
    const paper = async (colorScheme) => {
      const { page } = await open(quickstart, { colorScheme });
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const pdf = await page.pdf({ path: join(pictures, "print.pdf"), format: "A4" });
      await page.close();
      return { background, bytes: pdf.length };
    };
    const [light, dark] = [await paper("light"), await paper("dark")];
    assert.notEqual(light.background, dark.background);
    assert.ok(light.bytes > 20_000);
  });

  test("text stands out from its background, in both themes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const { page } = await open(quickstart, { colorScheme });
      const weak = await page.evaluate(() => {
        const channel = (value) => { const share = value / 255; return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4; };
        const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
        const behind = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor);
            if (alpha === 1 && getComputedStyle(at).backgroundColor.startsWith("rgb")) return [r, g, b];
          }
          return [255, 255, 255];
        };
        const ratio = (element, colour) => {
          const [a, b] = [light(parse(colour)), light(behind(element))].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        };
        const texts = [...document.querySelectorAll("main#report *, header *, nav *, footer")].filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) && element.getClientRects().length);
        return texts.map((element) => {
          const style = getComputedStyle(element);
          return { text: element.textContent.slice(0, 40), ratio: ratio(element, element instanceof SVGElement ? style.fill : style.color) };
        }).filter(({ ratio }) => ratio < 4.5);
      });
      assert.deepEqual(weak, [], colorScheme);
      await page.close();
    }
  });

  test("published sessions of another profiler are shown as they are", { skip: existsSync(published) ? undefined : "shared/fixtures/published is not beside this checkout" }, async () => {
    const { page, trouble } = await open(rowsReport(published, "published"));
    const words = await page.locator("#glance tbody tr").allTextContents();
    assert.ok(words[0].includes("baseline") && words[0].includes("80.3 s") && words[0].includes("unknown"), words[0]);
    assert.match(await page.locator(".card").nth(1).textContent(), /10\.8k against 30\.0k/);
    assert.match(await page.locator("#trials").textContent(), /No traces were stored/);
    await page.screenshot({ path: join(pictures, "published.png"), fullPage: true });
    await page.close();
    assert.deepEqual(trouble, []);
  });
});
