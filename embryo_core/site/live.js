// The part of the Query page in which a visitor asks a run.
"use strict";

const LISTED = 10; // best answers of a step
const FOLLOWED = 5; // of the best answers at the last step, as in embryo_core/query/answers.py
const LENS = 3; // answers of a layer
const SLICE = 40; // milliseconds of computing between two breaths of the page

const spelledRank = (rank, exact) => `${exact ? "" : "≥ "}${rank}`;
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
    this.more = made("details", { hidden: true, ontoggle: () => this.continueText() }, made("summary", { textContent: "Continuation" }), made("p"));
    this.csv = made("button", { type: "button", textContent: "CSV", title: "Save the answers", hidden: true, onclick: () => this.save() });
    this.element = made("section", { id: "live" }, made("h2", { textContent: "Ask this run" }), this.form, this.status, this.answers, this.frame, this.more, this.lens, this.csv);
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
    this.frame.hidden = this.lens.hidden = this.more.hidden = this.csv.hidden = true;
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
      if (!this.asked) {
        this.frame.hidden = false;
        this.plotted([], []).catch(() => {}); // Plotly's first figure takes long, and so does the network
      }
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
      const followed = this.follow(found);
      for (const one of found.filter(({ beam }) => beam))
        for (const words of followed)
          if (!one.known.has(String(words))) one.known.set(String(words), await question.chance(model, one.step, question, words));
      if (!stays()) return;
      this.asked = { question, found, followed, word: track.value.trim() };
      this.drawn = null;
      this.show();
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      this.status.textContent = `Answered by ${found.length} checkpoints in ${seconds} s.`;
    } catch (reason) {
      if (!stays()) return;
      this.status.textContent = reason.message;
      this.frame.hidden = !this.asked;
    }
  }

  // The answers that have a line: those that lead at some step, and the best at the last one.
  follow(found) {
    const words = [...found.at(-1).top(FOLLOWED), ...found.flatMap((one) => one.top(1))];
    return [...new Map(words.map((one) => [String(one), one])).values()];
  }

  // An answer as a reader sees it (embryo_core/query/answers.py).
  spelled(words) {
    return words.map((id) => this.model.about.pieces[id]).join(" | ");
  }

  named(step) {
    return namedStep(step, page.site.runs[this.now.run].bar);
  }

  at() {
    const { found } = this.asked;
    const step = lastUpTo(found.map((one) => one.step), window.embryoStep ?? this.now.step);
    return found.find((one) => one.step === step);
  }

  list() {
    if (!this.asked) return;
    const reply = this.at();
    const { step } = reply;
    if (this.listed === step && this.drawn) return;
    this.listed = step;
    const { question, word } = this.asked;
    const rows = reply.top(LISTED).map((words) => [spelledRank(...reply.rank(words)), this.spelled(words), share(reply.probability(words))]);
    if (word) {
      const rank = question.pieces.length === 1 && !reply.beam ? spelledRank(...reply.rank(question.pieces)) : "";
      rows.push([rank, `${word} (tracked)`, share(Math.exp(reply.tracked))]);
    }
    const title = made("h3", { textContent: `At ${this.named(step)}` });
    this.answers.replaceChildren(title, table(["rank", "answer", "probability"], rows));
    this.readLayers();
    this.continueText();
  }

  async show() {
    this.list();
    this.frame.hidden = this.lens.hidden = this.csv.hidden = false;
    this.more.hidden = this.model.about.fills;
    const key = this.look;
    if (this.drawn === key) return;
    this.drawn = key;
    await new Promise((resolve) => setTimeout(resolve)); // the table is seen first
    if (this.drawn !== key || !this.asked) return;
    const { found, followed, word } = this.asked;
    const lines = followed.map((words) => [this.spelled(words), found.map((one) => one.probability(words))]);
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
      x, y, name: plain(name), mode: "lines+markers", meta: "smoothable", marker: { size: 5 },
      line: tracked ? { color: about.tracked, dash: "dot" } : { color: about.colours[i] ?? "#888888" },
      showlegend: tracked || i < about.colours.length,
      customdata: asked.map((step) => this.named(step)),
      hovertemplate: "%{fullData.name}, %{customdata}<br>probability %{y:.3%}<extra></extra>",
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
    const note = made("p", { className: "caption", textContent: `The head applied to the state of each layer at ${this.named(step)}; it was trained on the last alone.` });
    find("div", this.lens).replaceChildren(table(["layer", "best", "second", "third"], rows.reverse()), note);
  }

  // What the model of the chosen step writes after the text.
  async continueText() {
    if (!this.more.open || !this.asked || this.model.about.fills) return;
    const { asked, model } = this;
    const { step } = this.at();
    const [words, total] = await asked.question.continued(model, step);
    if (this.asked !== asked || this.at().step !== step) return;
    const decoded = model.tokenizer.decode(words, { clean_up_tokenization_spaces: false }).replace(/^ +| +$/g, "");
    const inside = model.about.pieces[words[0]].startsWith("##") && !decoded.startsWith("##"); // continues the last word
    const text = inside ? `##${decoded}` : decoded;
    find("p", this.more).textContent = `${asked.question.text} … ${text} (${share(Math.exp(total))} at ${this.named(step)}, each piece the most probable)`;
  }

  save() {
    const { found, question, followed, word } = this.asked;
    const rows = found.flatMap((one) => {
      const listed = new Map([...one.top(LISTED), ...followed].map((words) => [String(words), words]));
      return [
        ...[...listed.values()].map((words) => [one.step, this.spelled(words), ...one.rank(words), one.probability(words)]),
        ...(word ? [[one.step, `${word} (tracked)`, "", "", Math.exp(one.tracked)]] : []),
      ].map((row) => [...row, question.text]);
    });
    save(`${this.now.run}-live.csv`, csvOf([["step", "token", "rank", "exact", "probability", "text"], ...rows]), "text/csv");
  }
}

// Text for Plotly, which reads HTML.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
