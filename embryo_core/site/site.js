// The pages of a static site: they read data by script tags, which works from files too, and draw with the components of the
// dashboard. What is shown is in the address, after the #.
"use strict";

const INK = "#000037"; // the colour of text in figures (embryo_core/figures/style.py), replaced by that of the page
const MAX_ROWS = 500; // of the numbers below a figure
const NAME = document.documentElement.dataset.page;

const embryo = { components: {}, values: new Map(), waiting: new Map() };

// === Data ===

// A file of data calls this, with JSON that gzip compressed: `value` with parts {"$": i}, each the i-th of `parts`.
embryo.add = async (key, packed) => {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const { parts, value } = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const known = [];
  const filled = (part) => {
    if (part === null || typeof part !== "object") return part;
    if ("$" in part) return (known[part.$] ??= filled(parts[part.$]));
    if (Array.isArray(part)) return part.map(filled);
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, filled(each)]));
  };
  embryo.values.set(key, filled(value));
  waiting(key).resolve(embryo.values.get(key));
};

function waiting(key) {
  if (!embryo.waiting.has(key)) {
    const made = {};
    made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
    embryo.waiting.set(key, made);
  }
  return embryo.waiting.get(key);
}

function script(address) {
  return new Promise((resolve, reject) => {
    const tag = document.createElement("script");
    Object.assign(tag, { src: address, onload: resolve, onerror: () => reject(new Error(`${address} is missing.`)) });
    document.head.append(tag);
  });
}

function load(key) {
  if (!embryo.waiting.has(key)) script(`data/${key}.js`).catch(waiting(key).reject);
  return waiting(key).promise;
}

const plotly = (() => {
  let loaded;
  return () => (loaded ??= script("assets/plotly.min.js"));
})();

// === Small things ===

const find = (selector, within = document) => within.querySelector(selector);

function made(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// Shows a component of the dashboard in an element, as Streamlit does; `hear` gets what it reports, by name.
function mount(host, name, data, hear = {}) {
  const { html, css, draw } = embryo.components[name];
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  if (!root.firstChild) root.innerHTML = `<style>${css}</style>${html}`;
  draw({ parentElement: root, data, setTriggerValue: (what, value) => hear[what]?.(value) });
}

function rowsOf(csv) {
  const rows = [[]];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    if (end === "" && quoted === undefined && plain === "" && !rows.at(-1).length) break;
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length);
}

function table(columns, rows) {
  const cell = (name) => (text) => made(name, { textContent: text, className: text !== "" && !isNaN(text) ? "number" : "" });
  const head = made("thead", {}, made("tr", {}, ...columns.map(cell("th"))));
  const body = made("tbody", {}, ...rows.map((row) => made("tr", {}, ...row.map(cell("td")))));
  return made("div", { className: "table", tabIndex: 0 }, made("table", {}, head, body));
}

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  made("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// === The address ===

const chosen = () => new URLSearchParams(location.hash.slice(1));

function choose(values, replace = false) {
  const now = chosen();
  for (const [name, value] of Object.entries(values)) value ? now.set(name, value) : now.delete(name);
  const address = `#${now}`;
  if (address !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", address);
}

// What the address asks for, or what is nearest to it, and a sentence where these differ.
function view(site) {
  const now = chosen();
  const names = Object.keys(site.runs);
  const wanted = now.get("run");
  const run = names.includes(wanted) ? wanted : names[0];
  const others = names.filter((name) => name !== run);
  const all = others.join(",");
  const asked = now.get("beside") ?? (NAME === "compare" ? "all" : "");
  const beside = asked === "all" || asked === all ? others : others.filter((name) => name === asked);
  const folder = site.views[JSON.stringify([run, ...beside])] ?? site.views[JSON.stringify([run])];
  const { steps } = site.runs[run].bar;
  const step = Number(now.get("step") ?? steps.at(-1));
  const sentences = [];
  if (wanted && wanted !== run) sentences.push(`Run '${wanted}' is not here; showing '${run}'.`);
  if (!steps.includes(step)) sentences.push(`Run '${run}' has no checkpoint at step ${step}; showing another one.`);
  return {
    run, others, folder, beside: beside.length > 1 ? "all" : (beside[0] ?? ""), scale: now.get("scale") === "linear" ? "linear" : "log",
    step: steps.findLast((one) => one <= step) ?? steps[0], message: sentences.join(" "), embed: now.get("embed"),
  };
}

// === A page ===

const page = { site: null, shown: "", folder: "", parts: [] };

function options(select, values, chosenValue) {
  const given = JSON.stringify(values);
  if (select.given !== given) {
    select.given = given;
    select.replaceChildren(...values.map(([value, text]) => made("option", { value, textContent: text })));
  }
  select.value = chosenValue;
}

async function render() {
  const { site } = page;
  const now = view(site);
  options(find("#run"), Object.keys(site.runs).map((name) => [name, name]), now.run);
  const several = now.others.length > 1 ? [["all", "all other runs"]] : [];
  const pairs = now.others.filter((name) => site.views[JSON.stringify([now.run, name])]).map((name) => [name, name]);
  options(find("#beside"), [["", "no other run"], ...pairs, ...several], now.beside);
  find(".beside").hidden = !now.others.length;
  find(".message").textContent = now.message;
  find(".message").hidden = !now.message;
  links();
  mount(find(".time"), "time_bar", { ...site.runs[now.run].bar, step: now.step, scale: now.scale }, {
    step: ({ step, passing }) => { choose({ step }, passing); render(); },
    scale: (scale) => { choose({ scale }); render(); },
  });
  if (page.folder !== now.folder) await open(now);
  const look = `${now.scale} ${document.documentElement.dataset.theme}`;
  for (const part of page.parts) part.update(now, look);
}

async function open(now) {
  page.folder = now.folder;
  const { headline, parts } = await load(`${now.folder}/${NAME}`);
  if (page.folder !== now.folder) return;
  find(".headline").textContent = headline;
  const shown = parts.filter((part) => !now.embed || part.name === now.embed);
  page.parts = shown.map((part) => (part.rows ? tablePart(part) : new FigurePart(part)));
  find(".parts").replaceChildren(...page.parts.map((part) => part.element));
}

function links() {
  const kept = chosen();
  for (const name of [...kept.keys()]) if (!["run", "beside", "step", "scale"].includes(name)) kept.delete(name);
  for (const link of document.querySelectorAll("nav a, a.title")) link.hash = kept.toString();
}

function caption({ summary, rest }) {
  const words = made("div", { className: "caption" }, made("p", { textContent: summary }));
  if (rest) words.append(made("details", {}, made("summary", { textContent: "More" }), made("p", { textContent: rest })));
  return words;
}

function tablePart(part) {
  const { title, columns, rows } = part;
  const element = made("section", {}, made("h2", { textContent: title }), table(columns, rows), caption(part));
  return { element, update() {} };
}

// A figure with its choices, its caption, its files and its numbers at the chosen step.
class FigurePart {
  constructor(part) {
    Object.assign(this, part);
    this.title = made("h2");
    this.headlined = made("p", { className: "headline" });
    this.picker = made("select", { onchange: () => { choose({ [this.name]: this.picker.value }); render(); } });
    this.picker.ariaLabel = this.what;
    this.plot = made("div", { className: "plot" });
    this.frame = made("div", { className: `frame st-key-figure_${this.name}` }, this.plot); // the class that components look for
    this.words = made("div");
    this.files = made("div", { className: "files" });
    this.numbers = made("details", { className: "numbers", ontoggle: () => this.list() });
    const head = made("div", { className: "part-head" }, this.title, ...(this.choices.length > 1 ? [this.picker] : []));
    this.element = made("section", { id: this.name }, head, this.headlined, this.frame, this.words, this.files, this.numbers);
    options(this.picker, this.choices.map(({ label }) => [label, label]), this.choices[0].label);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.see(), { rootMargin: "300px" })
      .observe(this.element);
  }

  update(now, look) {
    const wanted = chosen().get(this.name);
    const choice = this.choices.find(({ label }) => label === wanted) ?? this.choices[0];
    Object.assign(this, { now, look });
    if (choice !== this.choice) this.tell(choice);
    if (this.seen) this.draw();
    this.list();
  }

  // Words first: they need neither plotly nor the numbers.
  tell(choice) {
    this.choice = choice;
    this.picker.value = choice.label;
    this.title.textContent = choice.title;
    this.headlined.textContent = choice.headline && choice.headline !== find(".headline").textContent ? choice.headline : "";
    const lacking = (choice.missing ?? []).map((run) => `Run '${run}' has not been measured for this figure.`);
    if (choice.why) lacking.push(choice.why);
    this.words.replaceChildren(...(choice.summary ? [caption(choice)] : []), ...lacking.map((text) => made("p", { textContent: text })));
    this.frame.hidden = this.files.hidden = this.numbers.hidden = !choice.file;
  }

  see() {
    this.seen = true;
    this.draw();
  }

  async draw() {
    const { choice, look, now } = this;
    if (!choice?.file || this.drawn === choice.file + look) return;
    this.drawn = choice.file + look;
    const figure = await load(choice.file);
    await plotly();
    if (this.drawn !== choice.file + look) return;
    const { data, layout } = themed(figure.plots[now.scale]);
    this.frame.classList.toggle(`st-key-scroll_${this.name}`, Boolean(layout.width));
    await Plotly.react(this.plot, data, layout, { responsive: !layout.width, displaylogo: false });
    if (!this.listens) this.plot.on("plotly_click", (event) => this.clicked(event));
    this.listens = true;
    this.figure = figure;
    this.offer(figure, now.scale);
    this.list();
  }

  // A click on a point chooses its step.
  clicked({ points: [{ x }] }) {
    const { bar } = page.site.runs[this.now.run];
    const step = bar.steps[bar.values[this.plot._fullLayout.xaxis.type]?.indexOf(x)];
    if (step === undefined) return;
    choose({ step });
    render();
  }

  offer(figure, scale) {
    const { name, csv, citation, files } = figure;
    const pictures = made("div");
    const numbers = made("button", { type: "button", textContent: "CSV", title: "Save the numbers of this figure" });
    numbers.onclick = () => save(`${name}.csv`, csv, "text/csv");
    const link = made("button", { type: "button", textContent: "Embed", title: "Copy this figure for another page" });
    link.onclick = () => this.copyFrame(link);
    this.files.replaceChildren(pictures, numbers, link);
    mount(pictures, "figure_files", { name, copied: citation, sizes: files[scale], chart: `figure_${this.name}` });
  }

  async copyFrame(button) {
    const address = new URL(location);
    const kept = chosen();
    for (const [name, value] of Object.entries({ embed: this.name, [this.name]: this.choice.label, run: this.now.run }))
      if (value) kept.set(name, value);
    address.hash = kept;
    const frame = made("iframe", { src: address.href, width: "100%", height: "640", title: this.choice.title });
    frame.style.border = "0";
    await navigator.clipboard.writeText(frame.outerHTML).catch(() => prompt("Copy this:", frame.outerHTML));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Embed"), 2000);
  }

  // The rows of the last evaluated step up to the chosen one, of a table with steps.
  list() {
    if (!this.figure) return;
    const [columns, ...rows] = (this.figure.rows ??= rowsOf(this.figure.csv));
    const at = columns.indexOf("step");
    const step = at < 0 ? null : lastUpTo(rows.map((row) => Number(row[at])), window.embryoStep ?? this.now.step);
    const label = step === null ? "Numbers" : `Numbers at step ${step.toLocaleString("en-US")}`;
    const open = this.numbers.open;
    const shown = step === null ? rows : rows.filter((row) => Number(row[at]) === step);
    const key = `${this.drawn} ${step} ${open}`;
    if (this.listed === key) return;
    this.listed = key;
    this.numbers.replaceChildren(made("summary", { textContent: label }), ...(open ? [table(columns, shown.slice(0, MAX_ROWS))] : []));
  }
}

function lastUpTo(steps, step) {
  const before = steps.filter((one) => one <= step);
  return before.length ? Math.max(...before) : Math.min(...steps);
}

// A figure in the colours of the page; a copy, because Plotly writes into what it draws.
function themed({ data, layout }) {
  const style = getComputedStyle(document.body);
  const ink = style.color;
  const coloured = (part) => {
    if (part === INK) return ink;
    if (Array.isArray(part)) return part.some((one) => typeof one === "object") ? part.map(coloured) : [...part];
    if (part === null || typeof part !== "object" || ArrayBuffer.isView(part)) return part;
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, coloured(each)]));
  };
  const line = find("#grid-colour") ?? document.body.appendChild(made("i", { id: "grid-colour", hidden: true }));
  const axis = { gridcolor: getComputedStyle(line).color, linecolor: getComputedStyle(line).color, zeroline: false };
  const around = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, family: style.fontFamily } };
  const template = { layout: { ...around, xaxis: axis, yaxis: axis, hoverlabel: { bgcolor: getComputedStyle(line).backgroundColor } } };
  return { data: coloured(data), layout: { ...coloured(layout), template } };
}

// === Theme ===

function theme(name) {
  document.documentElement.dataset.theme = name;
  find("#theme").textContent = { "": "◐ auto", light: "☀ light", dark: "☾ dark" }[name];
  try { name ? localStorage.setItem("embryo-theme", name) : localStorage.removeItem("embryo-theme"); } catch {}
}

function storedTheme() {
  try { return localStorage.getItem("embryo-theme") ?? ""; } catch { return ""; }
}

// === Start ===

async function start() {
  const site = (page.site = await load("site"));
  find("a.title").textContent = site.title;
  find("h1").textContent = site.pages.find(({ name }) => name === NAME).title;
  find("nav").replaceChildren(...site.pages.map(({ name, title }) => {
    const link = made("a", { href: name === "overview" ? "index.html" : `${name}.html`, textContent: title });
    if (name === NAME) link.ariaCurrent = "page";
    return link;
  }));
  document.documentElement.classList.toggle("embed", chosen().has("embed"));
  find("#run").onchange = ({ target }) => { choose({ run: target.value, beside: "" }); render(); };
  find("#beside").onchange = ({ target }) => { choose({ beside: target.value || (NAME === "compare" ? "none" : "") }); render(); };
  find("#theme").onclick = () => {
    const order = ["", "light", "dark"];
    theme(order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3]);
    render();
  };
  theme(storedTheme());
  matchMedia("(prefers-color-scheme: dark)").onchange = () => { page.parts.forEach((part) => (part.drawn = null)); render(); };
  window.addEventListener("embryo:step", () => page.parts.forEach((part) => part.list?.()));
  window.addEventListener("hashchange", render);
  await render();
  plotly();
}

document.addEventListener("DOMContentLoaded", start);
