// One head's maps at every checkpoint, [steps, L, L] float32, drawn in the browser as the step changes.

const PLAY_MS = 250;
const SETTLED_MS = 2000; // while the user scrubs, answers of the server to earlier steps arrive late
const MARGIN = { left: 46, top: 6, right: 6, bottom: 40 };

export default function ({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { steps, size, max, layer, head, scale, decades, colours } = header;
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
    for (const position of ticks(size)) {
      const at = (position + 0.5) * cell();
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(position, MARGIN.left - 6, MARGIN.top + at);
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(position, MARGIN.left + at, MARGIN.top + side() + 5);
    }
    context.fillText("to position (0 is [CLS])", MARGIN.left + side() / 2, MARGIN.top + side() + 22);
    context.save();
    context.translate(4, MARGIN.top + side() / 2);
    context.rotate(-Math.PI / 2);
    context.fillText("from position", 0, 0);
    context.restore();
    paint();
    legend();
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
    find(".hover").textContent = `from position ${row} to position ${column}: weight ${weight.toPrecision(4)}`;
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

function ticks(size) {
  const every = size <= 12 ? 1 : size <= 32 ? 4 : 8;
  return Array.from({ length: Math.ceil(size / every) }, (_, i) => i * every);
}

function legendLabels(max, scale, decades) {
  const number = (weight) => String(Number(weight.toPrecision(2)));
  if (scale === "linear") return [["0", 0, "left"], [number(max / 2), 0.5, "center"], [number(max), 1, "right"]];
  const low = max / 10 ** decades;
  return [[`≤ ${number(low)}`, 0, "left"], [number(Math.sqrt(low * max)), 0.5, "center"], [number(max), 1, "right"]];
}

// === Downloads ===

function tableOf(weights, offset, { run, layer, head, size }, step) {
  const rows = ["run,step,layer,head,from,to,weight"];
  const quoted = `"${run.replaceAll('"', '""')}"`;
  for (let i = 0; i < size * size; i++) {
    const place = `${Math.floor(i / size)},${i % size}`;
    rows.push(`${quoted},${step},${layer},${head},${place},${weights[offset + i].toPrecision(6)}`);
  }
  return rows.join("\n") + "\n";
}

// The map as a drawing: the weights as a picture of size x size pixels, axes and legend as shapes and text.
function drawing(buffer, { run, layer, head, size, max, scale, decades, colours, sentences }, step) {
  const [side, left, top] = [480, 60, 40];
  const [middle, bottom] = [left + side / 2, top + side];
  const svg = page(560, 610);
  const title = `${run}, layer ${layer}, head ${head}, step ${formatStep(step)}, mean of ${sentences} sentences`;
  label(svg, title, middle, 24, "middle", 14);
  picture(svg, buffer, 0, 0, size, left, top, side);
  for (const position of ticks(size)) {
    const at = ((position + 0.5) * side) / size;
    label(svg, position, left - 8, top + at + 4, "end");
    label(svg, position, left + at, bottom + 16);
  }
  label(svg, "to position (0 is [CLS])", middle, bottom + 34);
  const from = label(svg, "from position", 0, 0);
  from.setAttribute("transform", `translate(22 ${top + side / 2}) rotate(-90)`);
  for (let i = 0; i < 60; i++) {
    const fill = `rgb(${colourAt(colours, i / 59)})`;
    shape(svg, "rect", { x: left + i * 4, y: bottom + 46, width: 4.5, height: 12, fill });
  }
  for (const [words, x] of legendLabels(max, scale, decades)) label(svg, words, left + x * 240, bottom + 74);
  label(svg, `attention weight, ${scale}`, left + 262, bottom + 56, "start");
  return written(svg);
}
