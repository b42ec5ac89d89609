// The parts of a page: figures with their choices, words, files and numbers; tables; and what other components draw.
"use strict";

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

function caption({ summary, rest }) {
  const words = made("div", { className: "caption" }, made("p", { textContent: summary }));
  if (rest) words.append(made("details", {}, made("summary", { textContent: "More" }), made("p", { textContent: rest })));
  return words;
}

function tablePart(part) {
  const { title, columns, rows } = part;
  if (!rows) return searchedTable(part);
  const element = made("section", {}, made("h2", { textContent: title }), table(columns, rows), caption(part));
  return { element, update() {} };
}

// A long table: loaded when it is opened, with a search in all of its cells.
function searchedTable({ title, columns, file, count, ...words }) {
  const search = made("input", { type: "search", ariaLabel: `Search: ${title}`, placeholder: "Search" });
  const found = made("div");
  const said = made("p", { className: "caption", role: "status" });
  const list = async () => {
    const needle = search.value.trim().toLowerCase();
    const rows = await load(file);
    const hits = needle ? rows.filter((row) => row.some((cell) => String(cell).toLowerCase().includes(needle))) : rows;
    const number = (many) => many.toLocaleString("en-US");
    said.textContent = `${number(Math.min(hits.length, MAX_ROWS))} of ${number(hits.length)} rows${needle ? " found" : ""}`;
    found.replaceChildren(table(columns, hits.slice(0, MAX_ROWS)));
  };
  const numbers = made("button", { type: "button", textContent: "CSV", title: "Save the whole table" });
  numbers.onclick = async () => save(`${title}.csv`, csvOf([columns, ...(await load(file))]), "text/csv");
  search.oninput = list;
  const summary = made("summary", { textContent: `${title} (${count.toLocaleString("en-US")} rows)` });
  const opened = made("details", { ontoggle: () => opened.open && list() }, summary, made("div", { className: "files" }, search, numbers), said, found);
  return { element: made("section", {}, opened, caption(words)), update() {} };
}

const csvOf = (rows) => rows.map((row) => row.map((cell) => (/[",\n\r]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell)).join(",")).join("\n") + "\n";

const NARROW = 110; // pixels of an axis; where long labels leave less, on a phone, the figure becomes
const READABLE = 560; // pixels wide, and is scrolled
const PAGE_OF_TILE = { sentence: "query", head: "attention", curves: "tokens" }; // as in browser/growth.py

// Resolves for one caller after the other, when the browser has shown what was drawn for the one before.
const afterPaint = (() => {
  let last = Promise.resolve();
  return () => (last = last.then(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))));
})();

// A figure with its choices, its caption, its files and its numbers at the chosen step.
class FigurePart {
  constructor(part) {
    Object.assign(this, { key: part.name }, part);
    this.title = made("h2");
    this.headlined = made("p", { className: "headline" });
    this.picker = made("select", { onchange: () => { choose({ [this.name]: this.picker.value }); render(); } });
    this.picker.ariaLabel = this.what;
    this.plot = made("div", { className: "plot" });
    this.frame = made("div", { className: `frame st-key-figure_${this.key}` }, this.plot); // the class that components look for
    this.words = made("div");
    this.files = made("div", { className: "files" });
    this.numbers = made("details", { className: "numbers", ontoggle: () => this.list() });
    const head = made("div", { className: "part-head" }, this.title, ...(this.choices.length > 1 ? [this.picker] : []));
    this.element = made("section", { id: this.key, className: this.each ? "map" : "" }, head, this.headlined, this.frame, this.words, this.files, this.numbers);
    options(this.picker, this.choices.map(({ label }) => [label, label]), this.choices[0].label);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.see(), { rootMargin: "300px" })
      .observe(this.element);
  }

  update(now, look) {
    const wanted = chosen().get(this.name) ?? this.usual;
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
    this.title.textContent = this.plot.ariaLabel = this.of ? `${choice.title} · ${this.of}` : choice.title;
    this.plot.role = "figure";
    this.headlined.textContent = choice.headline && choice.headline !== find(".headline").textContent ? choice.headline : "";
    const lacking = (choice.missing ?? []).map((run) => `Run '${run}' is not in this figure: it was not measured for it, or counts steps in another unit.`);
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
    if (figure.plots) await plotly().then(afterPaint);
    if (this.drawn !== choice.file + look) return;
    figure.component ? this.show(figure) : await this.plotted(figure.plots[now.scale]);
    this.figure = figure;
    this.offer(figure, now.scale);
    this.list();
  }

  async plotted(plots) {
    const { smoothing } = this.now;
    const downsampled = plots[smoothing]; // its curves, with smoothed lines
    const { data, layout } = themed(downsampled ? recounted(downsampled, this.now) : smoothed(recounted(plots[1], this.now), smoothing));
    if (panels.fit(layout)) delete layout.width;
    const draw = (width) => {
      this.frame.classList.toggle(`st-key-scroll_${this.key}`, Boolean(width));
      this.frame.tabIndex = width ? 0 : -1; // what scrolls can be reached with the keyboard
      return Plotly.react(this.plot, data, { ...layout, width }, { responsive: !width, displaylogo: false });
    };
    await draw(layout.width);
    const axes = Object.entries(this.plot._fullLayout).filter(([name]) => /^xaxis\d*$/.test(name));
    if (!layout.width && !layout.meta?.onPhone && Math.min(...axes.map(([, axis]) => axis._length)) < NARROW) await draw(READABLE);
    if (!this.listens) this.plot.on("plotly_click", (event) => this.clicked(event));
    this.listens = true;
  }

  show({ component, payload }) {
    mount(this.plot, component, bytesOf(payload), {
      head: ({ layer, head }) => { choose({ head: `Layer ${layer}, head ${head}` }); render(); },
      open: (tile) => { location.href = `${PAGE_OF_TILE[tile]}.html#${kept()}`; },
    });
  }

  // A click on a point chooses its step.
  clicked({ points: [{ x }] }) {
    const bar = barOf(this.now);
    const step = bar.steps[bar.values[this.plot._fullLayout.xaxis.type]?.indexOf(x)];
    if (step === undefined) return;
    choose({ step });
    render();
  }

  offer(figure, scale) {
    const { name, csv, citation } = figure;
    const inUnit = ([columns, size]) => {
      const { layout } = recounted({ data: [], layout: size.layout }, this.now);
      return [columns, { ...size, layout: { ...layout, template: page.site.template } }];
    };
    const files = figure.files && Object.fromEntries(Object.entries(figure.files[scale]).map(inUnit));
    const sizes = files ? { sizes: files, chart: `figure_${this.key}` } : { sizes: figure.maps };
    const pictures = made("div");
    const numbers = made("button", { type: "button", textContent: "CSV", title: "Save the numbers of this figure" });
    numbers.onclick = () => save(`${name}.csv`, csv || csvOf(map.weights()), "text/csv");
    const map = this.plot.shadowRoot && find(".history", this.plot.shadowRoot); // of a head, whose component has its weights
    const link = made("button", { type: "button", textContent: "Embed", title: "Copy this figure for another page" });
    link.onclick = () => this.copyFrame(link);
    this.files.replaceChildren(...(sizes.sizes ? [pictures] : []), ...(csv || map ? [numbers] : []), link);
    this.numbers.hidden = !csv;
    if (sizes.sizes) mount(pictures, "figure_files", { name, copied: citation, ...sizes });
  }

  copyFrame(button) {
    const address = new URL(location);
    const state = chosen();
    for (const [name, value] of Object.entries({ embed: this.name, [this.name]: this.choice.label, run: this.now.run }))
      if (value) state.set(name, value);
    address.hash = state;
    copyBy(button, frameOf(address.href, this.choice.title), "Embed");
  }

  // The rows of the last evaluated step up to the chosen one, of a table with steps.
  list() {
    if (!this.figure?.csv) return;
    const [columns, ...rows] = (this.figure.rows ??= rowsOf(this.figure.csv));
    const at = columns.indexOf("step");
    const { bar } = page.site.runs[this.now.run];
    const steps = rows.map((row) => Number(row[at]));
    const evaluated = steps.filter((one) => bar.steps.includes(one)); // others are estimates, such as a word's age
    const step = at < 0 ? null : lastUpTo(evaluated.length ? evaluated : steps, window.embryoStep ?? this.now.step);
    const label = step === null ? "Numbers" : `Numbers at ${namedStep(step, bar)}`;
    const open = this.numbers.open;
    const shown = step === null ? rows : rows.filter((row) => Number(row[at]) === step);
    const key = `${this.drawn} ${step} ${open}`;
    if (this.listed === key) return;
    this.listed = key;
    this.numbers.replaceChildren(made("summary", { textContent: label }), ...(open ? [table(columns, shown.slice(0, MAX_ROWS))] : []));
  }
}

// A step in words: "step 1,000", or "1,000 tokens" if the steps of the run count tokens.
function namedStep(step, { counted }) {
  const number = step.toLocaleString("en-US");
  if (!counted) return `step ${number}`;
  return `${number} ${step === 1 ? counted.replace(/s$/, "") : counted}`;
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
