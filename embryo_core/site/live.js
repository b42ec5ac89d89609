// Live questions: a checkpoint's own model.safetensors as the inputs of the run's graph (embryo_core/engine/onnx_graph.py),
// one after the other in one session of onnxruntime-web. Nothing is fetched before somebody asks.
"use strict";

const LISTED = 10; // best answers of a step
const FOLLOWED = 5; // of the best answers at the last step, as in embryo_core/query/answers.py
const LENS = 3; // answers of a layer
const SLICE = 40; // milliseconds of computing between two breaths of the page

// === Models ===

// The packages, loaded once: onnxruntime-web and @huggingface/tokenizers.
const runtime = (() => {
  let loaded;
  const at = (name) => new URL(`assets/live/${name}`, document.baseURI).href;
  const load = async () => {
    const [ort, { Tokenizer }] = await Promise.all([import(at("ort.js")), import(at("tokenizers.js"))]);
    Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: { mjs: at("ort-wasm.js"), wasm: at("ort-wasm.wasm") } });
    return { ort, Tokenizer };
  };
  return () => (loaded ??= load());
})();

// A file of safetensors: its content, where its tensors begin, and its header.
async function read(answer) {
  const file = await answer.arrayBuffer();
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  return { file, start, header: JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, start - 8))) };
}

const aligned = (Kind, file, begin, size) =>
  begin % Kind.BYTES_PER_ELEMENT ? new Kind(file.slice(begin, begin + size * Kind.BYTES_PER_ELEMENT)) : new Kind(file, begin, size);

// Writes float16 numbers, given as their bits, to an array of float32.
const widened = (() => {
  let known;
  const all = () => {
    const table = new Float32Array(65536);
    for (let bits = 0; bits < 65536; bits++) {
      const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
      const size = exponent === 31 ? (fraction ? NaN : Infinity) : exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
      table[bits] = bits >> 15 ? -size : size;
    }
    return table;
  };
  return (bits, values) => {
    const table = (known ??= all());
    for (let i = 0; i < bits.length; i++) values[i] = table[bits[i]];
    return values;
  };
})();

const whole = (values) => BigInt64Array.from(values, BigInt);

async function get(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} is missing (${answer.status}).`);
  return answer;
}

// A run that can be asked: its description, its tokenizer, one session, and the weights of its checkpoints.
class LiveRun {
  constructor(folder) {
    this.folder = folder;
    this.weights = new Map();
    this.room = new Map();
  }

  async describe() {
    return (this.about ??= await (await get(`${this.folder}/about.json`)).json());
  }

  async open() {
    const about = await this.describe();
    this.opened ??= (async () => {
      const [{ ort, Tokenizer }, tokenizer, graph] = await Promise.all([
        runtime(),
        get(`${this.folder}/tokenizer.json`).then((answer) => answer.json()),
        get(`${this.folder}/graph.onnx`).then((answer) => answer.arrayBuffer()),
      ]);
      this.ort = ort;
      this.tokenizer = new Tokenizer({ ...tokenizer, truncation: null, padding: null }, {});
      const session = ort.InferenceSession.create(new Uint8Array(graph)); // fetches the runtime, before the weights
      for (const step of about.steps) this.fetched(step).catch(() => {});
      this.session = await session;
    })();
    await this.opened;
    return about;
  }

  // The file of a checkpoint, and where its tensors are.
  fetched(step) {
    if (!this.weights.has(step)) this.weights.set(step, get(`${this.folder}/step${step}.safetensors`).then(read));
    return this.weights.get(step);
  }

  // The tensors of a checkpoint that the graph reads, in float32: float16 ones are converted for each question, which
  // takes as long as copying, so that memory holds them once.
  async tensors(step) {
    const { file, start, header } = await this.fetched(step);
    const own = this.session.inputNames.filter((name) => name in header);
    return Object.fromEntries(own.map((name) => {
      const { dtype, shape, data_offsets: [from, to] } = header[name];
      const [begin, size] = [start + from, (to - from) / (dtype === "F16" ? 2 : 4)];
      const data = dtype === "F16" ? widened(aligned(Uint16Array, file, begin, size), this.scratch(name, size)) : aligned(Float32Array, file, begin, size);
      return [name, new this.ort.Tensor("float32", data, shape)];
    }));
  }

  // Memory of a tensor that all checkpoints use in turn.
  scratch(name, size) {
    if (!this.room.has(name)) this.room.set(name, new Float32Array(size));
    return this.room.get(name);
  }

  // Logits [places.length, V] of the head on states: each place is [layer, position].
  logits(step, ids, places) {
    const job = async () => {
      const { Tensor } = this.ort;
      const feeds = await this.tensors(step);
      feeds.ids = new Tensor("int64", whole(ids), [ids.length]);
      feeds.positions = new Tensor("int64", whole(ids.keys()), [ids.length]);
      feeds.at = new Tensor("int64", whole(places.map(([layer, position]) => layer * ids.length + position)), [places.length]);
      const { logits } = await this.session.run(feeds);
      const size = logits.dims[1];
      return places.map((_, i) => logits.data.slice(i * size, i * size + this.about.pieces.length));
    };
    return (this.last = (this.last ?? Promise.resolve()).catch(() => {}).then(job)); // one at a time
  }
}

// === Questions (embryo_core/query/question.py) ===

class Question {
  constructor({ about, tokenizer }, text, word) {
    this.about = about;
    const encode = (given) => tokenizer.encode(about.mask ? given.replaceAll("[MASK]", about.mask) : given, { add_special_tokens: false }).ids;
    this.text = text.trim().replace(/\[\s*mask\s*\]/gi, "[MASK]");
    const masks = this.text.split("[MASK]").length - 1;
    if (!this.text) throw new Error(`The text is empty; write for example: ${about.example}`);
    if (this.text.length > about.most_characters) throw new Error(`The text is too long; shorten it.`);
    if (about.fills && masks !== 1) throw new Error(`The text has ${masks || "no"} [MASK]; write one, as in: ${about.example} The dashboard answers several together.`);
    if (!about.fills && masks) throw new Error(`The text has a [MASK], but this model continues a text; end it before the word: ${about.example}`);
    this.ids = [...about.begin, ...encode(this.text), ...about.end];
    this.place = about.fills ? this.ids.indexOf(about.mask_id) : this.ids.length - 1; // of the state that is read
    if (this.place < 0) throw new Error("The text has no character that this run's tokenizer reads; write another.");
    this.check(this.ids.length);
    if (word.trim()) this.pieces = this.piecesOf(word.trim(), encode);
  }

  check(length) {
    const { positions } = this.about;
    if (length > positions) throw new Error(`The text is ${length} pieces long, but this model reads at most ${positions}. Shorten it.`);
  }

  piecesOf(word, encode) {
    const { about } = this;
    const inside = word.startsWith("##") && word.length > 2;
    const named = inside && !about.marks_start ? about.pieces.indexOf(word) : -1;
    const pieces = inside ? (named < 0 ? encode(word.slice(2)) : [named]) : encode(about.blank + word);
    if (!pieces.length || pieces.some((one) => about.special.includes(one))) throw new Error(`'${word}' is not a word to track; write one without special tokens.`);
    if (pieces.includes(about.unknown)) throw new Error(`'${word}' has characters that are not in the vocabulary of this run; track another word.`);
    if (pieces.length > about.most_pieces) throw new Error(`'${word}' has ${pieces.length} pieces; at most ${about.most_pieces} can be tracked.`);
    this.check(this.ids.length + pieces.length - 1);
    return pieces;
  }

  // What one checkpoint answers: logits at the place, and the tracked word's probability by the chain rule.
  async ask(model, step) {
    const { about, ids, place, pieces } = this;
    const top = about.layers;
    const [logits] = await model.logits(step, ids, [[top, place]]);
    const answer = { step, logits, total: logSumExp(logits) };
    if (!isFinite(answer.total)) throw new Error(`Step ${step} gives numbers that are not finite.`);
    if (!pieces) return answer;
    answer.tracked = 0;
    for (const [i, piece] of pieces.entries()) {
      const filled = about.fills
        ? [...ids.slice(0, place), ...pieces.slice(0, i), ...Array(pieces.length - i).fill(about.mask_id), ...ids.slice(place + 1)]
        : [...ids, ...pieces.slice(0, i)];
      const found = pieces.length > 1 && (i || about.fills) ? (await model.logits(step, filled, [[top, place + i]]))[0] : logits;
      answer.tracked += found[piece] - logSumExp(found);
    }
    return answer;
  }
}

function logSumExp(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - most);
  return most + Math.log(sum);
}

// The ids of the largest values, best first; of equal ones the first is better.
function best(values, count) {
  const found = [];
  for (let i = 0; i < values.length; i++) {
    if (found.length === count && !(values[i] > values[found.at(-1)])) continue;
    let at = found.length;
    while (at && values[i] > values[found[at - 1]]) at -= 1;
    found.splice(at, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}

function rankOf(values, id) {
  let rank = 1;
  for (let i = 0; i < values.length; i++) if (values[i] > values[id] || (values[i] === values[id] && i < id)) rank += 1;
  return rank;
}

// === The part of the page ===

const share = (probability) => `${(100 * probability).toPrecision(3)} %`;

class LivePart {
  constructor() {
    this.runs = new Map();
    const field = (name, label) => made("label", { textContent: label }, made("input", { name, type: "text", autocomplete: "off" }));
    this.form = made("form", { className: "ask" }, field("text", "Text"), field("track", "Word to track"), made("button", { textContent: "Ask" }));
    this.form.onsubmit = (event) => (event.preventDefault(), this.ask());
    this.status = made("p", { role: "status", className: "caption" });
    this.answers = made("div", { className: "answers" });
    this.plot = made("div", { className: "plot", role: "figure", ariaLabel: "Probability of each answer" });
    this.frame = made("div", { className: "frame st-key-figure_live", hidden: true }, this.plot);
    this.lens = made("details", { hidden: true, ontoggle: () => this.readLayers() }, made("summary", { textContent: "Layer by layer" }), made("div"));
    this.csv = made("button", { type: "button", textContent: "CSV", title: "Save the answers", hidden: true, onclick: () => this.save() });
    this.element = made("section", { id: "live" }, made("h2", { textContent: "Ask this run" }), this.form, this.status, this.answers, this.frame, this.lens, this.csv);
  }

  async update(now, look) {
    const before = this.now?.run;
    Object.assign(this, { now, look });
    if (before !== now.run) await this.choose(now.run);
    if (this.asked) this.show();
  }

  async choose(run) {
    const { folder, why } = page.site.live[run];
    for (const name of ["asked", "drawn", "model"]) this[name] = null;
    this.answers.replaceChildren();
    this.frame.hidden = this.lens.hidden = this.csv.hidden = true;
    this.form.hidden = !folder || location.protocol === "file:";
    this.status.textContent = why ?? "";
    if (!folder) return;
    if (location.protocol === "file:") {
      this.status.textContent = "Live questions need a server: give python -m http.server in this folder, and open http://localhost:8000/query.html.";
      return;
    }
    this.runs.clear(); // the weights of another run
    this.model = new LiveRun(folder);
    this.runs.set(run, this.model);
    const about = await this.model.describe();
    const { elements } = this.form;
    elements.text.value = chosen().get("text") ?? about.example;
    elements.track.value = chosen().get("track") ?? "";
    const files = `${about.steps.length} checkpoints are fetched with the first question (${about.megabytes} MB).`;
    this.status.textContent = [files, ...about.left_out].join(" ");
  }

  async ask() {
    const { model } = this;
    const { text, track } = this.form.elements;
    const begun = (this.begun = performance.now());
    const stays = () => this.begun === begun && this.model === model;
    choose({ text: text.value, track: track.value });
    this.status.textContent = "The model is fetched …";
    try {
      const opened = model.open();
      if (!this.asked) this.plotted([], []).catch(() => {}); // Plotly's first figure takes long, and the network too
      const { steps } = await opened;
      const question = new Question(model, text.value, track.value);
      const found = [];
      for (let pause = 0; found.length < steps.length; ) {
        found.push(await question.ask(model, steps[found.length]));
        if (!stays()) return;
        this.status.textContent = `${found.length} of ${steps.length} checkpoints`;
        if (performance.now() < pause) continue;
        await new Promise((resolve) => setTimeout(resolve)); // the page stays alive
        pause = performance.now() + SLICE;
      }
      this.asked = { question, found, word: track.value.trim() };
      this.drawn = null;
      this.show();
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      this.status.textContent = `Answered by ${found.length} checkpoints in ${seconds} s.`;
    } catch (reason) {
      if (stays()) this.status.textContent = reason.message;
    }
  }

  // The answers that have a line: those that lead at some step, and the best at the last one.
  followed() {
    const { found } = this.asked;
    return [...new Set([...best(found.at(-1).logits, FOLLOWED), ...found.map(({ logits }) => best(logits, 1)[0])])];
  }

  at() {
    const { found } = this.asked;
    const step = lastUpTo(found.map((one) => one.step), window.embryoStep ?? this.now.step);
    return found.find((one) => one.step === step);
  }

  list() {
    if (!this.asked) return;
    const { logits, total, step, tracked } = this.at();
    if (this.listed === step && this.drawn) return;
    this.listed = step;
    const { question, word } = this.asked;
    const { pieces } = this.model.about;
    const row = (id) => [String(rankOf(logits, id)), pieces[id], share(Math.exp(logits[id] - total))];
    const rows = best(logits, LISTED).map(row);
    if (word) {
      const rank = question.pieces.length === 1 ? String(rankOf(logits, question.pieces[0])) : "";
      rows.push([rank, `${word} (tracked)`, share(Math.exp(tracked))]);
    }
    const title = made("h3", { textContent: `At step ${step.toLocaleString("en-US")}` });
    this.answers.replaceChildren(title, table(["rank", "answer", "probability"], rows));
    this.readLayers();
  }

  async show() {
    this.list();
    this.frame.hidden = this.lens.hidden = this.csv.hidden = false;
    const key = this.look;
    if (this.drawn === key) return;
    this.drawn = key;
    const { pieces } = this.model.about;
    const { found, word } = this.asked;
    const lines = this.followed().map((id) => [pieces[id], found.map(({ logits, total }) => Math.exp(logits[id] - total))]);
    if (word) lines.push([`${word} (tracked)`, found.map(({ tracked }) => Math.exp(tracked)), true]);
    await this.plotted(found.map(({ step }) => step), lines);
  }

  // Draws lines over some steps: each a name, its probabilities, and whether it is the tracked word's.
  async plotted(asked, lines) {
    const { about } = this.model;
    await plotly();
    const { steps, values } = page.site.runs[this.now.run].bar; // recounted below
    const x = asked.map((step) => values[this.now.scale][steps.indexOf(step)]);
    const data = lines.map(([name, y, tracked], i) => ({
      x, y, name: plain(name), mode: "lines+markers", marker: { size: 5 },
      line: tracked ? { color: about.tracked, dash: "dot" } : { color: about.colours[i] ?? "#888888" },
      showlegend: tracked || i < about.colours.length,
      customdata: asked.map((step) => step.toLocaleString("en-US")),
      hovertemplate: "%{fullData.name}, step %{customdata}<br>probability %{y:.3%}<extra></extra>",
    }));
    const drawn = themed(smoothed(recounted({ data, layout: about.layouts[this.now.scale] }, this.now), this.now.smoothing));
    await Plotly.react(this.plot, drawn.data, drawn.layout, { responsive: true, displaylogo: false });
  }

  // The head on every layer's state at the place of the answer: the lens.
  async readLayers() {
    if (!this.lens.open || !this.asked) return;
    const { question } = this.asked;
    const { about } = this.model;
    const { step } = this.at();
    const layers = [...Array(about.layers + 1).keys()];
    const read = await this.model.logits(step, question.ids, layers.map((layer) => [layer, question.place]));
    if (this.at()?.step !== step) return;
    const rows = read.map((logits, layer) => {
      const total = logSumExp(logits);
      return [layer ? String(layer) : "embeddings", ...best(logits, LENS).map((id) => `${about.pieces[id]} ${share(Math.exp(logits[id] - total))}`)];
    });
    const note = made("p", { className: "caption", textContent: `The head applied to the state of each layer at step ${step.toLocaleString("en-US")}; it was trained on the last alone.` });
    find("div", this.lens).replaceChildren(table(["layer", "best", "second", "third"], rows.reverse()), note);
  }

  save() {
    const { found, question, word } = this.asked;
    const { pieces } = this.model.about;
    const rows = found.flatMap(({ step, logits, total, tracked }) => [
      ...[...new Set([...best(logits, LISTED), ...this.followed()])].map((id) => [step, pieces[id], rankOf(logits, id), Math.exp(logits[id] - total)]),
      ...(word ? [[step, `${word} (tracked)`, "", Math.exp(tracked)]] : []),
    ].map((row) => [...row, question.text]));
    save(`${this.now.run}-live.csv`, csvOf([["step", "token", "rank", "probability", "text"], ...rows]), "text/csv");
  }
}

// Text for Plotly, which reads HTML.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
