// One head's maps at every checkpoint, [steps, L, L] float32, drawn in the browser as the step changes.

const PLAY_MS = 250;
const SETTLED_MS = 2000; // while the user scrubs, answers of the server to earlier steps arrive late
const POSITIONS = { left: 46, top: 6, right: 6, bottom: 40 };
const TOKENS = { left: 100, top: 6, right: 6, bottom: 96 }; // a sentence's own pieces label the axes
const LONGEST_TOKEN = 12; // characters, with the ellipsis that stands for the rest

export default function ({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { steps, size, max, layer, head, scale, decades, colours, tokens } = header;
  const MARGIN = tokens ? TOKENS : POSITIONS;
  const weights = new Float32Array(body.buffer);
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".history");
  const { signal } = renew(parentElement);

  // What outlives a rerun: the step shown, and whether it plays. The server's step counts unless it is newly moved here.
  const state = (parentElement.embryo ??= { index: 0, moved: -Infinity, timer: 0 });
  if (performance.now() - state.moved > SETTLED_MS || state.index >= steps.length) {
    state.index = indexOfStep(steps, header.step);
  }

  const table = colourTable(colours);
  const image = new ImageData(size, size);
  const pixels = new Uint32Array(image.data.buffer);
  const buffer = new OffscreenCanvas(size, size);
  const cell = () => side() / size;
  const side = () => Math.max(160, Math.min(root.clientWidth - MARGIN.left - MARGIN.right, 440));
  let context = null;

  function paint() {
    const offset = state.index * size * size;
    for (let i = 0; i < pixels.length; i++) {
      pixels[i] = table[Math.min(255, Math.round(255 * place(weights[offset + i] / max, scale, decades)))];
    }
    buffer.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(buffer, MARGIN.left, MARGIN.top, side(), side());
    find(".step").value = `step ${formatStep(steps[state.index])}`;
    find(".scrub").value = state.index;
    root.dataset.step = steps[state.index];
    if (state.pointer) describe(state.pointer);
  }
  const repaint = oncePerFrame(paint);

  function layout() {
    if (!root.clientWidth) return;
    context = fit(find(".map"), side() + MARGIN.left + MARGIN.right, side() + MARGIN.top + MARGIN.bottom);
    context.fillStyle = themeColour(root, "--st-text-color", "#31333f");
    context.font = `12px ${themeColour(root, "--st-font", "sans-serif")}`;
    const every = tokens ? Math.ceil(11 / cell()) : tickEvery(size);
    for (let position = 0; position < size; position += every) {
      const at = (position + 0.5) * cell();
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(shortened(position, tokens), MARGIN.left - 6, MARGIN.top + at);
      if (tokens) {
        upright(MARGIN.left + at, MARGIN.top + side() + 5, shortened(position, tokens));
        continue;
      }
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(position, MARGIN.left + at, MARGIN.top + side() + 5);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    const [to, from] = axes(tokens);
    context.fillText(to, MARGIN.left + side() / 2, MARGIN.top + side() + MARGIN.bottom - 18);
    upright(4, MARGIN.top + side() / 2, from);
    paint();
    legend();
  }

  // Words that are read from below; they end, or have their middle, at (x, y).
  function upright(x, y, words) {
    context.save();
    context.translate(x, y);
    context.rotate(-Math.PI / 2);
    context.fillText(words, 0, 0);
    context.restore();
  }

  function legend() {
    const canvas = find(".legend");
    const [width, bar] = [210, 12];
    const pen = fit(canvas, width, 32);
    for (let x = 0; x < width; x++) {
      pen.fillStyle = `rgb(${colourAt(colours, x / (width - 1))})`;
      pen.fillRect(x, 0, 1.5, bar);
    }
    pen.fillStyle = themeColour(root, "--st-text-color", "#31333f");
    pen.font = `12px ${themeColour(root, "--st-font", "sans-serif")}`;
    pen.textBaseline = "top";
    for (const [label, x, align] of legendLabels(max, scale, decades)) {
      pen.textAlign = align;
      pen.fillText(label, x * width, bar + 4);
    }
    canvas.setAttribute("aria-label", `Colour: attention weight, ${scale}, up to ${max.toPrecision(3)}`);
  }

  function describe({ row, column }) {
    const weight = weights[state.index * size * size + row * size + column];
    const [from, to] = [row, column].map((i) => (tokens ? `${i} “${tokens[i]}”` : `position ${i}`));
    find(".hover").textContent = `from ${from} to ${to}: weight ${weight.toPrecision(4)}`;
  }

  function show(index, tellPage) {
    state.index = index;
    state.moved = performance.now();
    repaint();
    if (tellPage) window.dispatchEvent(new CustomEvent("embryo:step", { detail: { step: steps[index], from: "map" } }));
  }
  const settle = () => setTriggerValue("step", steps[state.index]);

  function play(on) {
    clearInterval(state.timer);
    state.timer = on ? setInterval(() => state.advance(), PLAY_MS) : 0;
    find(".play").textContent = on ? "❚❚" : "▶";
  }
  state.advance = () => {
    show(state.index + 1 < steps.length ? state.index + 1 : state.index, true);
    if (state.index === steps.length - 1) { play(false); settle(); }
  };

  const name = () => `${header.run}-attention-layer${layer}-head${head}-step${steps[state.index]}`;
  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  find(".scrub").max = steps.length - 1;
  on(find(".scrub"), "input", (event) => { play(false); show(Number(event.target.value), true); });
  on(find(".scrub"), "change", settle);
  on(find(".play"), "click", () => {
    if (state.timer) { play(false); settle(); return; }
    if (state.index === steps.length - 1) show(0, true);
    play(true);
  });
  on(find(".map"), "pointermove", (event) => {
    const row = Math.floor((event.offsetY - MARGIN.top) / cell());
    const column = Math.floor((event.offsetX - MARGIN.left) / cell());
    const inside = Math.min(row, column) >= 0 && Math.max(row, column) < size;
    state.pointer = inside ? { row, column } : null;
    if (inside) describe(state.pointer); else find(".hover").textContent = "";
  });
  on(find(".map"), "pointerleave", () => { state.pointer = null; find(".hover").textContent = ""; });
  on(find(".svg"), "click", () => save(`${name()}.svg`, "image/svg+xml", drawing(buffer, header, steps[state.index])));
  on(find(".csv"), "click", () => {
    save(`${name()}.csv`, "text/csv", tableOf(weights, state.index * size * size, header, steps[state.index]));
  });
  on(window, "embryo:step", ({ detail }) => {
    if (detail.from !== "map") show(indexOfStep(steps, detail.step), false);
  });

  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  layout();
  play(Boolean(state.timer));
  announce({ layer, head, scale, step: steps[state.index] });
  return () => { play(false); parentElement.embryoListeners.abort(); };
}

const tickEvery = (size) => (size <= 12 ? 1 : size <= 32 ? 4 : 8);

// What labels a position: the piece of a sentence, else its number.
function shortened(position, tokens) {
  if (!tokens) return String(position);
  const letters = [...tokens[position]];
  return letters.length > LONGEST_TOKEN ? `${letters.slice(0, LONGEST_TOKEN - 1).join("")}…` : tokens[position];
}

const axes = (tokens) => (tokens ? ["to", "from"] : ["to position (0 is [CLS])", "from position"]);

function legendLabels(max, scale, decades) {
  const number = (weight) => String(Number(weight.toPrecision(2)));
  if (scale === "linear") return [["0", 0, "left"], [number(max / 2), 0.5, "center"], [number(max), 1, "right"]];
  const low = max / 10 ** decades;
  return [[`≤ ${number(low)}`, 0, "left"], [number(Math.sqrt(low * max)), 0.5, "center"], [number(max), 1, "right"]];
}

// === Downloads ===

function tableOf(weights, offset, { run, layer, head, size, tokens }, step) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = [`run,step,layer,head,from,to,weight${tokens ? ",from_piece,to_piece" : ""}`];
  for (let i = 0; i < size * size; i++) {
    const [row, column] = [Math.floor(i / size), i % size];
    const weight = weights[offset + i].toPrecision(6);
    const pieces = tokens ? `,${quoted(tokens[row])},${quoted(tokens[column])}` : "";
    rows.push(`${quoted(run)},${step},${layer},${head},${row},${column},${weight}${pieces}`);
  }
  return rows.join("\n") + "\n";
}

const turn = (element, x, y) => element.setAttribute("transform", `translate(${x} ${y}) rotate(-90)`);

// The map as a drawing: the weights as a picture of size x size pixels, axes and legend as shapes and text.
function drawing(buffer, { run, layer, head, size, max, scale, decades, colours, sentences, tokens }, step) {
  const [side, left, top, below] = tokens ? [480, 114, 40, 98] : [480, 60, 40, 34];
  const [middle, bottom] = [left + side / 2, top + side + below - 34];
  const svg = page(left + side + 20, bottom + 90);
  const of = tokens ? "one sentence" : `mean of ${sentences} sentences`;
  label(svg, `${run}, layer ${layer}, head ${head}, step ${formatStep(step)}, ${of}`, middle, 24, "middle", 14);
  picture(svg, buffer, 0, 0, size, left, top, side);
  const every = tokens ? Math.ceil((11 * size) / side) : tickEvery(size);
  for (let position = 0; position < size; position += every) {
    const at = ((position + 0.5) * side) / size;
    const words = shortened(position, tokens);
    label(svg, words, left - 8, top + at + 4, "end");
    if (tokens) turn(label(svg, words, 0, 0, "end"), left + at + 4, top + side + 8);
    else label(svg, words, left + at, bottom + 16);
  }
  const [to, from] = axes(tokens);
  label(svg, to, middle, bottom + 34);
  turn(label(svg, from, 0, 0), 22, top + side / 2);
  for (let i = 0; i < 60; i++) {
    const fill = `rgb(${colourAt(colours, i / 59)})`;
    shape(svg, "rect", { x: left + i * 4, y: bottom + 46, width: 4.5, height: 12, fill });
  }
  for (const [words, x] of legendLabels(max, scale, decades)) label(svg, words, left + x * 240, bottom + 74);
  label(svg, `attention weight, ${scale}`, left + 262, bottom + 56, "start");
  return written(svg);
}
