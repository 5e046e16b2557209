// The table of trials and the view of single ones. Everything from trials is written as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Columns of trials: what is the same in all of them stands once, what repeats is named by its place, numbers may stand as steps.
  const unpack = (packed) => {
    const each = (numbers) => numbers.flatMap((one) => Array.isArray(one) ? Array(one[1]).fill(one[0]) : [one]);
    const column = (values) => {
      if (Array.isArray(values)) return values;
      if ("same" in values) return Array(packed.count).fill(values.same);
      if ("words" in values) return each(values.at).map((place) => values.words[place]);
      let sum = 0;
      if ("steps" in values) return each(values.steps).map((step) => (sum += step));
      return each(values.times).map((step) => new Date(sum += step).toISOString());
    };
    const found = Array.from({ length: packed.count }, () => ({}));
    for (const [name, values] of Object.entries(packed)) {
      if (name === "count" || values === null) continue;
      if (name === "numbers" || name === "least") {
        const columns = values.map(column);
        found.forEach((trial, place) => { trial[name] = columns.map((numbers) => numbers[place]); });
      } else {
        column(values).forEach((value, place) => { if (value !== null) found[place][name] = value; });
      }
    }
    return found;
  };
  const trials = unpack(data.trials);
  const report = document.getElementById("report");
  const view = document.getElementById("trial");
  const PAGE = 200;
  const LONG = 700;

  // An element with text and children.
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };

  // ---- numbers, as in every other output ----
  const duration = (ms) => {
    const s = ms / 1000;
    if (ms < 10) return ms.toFixed(1) + " ms";
    if (ms < 1000) return ms.toFixed(0) + " ms";
    if (s < 10) return s.toFixed(2) + " s";
    if (s < 120) return s.toFixed(1) + " s";
    const whole = Math.round(s), minutes = Math.floor(whole / 60) % 60, hours = Math.floor(whole / 3600);
    const two = (n) => String(n).padStart(2, "0");
    return hours ? hours + " h " + two(minutes) + " min" : minutes + " min " + two(whole % 60) + " s";
  };
  const quantity = (n) => {
    const size = Math.abs(n);
    if (size >= 1e9) return (n / 1e9).toFixed(1) + "G";
    if (size >= 1e6) return (n / 1e6).toFixed(1) + "M";
    if (size >= 1e4) return (n / 1e3).toFixed(1) + "k";
    return Number.isInteger(n) ? String(n) : n.toFixed(1);
  };
  const money = (usd) => "$" + (usd === 0 || Math.abs(usd) >= 1 ? usd.toFixed(2) : usd.toFixed(Math.abs(usd) >= 0.01 ? 3 : 5));
  const COLUMNS = [
    { name: "Outcome", of: (t) => t.outcome },
    { name: "Scenario", of: (t) => data.scenarios[t.scenario] },
    { name: "Mode", of: (t) => data.modes[t.mode] },
    { name: "Rep.", of: (t) => t.iteration },
    { name: "Time", of: (t) => t.numbers[0], show: duration, bound: true },
    { name: "Tokens", of: (t) => t.numbers[1], show: quantity, bound: true },
    { name: "Active", of: (t) => t.numbers[2], show: quantity, bound: true },
    { name: "Cost", of: (t) => t.numbers[3], show: money, bound: true },
    { name: "Tools", of: (t) => t.numbers[4], show: quantity },
    { name: "Turns", of: (t) => t.numbers[5], show: quantity },
    { name: "Ended by", of: (t) => t.reason || "" },
  ];
  // What is known in part has a lower bound in place of a number.
  const least = (place) => (t) => t.least && t.least[place] !== null ? t.least[place] : undefined;
  COLUMNS[5].least = least(1);
  COLUMNS[6].least = least(2);
  COLUMNS[7].least = least(3);
  const shown = (column, trial) => {
    const value = column.of(trial);
    if (value === null || value === undefined) {
      const atLeast = column.least && column.least(trial);
      return atLeast === undefined ? "unknown" : "≥ " + column.show(atLeast);
    }
    const text = column.show ? column.show(value) : String(value);
    return column.bound && trial.censored ? (column.least ? "≥ " : "> ") + text : text;
  };
  const name = (t) => data.scenarios[t.scenario] + " · " + data.modes[t.mode] + " #" + t.iteration;

  // ---- theme ----
  const theme = document.getElementById("theme");
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  nameTheme();
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });

  // ---- copy ----
  const copy = document.getElementById("copy");
  const markdown = document.getElementById("markdown");
  if (markdown) {
    const text = JSON.parse(markdown.textContent);
    const byHand = () => {
      const area = make("textarea", { class: "skip" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    };
    const say = (done) => {
      copy.textContent = done ? "Copied" : "Could not copy";
      setTimeout(() => { copy.textContent = "Copy as Markdown"; }, 2000);
    };
    copy.hidden = false;
    copy.addEventListener("click", () => {
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say(true), () => say(byHand()));
      else say(byHand());
    });
  }

  // ---- the list ----
  const state = { text: "", scenario: "", mode: "", outcome: "", traced: false, sort: -1, down: false, rows: PAGE };
  let order = trials.map((_, place) => place);
  const picked = new Set();

  const matches = (t) =>
    (state.scenario === "" || t.scenario === Number(state.scenario)) &&
    (state.mode === "" || t.mode === Number(state.mode)) &&
    (state.outcome === "" || t.outcome === state.outcome) &&
    (!state.traced || t.hasTrace) &&
    (state.text === "" || t.search.includes(state.text));
  const compare = (a, b) => {
    const unknown = (v) => v === null || v === undefined || v === "";
    if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
    const by = typeof a === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
    return state.down ? -by : by;
  };
  // What did not pass comes first, unless a heading was chosen.
  const RANKS = { fail: 0, void: 1, pass: 2 };
  const arrange = () => {
    order = trials.map((_, place) => place).filter((place) => matches(trials[place]));
    const column = COLUMNS[state.sort];
    if (!column) order.sort((a, b) => RANKS[trials[a].outcome] - RANKS[trials[b].outcome] || a - b);
    else order.sort((a, b) => compare(column.of(trials[a]), column.of(trials[b])) || a - b);
  };

  const list = document.getElementById("list");
  const body = make("tbody");
  const status = make("p", { class: "legend", role: "status" });
  const more = make("button", { type: "button", class: "more", onclick: () => { state.rows += 5 * PAGE; draw(); } });
  const compareButton = make("button", { type: "button", disabled: true, onclick: () => {
    const [a, b] = [...picked];
    location.hash = "trial-" + a + "-vs-" + b;
  } }, "Compare two");

  const row = (place) => {
    const t = trials[place];
    const box = make("input", { type: "checkbox", "aria-label": "Pick " + name(t) + " to compare", onchange: () => {
      if (box.checked) picked.add(place); else picked.delete(place);
      markPicked();
    } });
    box.checked = picked.has(place);
    box.disabled = !t.hasTrace;
    const cells = COLUMNS.map((column, at) => {
      const text = shown(column, t);
      if (at === 0) {
        const link = make("a", { href: "#trial-" + place, "aria-label": t.outcome + ", open " + name(t) }, t.outcome);
        return make("th", { scope: "row", class: "outcome " + t.outcome }, link);
      }
      return make("td", { class: text === "unknown" ? "unknown" : column.show ? "number" : "" }, text);
    });
    return make("tr", {}, make("td", {}, box), ...cells);
  };
  const markPicked = () => {
    compareButton.disabled = picked.size !== 2;
    compareButton.textContent = picked.size === 2 ? "Compare these two" : "Compare two (" + picked.size + " picked)";
  };
  const draw = () => {
    arrange();
    body.replaceChildren(...order.slice(0, state.rows).map(row));
    const left = order.length - state.rows;
    more.hidden = left <= 0;
    more.textContent = "Show more (" + left + " left)";
    status.textContent = order.length === trials.length ? trials.length + " trials" : order.length + " of " + trials.length + " trials";
    heads.forEach((head, at) => {
      if (at === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.firstChild.textContent = COLUMNS[at].name + (at === state.sort ? (state.down ? " ↓" : " ↑") : "");
    });
  };
  const heads = COLUMNS.map((column, at) => make("th", { scope: "col" }, make("button", { type: "button", onclick: () => {
    state.down = state.sort === at && !state.down;
    state.sort = at;
    draw();
  } }, column.name)));

  const choose = (label, key, options) => make("label", {}, label, make("select", { "aria-label": label, onchange: (event) => {
    state[key] = event.target.value;
    state.rows = PAGE;
    draw();
  } }, make("option", { value: "" }, "all"), ...options.map(([value, text]) => make("option", { value }, text))));
  const numbered = (names) => names.map((text, at) => [at, text]);
  const setUpList = () => {
    for (const t of trials) {
      t.search = (name(t) + " " + t.outcome + " " + (t.reason || "") + " " + (t.error || "") + " " + t.run).toLowerCase();
    }
    const search = make("input", { type: "search", placeholder: "scenario, mode, error …", oninput: () => {
      state.text = search.value.trim().toLowerCase();
      state.rows = PAGE;
      draw();
    } });
    const hasTraces = trials.some((t) => t.hasTrace);
    const traced = make("label", { hidden: !hasTraces }, "With trace", make("select", { "aria-label": "With trace", onchange: (event) => { state.traced = event.target.value === "yes"; draw(); } },
      make("option", { value: "" }, "all"), make("option", { value: "yes" }, "only")));
    compareButton.hidden = !hasTraces;
    list.classList.toggle("untraced", !hasTraces);
    list.append(
      make("div", { class: "filters", role: "search", "aria-label": "Filter trials" },
        make("label", {}, "Search", search),
        choose("Scenario", "scenario", numbered(data.scenarios)),
        choose("Mode", "mode", numbered(data.modes)),
        choose("Outcome", "outcome", ["pass", "fail", "void"].map((word) => [word, word])),
        traced,
        compareButton),
      status,
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Trials" },
        make("table", {},
          make("caption", {}, "Trials; a heading sorts, an outcome opens"),
          make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", { "aria-label": "Pick" }, "")), ...heads)),
          body)),
      more);
    draw();
    markPicked();
  };

  // ---- one trial ----
  const cache = new Map();
  const trace = (place) => {
    if (!cache.has(place)) {
      const element = document.getElementById("trace-" + place);
      cache.set(place, element ? JSON.parse(element.textContent) : null);
    }
    return cache.get(place);
  };
  const textOf = (text) => typeof text === "string" ? text : text.text;
  const note = (text, t) => typeof text === "string" ? null : make("p", { class: "cut" },
    "Cut here; the whole text has " + text.of.toLocaleString("en") + " bytes." +
    (t.position === undefined ? "" : " To read all of it: assize show " + t.run + "/" + t.position + " --full"));
  const block = (label, text, t) => {
    const content = textOf(text);
    if (content === "") return null;
    const pre = make("pre", { tabindex: content.length > LONG ? "0" : false }, content);
    if (content.length <= LONG && content.split("\n").length <= 14) return make("div", {}, make("small", {}, label), pre, note(text, t));
    const size = content.split("\n").length;
    return make("details", {}, make("summary", {}, label + " (" + size + (size === 1 ? " line, " : " lines, ") + content.length.toLocaleString("en") + " characters)"), pre, note(text, t));
  };
  const KINDS = { thought: "thinks", text: "says", call: "calls", error: "error" };
  const eventOf = (event, t) => {
    const facts = [];
    if (event.agent) facts.push("subagent " + event.agent);
    if (event.ms !== undefined) facts.push((event.bound ? "at most " : "") + duration(event.ms));
    if (event.tokens !== undefined) facts.push(quantity(event.tokens) + " tokens");
    const meta = facts.length ? make("span", { class: "meta" }, facts.join(" · ")) : null;
    let content;
    if (event.is === "call") {
      const word = event.ok === false ? make("span", { class: "meta failed-word" }, "failed") : event.ok === undefined ? make("span", { class: "meta" }, "result unknown") : null;
      content = [make("span", { class: "tool" }, event.tool), word, meta, block("input", event.input, t),
        event.error === undefined ? null : block("error", event.error, t), block("output", event.output, t)];
    } else {
      const text = textOf(event.text);
      const said = text.length <= 4 * LONG ? make("div", { class: "said" }, text)
        : make("details", {}, make("summary", {}, text.slice(0, 160) + " …"), make("div", { class: "said" }, text));
      const state = event.is === "error" ? make("span", { class: "meta" }, event.recoverable ? "the session went on" : "the session ended") : null;
      content = [said, meta, state, note(event.text, t)];
    }
    return make("div", { class: "event " + event.is + (event.ok === false ? " failed" : "") },
      make("div", { class: "kind" }, KINDS[event.is] || event.is), make("div", { class: "content" }, ...content));
  };
  const turnHead = (turn) => {
    const facts = [];
    if (turn.ms !== undefined) facts.push(duration(turn.ms));
    if (turn.input !== undefined) facts.push(quantity(turn.input) + " tokens in");
    if (turn.output !== undefined) facts.push(quantity(turn.output) + " tokens out");
    return make("div", { class: "turn" }, make("h3", {}, turn.number === undefined ? "Before the first turn" : "Turn " + turn.number), make("span", {}, facts.join(" · ")));
  };
  const facts = (t) => make("dl", { class: "facts-list" },
    ...[["outcome", t.outcome + (t.censored ? ", cut off: numbers are lower bounds" : "")],
      ...COLUMNS.slice(4).map((column) => [column.name.toLowerCase(), shown(column, t)]),
      ["started", t.started], ["run", t.run], ["position", t.position]]
      .filter(([, value]) => value !== undefined && value !== "")
      .map(([label, value]) => make("div", {}, make("dt", {}, label), make("dd", { class: label === "outcome" ? "outcome " + t.outcome : value === "unknown" ? "unknown" : "" }, String(value)))));
  const checksOf = (t) => !t.checks ? null : make("ul", { class: "checks" }, ...t.checks.map((check) => {
    const why = [["expected", check.expected], ["actual", check.actual], ["error", check.error]].filter(([, value]) => value);
    return make("li", {}, make("span", { class: "outcome " + (check.passed ? "pass" : "fail") }, check.passed ? "✓ holds " : "✗ fails "), check.text,
      why.length ? make("dl", {}, ...why.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)])) : null);
  }));
  const told = (label, text) => !text ? null : make("details", { open: text.length <= LONG }, make("summary", {}, label), make("pre", {}, text));
  const changes = (diff) => !diff ? null : make("details", {}, make("summary", {}, "Changes in the workspace"),
    make("pre", { class: "diff" }, ...diff.split("\n").map((line) => make("span", { class: /^\+(?!\+\+ )/.test(line) ? "added" : /^-(?!-- )/.test(line) ? "removed" : "" }, line + "\n"))));
  const lead = (t) => [
    facts(t),
    told("Prompt", data.prompts[t.scenario]),
    told("Instructions", data.instructions[t.mode]),
    t.isBare ? make("p", { class: "cut" }, "To keep this file small, checks and messages of this trial are left out.") : null,
    t.error ? make("p", { class: "problem" }, t.error) : null,
    ...(t.remarks || []).map((remark) => make("p", { class: "cut" }, remark)),
    checksOf(t),
    told("Final answer", t.answer),
    changes(t.diff),
    t.findings ? make("details", {}, make("summary", {}, "What the analyzers found"), make("dl", { class: "glossary" }, ...t.findings.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)]))) : null,
  ];
  const cuts = (found) => {
    const said = [];
    if (found.dropped) said.push(found.dropped.toLocaleString("en") + " events in the middle are left out");
    if (found.cut) said.push(found.cut.toLocaleString("en") + " long texts are cut");
    return said.length ? make("p", { class: "cut" }, "To keep this file small, " + said.join(" and ") + ".") : null;
  };
  // ---- where the time of a trial went ----
  const SVG = "http://www.w3.org/2000/svg";
  const draw_ = (tag, attributes, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [label, value] of Object.entries(attributes)) element.setAttribute(label, value);
    element.append(...children);
    return element;
  };
  const BARS = { start: "start-up", model: "model", side: "model, beside the task", tool: "tool" };
  const waterfall = (place) => {
    const found = trace(place) && trace(place).waterfall;
    if (!found) return null;
    const WIDTH = 900, LABELS = 190, RIGHT = 84, LINE = 18, TOP = 22;
    const height = TOP + found.bars.length * LINE + 6;
    const x = (ms) => LABELS + (found.length > 0 ? ms / found.length : 0) * (WIDTH - LABELS - RIGHT);
    const shapes = [];
    for (let tick = 0; tick <= 4; tick += 1) {
      const ms = found.length * tick / 4;
      shapes.push(draw_("line", { class: "grid", x1: x(ms), x2: x(ms), y1: TOP - 4, y2: height }));
      shapes.push(draw_("text", { class: "tick", x: x(ms), y: 12, "text-anchor": tick === 4 ? "end" : tick === 0 ? "start" : "middle" }, tick === 0 ? "0" : duration(ms)));
    }
    found.bars.forEach((bar, at) => {
      const y = TOP + at * LINE, took = (bar.bound ? "at most " : "") + duration(bar.ms);
      const words = BARS[bar.is] + (bar.is === "start" ? "" : " " + bar.name) + ": " + took + ", from " + duration(bar.at) + " on" + (bar.first === undefined ? "" : ", first token after " + duration(bar.first));
      const rect = (kind, from, to) => draw_("rect", { class: "fall " + kind + (bar.bound ? " open" : ""), x: x(from), y: y + 2, width: Math.max(1, x(to) - x(from)), height: LINE - 5 }, draw_("title", {}, words));
      const label = bar.name.length > 26 ? bar.name.slice(0, 25) + "…" : bar.name;
      shapes.push(draw_("text", { class: "lane", x: LABELS - 8, y: y + 12, "text-anchor": "end" }, label));
      if (bar.first === undefined) shapes.push(rect(bar.is, bar.at, bar.at + bar.ms));
      else shapes.push(rect("wait", bar.at, bar.at + bar.first), rect(bar.is, bar.at + bar.first, bar.at + bar.ms));
      shapes.push(draw_("text", { class: "tick", x: Math.min(WIDTH - RIGHT + 6, x(bar.at + bar.ms) + 5), y: y + 12 }, (bar.bound ? "≤ " : "") + duration(bar.ms)));
    });
    const name = "Where the time of " + duration(found.length) + " went: " + found.bars.slice(0, 20).map((bar) => BARS[bar.is] + " " + bar.name + " " + duration(bar.ms)).join(", ");
    const kinds = [...new Set(found.bars.flatMap((bar) => bar.first === undefined ? [bar.is] : ["wait", bar.is]))];
    return make("details", { open: true, class: "waterfall" }, make("summary", {}, "Where the time went"),
      make("div", { class: "scroll" }, draw_("svg", { role: "img", "aria-label": name, viewBox: "0 0 " + WIDTH + " " + height, width: WIDTH, height }, ...shapes)),
      make("p", { class: "legend" }, ...kinds.flatMap((kind) => [make("span", { class: "chip fall-" + kind }), (kind === "wait" ? "waiting for the first token" : BARS[kind]) + "  "]),
        found.left_out ? found.left_out + " more are left out." : ""));
  };
  const noTrace = () => make("p", { class: "empty" }, "The trace of this trial is not in this file.");
  const timeline = (place) => {
    const t = trials[place], found = trace(place);
    if (!found) return [noTrace()];
    return [cuts(found), ...found.turns.flatMap((turn) => [turnHead(turn), ...turn.events.map((event) => eventOf(event, t))])];
  };

  const neighbour = (place, by) => {
    const at = order.indexOf(place);
    return at < 0 ? undefined : order[at + by];
  };
  const go = (place) => { if (place !== undefined) location.hash = "trial-" + place; };
  const sameCell = (place) => {
    const t = trials[place];
    const near = (other) => (trials[other].scenario === t.scenario ? 0 : 2) + (trials[other].mode === t.mode ? 1 : 0);
    return trials.map((_, other) => other).filter((other) => other !== place && trials[other].hasTrace)
      .sort((a, b) => near(a) - near(b) || a - b).slice(0, 300);
  };
  const showOne = (place) => {
    const t = trials[place];
    const others = t.hasTrace ? sameCell(place) : [];
    const beside = make("select", { "aria-label": "Show another trial beside this one", onchange: (event) => {
      if (event.target.value !== "") location.hash = "trial-" + place + "-vs-" + event.target.value;
    } }, make("option", { value: "" }, "side by side with …"), ...others.map((other) => make("option", { value: other }, name(trials[other]) + " (" + trials[other].outcome + ")")));
    const [before, after] = [neighbour(place, -1), neighbour(place, 1)];
    view.className = "";
    view.replaceChildren(
      make("div", { class: "bar" },
        make("button", { type: "button", onclick: back }, "← Report"),
        make("button", { type: "button", disabled: before === undefined, onclick: () => go(before) }, "Previous"),
        make("button", { type: "button", disabled: after === undefined, onclick: () => go(after) }, "Next"),
        others.length ? beside : null),
      make("h1", {}, name(t)),
      ...lead(t).filter(Boolean),
      ...[waterfall(place)].filter(Boolean),
      ...timeline(place).filter(Boolean));
  };

  // ---- the answers to one scenario, mode by mode ----
  const showScenario = (scenario) => {
    view.className = "pair";
    const columns = data.modes.map((mode, at) => {
      const here = trials.map((_, place) => place).filter((place) => trials[place].scenario === scenario && trials[place].mode === at);
      here.sort((a, b) => RANKS[trials[a].outcome] - RANKS[trials[b].outcome] || trials[a].iteration - trials[b].iteration);
      const one = (place) => {
        const t = trials[place];
        const failed = (t.checks || []).filter((check) => !check.passed).map((check) => check.text);
        return make("div", { class: "answer" },
          make("a", { href: "#trial-" + place, class: "outcome " + t.outcome }, t.outcome + " #" + t.iteration),
          make("span", { class: "meta" }, " " + shown(COLUMNS[4], t) + " · " + shown(COLUMNS[5], t) + " tokens"),
          t.error ? make("p", { class: "cut" }, t.error) : null,
          failed.length ? make("p", { class: "cut" }, "✗ " + failed.join("; ")) : null,
          t.answer ? make("pre", {}, t.answer) : make("p", { class: "cut" }, "The answer is not in this file."));
      };
      return make("div", { class: "mode" }, make("h2", {}, make("span", { class: "chip m" + (at % 8) }), mode),
        ...here.slice(0, 20).map(one), here.length > 20 ? make("p", { class: "cut" }, (here.length - 20) + " more are in the list of trials.") : null,
        here.length ? null : make("p", { class: "absent" }, "not run"));
    });
    view.replaceChildren(
      make("div", { class: "bar" }, make("button", { type: "button", onclick: () => { location.hash = "scenarios"; } }, "← Report"),
        make("button", { type: "button", disabled: scenario === 0, onclick: () => { location.hash = "scenario-" + (scenario - 1); } }, "Previous"),
        make("button", { type: "button", disabled: scenario + 1 >= data.scenarios.length, onclick: () => { location.hash = "scenario-" + (scenario + 1); } }, "Next")),
      make("h1", {}, data.scenarios[scenario]),
      ...[told("Prompt", data.prompts[scenario])].filter(Boolean),
      make("div", { class: "modes" }, ...columns));
  };

  // ---- two trials ----
  // Steps end with a tool call. Two trials part where they call another tool, or the same with another input.
  const steps = (place) => {
    const found = trace(place), all = [[]];
    if (!found) return null;
    for (const turn of found.turns) {
      for (const event of turn.events) {
        all[all.length - 1].push(event);
        if (event.is === "call") all.push([]);
      }
    }
    if (all[all.length - 1].length === 0) all.pop();
    return all;
  };
  const callOf = (step) => {
    const call = step && step.find((event) => event.is === "call");
    return call ? call.tool + "\n" + textOf(call.input) : null;
  };
  const parting = (a, b) => {
    const length = Math.max(a.length, b.length);
    for (let at = 0; at < length; at += 1) if (callOf(a[at]) !== callOf(b[at])) return at;
    return -1;
  };
  const showPair = (first, second) => {
    const pair = [first, second];
    const [a, b] = pair.map(steps);
    view.className = "pair";
    const cells = [];
    for (const place of pair) {
      cells.push(make("div", {}, make("h2", {}, make("a", { href: "#trial-" + place }, name(trials[place]))), ...lead(trials[place]).filter(Boolean), trace(place) ? cuts(trace(place)) || "" : noTrace()));
    }
    let split = -1;
    if (a && b) {
      split = parting(a, b);
      for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
        if (at === split) cells.push(make("div", { class: "split", id: "split", tabindex: "-1" }, "Here they part: from step " + (at + 1) + " on they do different things."));
        else cells.push(make("div", { class: "step" }, "Step " + (at + 1)));
        for (const [side, place] of [[a, first], [b, second]]) {
          cells.push(side[at] ? make("div", {}, make("div", { class: "who" }, name(trials[place])), ...side[at].map((event) => eventOf(event, trials[place]))) : make("div", { class: "absent" }, "ended before this step"));
        }
      }
      if (split < 0) cells.push(make("div", { class: "split" }, "Both made the same tool calls with the same inputs."));
    }
    view.replaceChildren(
      make("div", { class: "bar" },
        make("button", { type: "button", onclick: back }, "← Report"),
        make("button", { type: "button", onclick: () => { location.hash = "trial-" + second + "-vs-" + first; } }, "Swap"),
        split < 0 ? null : make("button", { type: "button", onclick: () => { const mark = document.getElementById("split"); mark.scrollIntoView({ block: "start" }); mark.focus(); } }, "Go to where they part (step " + (split + 1) + ")")),
      make("h1", {}, "Side by side"),
      make("div", { class: "sides" }, ...cells));
  };

  // ---- where we are ----
  let from = 0;
  const back = () => { location.hash = "trials"; };
  const route = () => {
    // Other files name a trial by its run and position.
    const named = /^#show-(.+)-(\d+)$/.exec(location.hash);
    if (named) {
      const place = trials.findIndex((t) => t.run === named[1] && t.position === Number(named[2]));
      history.replaceState(null, "", place < 0 ? "#failures" : "#trial-" + place);
    }
    const found = /^#trial-(\d+)(?:-vs-(\d+))?$/.exec(location.hash);
    const places = found ? [found[1], found[2]].filter((text) => text !== undefined).map(Number) : [];
    const asked = /^#scenario-(\d+)$/.exec(location.hash);
    const isScenario = asked !== null && Number(asked[1]) < data.scenarios.length;
    const isTrial = isScenario || (places.length > 0 && places.every((place) => place < trials.length));
    const wasTrial = !view.hidden;
    if (isTrial && !wasTrial) from = scrollY;
    report.hidden = isTrial;
    view.hidden = !isTrial;
    if (isTrial) {
      if (isScenario) showScenario(Number(asked[1]));
      else if (places.length === 2) showPair(places[0], places[1]); else showOne(places[0]);
      scrollTo({ top: 0, behavior: "instant" });
      view.focus({ preventScroll: true });
    } else if (wasTrial) {
      view.replaceChildren();
      if (location.hash === "#trials" && from > 0) scrollTo({ top: from, behavior: "instant" });
      else if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
    }
  };
  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    if (view.hidden || event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA|PRE)$/.test(event.target.tagName)) return;
    const place = Number((/^#trial-(\d+)$/.exec(location.hash) || [])[1]);
    if (event.key === "Escape") back();
    else if (event.key === "ArrowLeft" && Number.isInteger(place)) go(neighbour(place, -1));
    else if (event.key === "ArrowRight" && Number.isInteger(place)) go(neighbour(place, 1));
  });
  // Paper has no buttons: everything folded is printed.
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; opened.push(details); }
  });
  addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });

  setUpList();
  route();
})();
