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
  const { parts, value } = await new Response(new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
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
const bytesOf = (base64) => Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));

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
  const { names } = site;
  const wanted = now.get("run");
  const run = names.includes(wanted) ? wanted : names[0];
  const others = names.filter((name) => name !== run);
  const all = others.join(",");
  const asked = now.get("beside") ?? (NAME === "compare" ? "all" : "");
  const beside = asked === "all" || asked === all ? others : others.filter((name) => name === asked);
  const folder = site.views[[run, ...beside].join("\n")] ?? site.views[run];
  const { steps } = site.runs[run].bar;
  const step = Number(now.get("step") ?? steps.at(-1));
  const unit = Object.hasOwn(site.runs[run].units, now.get("unit")) && !beside.length ? now.get("unit") : "step";
  const window = Number(now.get("smoothing"));
  const sentences = [];
  if (wanted && wanted !== run) sentences.push(`Run '${wanted}' is not here; showing '${run}'.`);
  if (!steps.includes(step)) sentences.push(`Run '${run}' has no checkpoint at step ${step}; showing another one.`);
  return {
    run, others, folder, beside: beside.length > 1 ? "all" : (beside[0] ?? ""), scale: now.get("scale") === "linear" ? "linear" : "log",
    step: steps.findLast((one) => one <= step) ?? steps[0], message: sentences.join(" "), embed: now.get("embed"),
    beside_runs: beside, unit, smoothing: site.windows.includes(window) ? window : 1,
  };
}

// === A page ===

const page = { site: null, folder: "", stops: [], parts: [], live: null };

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
  options(find("#run"), site.names.map((name) => [name, name]), now.run);
  const several = now.others.length > 1 ? [["all", "all other runs"]] : [];
  const pairs = now.others.filter((name) => site.views[`${now.run}\n${name}`]).map((name) => [name, name]);
  options(find("#beside"), [["", "no other run"], ...pairs, ...several], now.beside);
  find(".beside").hidden = !now.others.length;
  find(".message").textContent = now.message;
  find(".message").hidden = !now.message;
  options(find("#unit"), [["step", "steps"], ...Object.entries(site.runs[now.run].units).map(([unit, { name }]) => [unit, name])], now.unit);
  find(".unit").hidden = now.beside || find("#unit").length < 2;
  options(find("#smoothing"), site.windows.map((window) => [String(window), window === 1 ? "off" : `${window} points`]), String(now.smoothing));
  links();
  if (page.folder !== now.folder) await open(now);
  const stops = page.stops.length ? { stops: page.stops } : {};
  mount(find(".time"), "time_bar", { ...barOf(now), ...stops, step: now.step, scale: now.scale }, {
    step: ({ step, passing }) => { choose({ step }, passing); render(); },
    scale: (scale) => { choose({ scale }); render(); },
  });
  const look = `${now.scale} ${now.unit} ${now.smoothing} ${document.documentElement.dataset.theme}`;
  for (const part of page.parts) part.update(now, look);
}

async function open(now) {
  page.folder = now.folder;
  const { headline, stops, parts } = await load(`${now.folder}/${NAME}`);
  const of = async (run) => (await load(`${page.site.views[run]}/${NAME}`)).parts;
  const owns = parts.some((part) => part.alone) ? await Promise.all([now.run, ...now.beside_runs].map(of)) : [];
  const wanted = parts.flatMap((part) => (part.alone ? ownParts(part, owns, now) : [part]));
  if (page.folder !== now.folder) return;
  page.stops = stops;
  find(".headline").textContent = headline;
  const shown = wanted.filter((part) => part && (!now.embed || part.name === now.embed));
  page.parts = shown.map((part) => (part.columns ? tablePart(part) : new FigurePart(part)));
  if (page.live && [null, "live"].includes(now.embed)) page.parts.unshift(page.live);
  if (now.embed && !page.parts.length) page.parts = [lackingPart(now, wanted)];
  find(".parts").replaceChildren(...page.parts.map((part) => part.element));
}

// What stands for a part of one run in a view of several: that of the first run, or of each, side by side.
function ownParts({ name, each }, owns, now) {
  const found = owns.map((parts) => parts.find((part) => part.name === name));
  if (!each) return found.slice(0, 1);
  const usual = found[0]?.choices[0].label;
  return found.map((part, i) => part && { ...part, usual, of: [now.run, ...now.beside_runs][i], key: i ? `${name}-${i}` : name });
}

// A sentence in place of a figure that this page does not have.
function lackingPart({ embed }, parts) {
  const names = [...new Set(parts.filter(Boolean).map(({ name }) => name))];
  const known = names.length ? `it has: ${names.join(", ")}` : "it has none of this run";
  return { element: made("p", { role: "status", textContent: `This page has no figure '${embed}'; ${known}.` }), update() {} };
}

// What of the address goes along to other pages.
function kept() {
  const now = chosen();
  for (const name of [...now.keys()]) if (!["run", "beside", "step", "scale", "unit", "smoothing"].includes(name)) now.delete(name);
  return now.toString();
}

function links() {
  for (const link of document.querySelectorAll("nav a, a.title")) link.hash = kept();
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
  find(".note").innerHTML = NAME === "overview" ? site.note : "";
  find(".note").hidden = !find(".note").innerHTML;
  find("h1").textContent = site.pages.find(({ name }) => name === NAME).title;
  find("nav").replaceChildren(...site.pages.map(({ name, title }) => {
    const link = made("a", { href: name === "overview" ? "index.html" : `${name}.html`, textContent: title });
    if (name === NAME) link.ariaCurrent = "page";
    return link;
  }));
  document.documentElement.classList.toggle("embed", chosen().has("embed"));
  find("#run").onchange = ({ target }) => { choose({ run: target.value, beside: "" }); render(); };
  find("#beside").onchange = ({ target }) => { choose({ beside: target.value || (NAME === "compare" ? "none" : "") }); render(); };
  for (const name of ["unit", "smoothing"]) find(`#${name}`).onchange = ({ target }) => { choose({ [name]: target.value }); render(); };
  find("#theme").onclick = () => {
    const order = ["", "light", "dark"];
    theme(order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3]);
    render();
  };
  theme(storedTheme());
  if (NAME === "query" && site.live) {
    await script("assets/live.js");
    page.live = new LivePart();
  }
  matchMedia("(prefers-color-scheme: dark)").onchange = () => { page.parts.forEach((part) => (part.drawn = null)); render(); };
  window.addEventListener("embryo:step", () => page.parts.forEach((part) => part.list?.()));
  window.addEventListener("hashchange", render);
  await render();
  plotly();
}

document.addEventListener("DOMContentLoaded", start);
