// The time bar in the browser: see time_bar.py. Streamlit calls the default export at every run of the page.
const LENGTH = 12_000; // milliseconds from the first step to the last, however many there are
const FRAME = 40; // milliseconds between two looks at what the clock has come to
const PACE = 600; // milliseconds between two steps that are sent to the server while playing
const QUIET = 2_000; // milliseconds before the end in which none is sent: a page that draws it would lengthen the film
const PATIENCE = 2_000; // milliseconds without any after a press: a page drawn meanwhile would undo what is being chosen
const playing = { on: false, since: 0, from: 0 }; // outlives a change of page: the module is loaded once
const chosen = { step: null }; // by the user, until the server draws it; outlives a change of page, which may lose it
const PAGE_LINK = "a[href]:not([target=_blank])";
const bars = new WeakMap();

const UNITS = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]; // as in figures/style.py
const grouped = (number) => number.toLocaleString("en-US");
const short = (number) => {
  const rounded = +number.toPrecision(3); // before a unit is chosen: 999,999 is 1 M
  const [size, unit] = UNITS.find(([size]) => rounded >= size) ?? [];
  return number >= 1e4 ? `${+(rounded / size).toPrecision(3)} ${unit}` : grouped(number);
};

// Whether the page has been drawn completely: while playing, a step is sent to the server only then, or a slow page would
// never finish.
const idle = () => document.querySelector(".stApp")?.dataset.testScriptState !== "running";

class TimeBar {
  constructor(root, sendStep, sendScale) {
    Object.assign(this, { root, sendStep, sendScale, settle: null, dragging: false });
    this.track = root.querySelector(".track");
    this.marks = root.querySelector(".marks");
    this.handle = root.querySelector(".handle");
    this.play = root.querySelector(".play");
    this.listen();
  }

  listen() {
    this.track.onpointerdown = (event) => {
      this.stop();
      this.dragging = true;
      this.track.setPointerCapture(event.pointerId);
      this.move(this.stepAt(event));
    };
    this.track.onpointermove = (event) => this.dragging && this.move(this.stepAt(event));
    this.track.onpointerup = this.track.onpointercancel = () => {
      this.dragging = false;
      this.send();
    };
    this.track.onkeydown = (event) => this.key(event);
    this.play.onclick = () => (playing.on ? this.stop() : this.start());
    for (const button of this.root.querySelectorAll(".scale button"))
      button.onclick = () => {
        this.scale = button.dataset.scale;
        this.draw();
        this.sendScale(this.scale);
      };
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.track);
    this.pressed = (event) => isFree(event) && this.key(event);
    window.addEventListener("keydown", this.pressed);
    this.touch = () => (this.touched = performance.now());
    for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, this.touch, true);
    // A step sent after a click on a link to another page would lead back to this one: the next page's bar sends it.
    this.left = (event) => event.composedPath().some((one) => one.matches?.(PAGE_LINK)) && clearTimeout(this.settle);
    window.addEventListener("click", this.left, true);
    this.asked = () => this.play.onclick();
    window.addEventListener("embryo:play", this.asked);
    this.states = new MutationObserver(() => this.tellWaiting());
    const app = document.querySelector(".stApp"); // a static site has none
    if (app) this.states.observe(app, { attributeFilter: ["data-test-script-state"] });
  }

  // The server's state at every run of the page: its step is taken unless the user is moving to another one.
  update({ step, hollow, ...given }) {
    const other = this.run !== undefined && this.run !== given.run;
    Object.assign(this, given, { hollow: new Set(hollow), served: step });
    const { steps } = given;
    if (playing.on && (other || !this.timer)) this.start(other ? 0 : undefined);
    if (step === chosen.step || !steps.includes(chosen.step)) chosen.step = null;
    const lost = chosen.step !== null && this.step === undefined && !playing.on;
    const still = chosen.step === null && !this.dragging && !this.settle && !playing.on;
    if (still || !steps.includes(this.step)) this.show(lost ? chosen.step : step);
    if (lost) this.send();
    this.draw();
    stepMarks.watch(this);
  }

  move(step) {
    if (step === this.step) return;
    this.show(step);
    this.draw();
    stepMarks.move();
  }

  // Everything that draws steps in the browser gets an event for each; later components find the step in the window.
  show(step) {
    this.step = window.embryoStep = step;
    window.dispatchEvent(new CustomEvent("embryo:step", { detail: { step } }));
    this.tellWaiting();
  }

  // Tables and numbers of another step than the bar's wait for the server, and are shown faded (page.css).
  tellWaiting() {
    const waits = this.step !== this.served || !idle();
    document.documentElement.toggleAttribute("data-embryo-waiting", waits && this.step !== this.drawn);
    if (!waits) this.drawn = this.step;
  }

  // `passing` while playing: the page follows, but the step does not become a place in the browser's history.
  send(passing = false) {
    clearTimeout(this.settle);
    this.settle = null;
    chosen.step = this.step;
    this.sendStep({ step: this.step, passing });
  }

  key(event) {
    const index = this.steps.indexOf(this.step);
    const last = this.steps.length - 1;
    const onBar = event.currentTarget === this.track;
    const own = onBar ? { ArrowDown: index - 1, ArrowUp: index + 1, Home: 0, End: last } : {};
    const to = own[event.key] ?? leadsTo(event.key, index, this.steps.length);
    if (event.key === " ") playing.on ? this.stop() : this.start();
    else if (to === undefined) return;
    else {
      this.stop();
      this.move(this.steps[Math.min(last, Math.max(0, to))]);
      chosen.step = this.step;
      clearTimeout(this.settle);
      this.settle = setTimeout(() => this.send(), 250); // a key held down sends where it ends
    }
    event.preventDefault();
  }

  // Plays the steps that the page has data for, by the clock: a page that is slow skips steps and never goes back.
  // `from` is a place among them, from 0 to 1; without it, playing goes on where it was.
  start(from) {
    const stops = this.stops;
    if (from === undefined && !playing.on) {
      const index = stops.findLastIndex((step) => step <= this.step);
      from = index < 0 || index === stops.length - 1 ? 0 : index / (stops.length - 1);
    }
    if (from !== undefined) Object.assign(playing, { from, since: performance.now() });
    this.tellPlaying(true);
    clearTimeout(this.settle);
    this.settle = null;
    clearInterval(this.timer);
    const look = () => {
      const done = Math.min(1, playing.from + (performance.now() - playing.since) / LENGTH);
      this.move(stops[Math.floor(done * (stops.length - 1))]);
      if (done === 1) this.stop();
      else if (done < 1 - QUIET / LENGTH && this.mayPass()) this.send(true);
    };
    this.timer = setInterval(look, FRAME);
    look();
    this.draw();
  }

  stop() {
    if (!playing.on) return;
    this.tellPlaying(false);
    clearInterval(this.timer);
    this.timer = null;
    this.send();
    this.draw();
  }

  mayPass() {
    const now = performance.now();
    if (!idle() || now - (this.touched ?? 0) < PATIENCE || now - (this.passed ?? 0) < PACE) return false;
    this.passed = now;
    return true;
  }

  tellPlaying(on) {
    playing.on = window.embryoPlaying = on;
    window.dispatchEvent(new CustomEvent("embryo:playing", { detail: on }));
  }

  // Pixels from the left end of the track to each step; positions come from the server, so that bar and figures agree.
  positions() {
    return this.places[this.scale].map((place) => this.pixels(place));
  }

  pixels(place) {
    return 8 + (place / this.whole) * (this.track.clientWidth - 16);
  }

  stepAt(event) {
    const x = event.clientX - this.track.getBoundingClientRect().left;
    const away = this.positions().map((position) => Math.abs(position - x));
    return this.steps[away.indexOf(Math.min(...away))];
  }

  draw() {
    if (!this.steps) return;
    const positions = this.positions();
    const x = positions[this.steps.indexOf(this.step)];
    const mark = (step, index) =>
      this.hollow.has(step)
        ? `<rect class="mark hollow" x="${positions[index] - 2}" y="9" width="4" height="12" rx="2"/>`
        : `<line class="mark" x1="${positions[index]}" x2="${positions[index]}" y1="9" y2="21"/>`;
    const hollow = this.hollow.has(this.step);
    this.marks.innerHTML =
      `<line class="rail" x1="8" x2="${this.track.clientWidth - 8}" y1="15" y2="15"/>` +
      `<line class="past" x1="8" x2="${x}" y1="15" y2="15"/>` + this.steps.map(mark).join("") +
      this.flags() + this.labels(positions) + this.stretches();
    this.root.querySelector(".bar").classList.toggle("phased", this.phases.length > 0);
    this.handle.style.left = `${x}px`;
    this.handle.classList.toggle("hollow", hollow);
    this.play.classList.toggle("playing", playing.on);
    this.play.setAttribute("aria-label", playing.on ? "Pause" : "Play");
    const tokens = this.tokens[this.steps.indexOf(this.step)];
    this.root.querySelector(".step").textContent = this.named(grouped(this.step));
    this.root.querySelector(".tokens").textContent = tokens == null ? "" : `${short(tokens)} tokens`;
    this.track.setAttribute("aria-valuetext", `${this.named(this.step)}${this.phase()}${hollow ? ", weights removed" : ""}`);
    this.track.setAttribute("aria-valuemin", this.steps[0]);
    this.track.setAttribute("aria-valuemax", this.steps.at(-1));
    this.track.setAttribute("aria-valuenow", this.step);
    for (const button of this.root.querySelectorAll(".scale button"))
      button.setAttribute("aria-pressed", button.dataset.scale === this.scale);
  }

  // A step with its unit, as in a sentence.
  named(number) {
    if (!this.counted) return `step ${number}`;
    return `${number} ${String(number) === "1" ? this.counted.replace(/s$/, "") : this.counted}`;
  }

  // A flag above the bar where training changed; its text is escaped.
  flags() {
    const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    return this.changes.map(({ what, places }) => {
      const x = this.pixels(places[this.scale]);
      return `<path class="change" d="M${x} 15V1h7l-2 3 2 3h-7"><title>${escaped(what)}</title></path>`;
    }).join("");
  }

  // Phases under the step numbers; a name that does not fit is shown on hover and read by screen readers.
  stretches() {
    return this.phases.map(({ name, what, places }) => {
      const [from, to] = places[this.scale].map((place) => this.pixels(place));
      const text = to - from > name.length * 6.2 ? `<text x="${(from + to) / 2}" y="58">${name}</text>` : "";
      return `<g class="phase"><title>${what}</title><rect x="${from + 1}" y="43" width="${Math.max(1, to - from - 2)}" height="4" rx="2"/>${text}</g>`;
    }).join("");
  }

  // The phase at the chosen step, for screen readers; a step that begins a phase belongs to it.
  phase() {
    const now = this.phases.findLast(({ start, end }) => start <= this.step && this.step <= end);
    return now ? `, ${now.name}` : "";
  }

  // Step numbers under the marks, the ends first, as many as fit; unabbreviated if two would look the same.
  labels(positions) {
    const taken = [];
    const order = [this.steps.length - 1, ...this.steps.keys()];
    const alike = new Map();
    for (const name of this.steps.map(short)) alike.set(name, (alike.get(name) ?? 0) + 1);
    return order.map((index) => {
      const step = this.steps[index];
      const text = alike.get(short(step)) > 1 ? grouped(step) : short(step);
      const half = text.length * 3.4 + 5;
      const x = Math.min(Math.max(positions[index], half - 5), this.track.clientWidth - half + 5);
      if (taken.some(([low, high]) => x + half > low && x - half < high)) return "";
      taken.push([x - half, x + half]);
      return `<text x="${x}" y="38">${text}</text>`;
    }).join("");
  }

  remove() {
    clearInterval(this.timer);
    clearTimeout(this.settle);
    this.observer.disconnect();
    this.states.disconnect();
    window.removeEventListener("keydown", this.pressed);
    window.removeEventListener("click", this.left, true);
    window.removeEventListener("embryo:play", this.asked);
    for (const kind of ["pointerdown", "keydown"]) window.removeEventListener(kind, this.touch, true);
  }
}

export default function ({ parentElement, data, setTriggerValue }) {
  if (!bars.has(parentElement)) bars.set(parentElement, new TimeBar(parentElement));
  const bar = bars.get(parentElement);
  bar.sendStep = (step) => setTriggerValue("step", step);
  bar.sendScale = (scale) => setTriggerValue("scale", scale);
  bar.update(data);
  return () => {
    bar.remove();
    bars.delete(parentElement);
  };
}
