// Small multiples of every layer and head, [steps, layers * M, heads * M] codes of one byte, drawn in the browser.
// The maps of one more step may come on their own (head_grid_step.js).

const LABEL = { left: 26, top: 20 };
const GAP = 3;
const CHOSEN = "#D55E00"; // a colour that the scale does not have

export default function ({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { steps, countedIn, at, layers, heads, size, decades, colours, peaks, ends } = header;
  const find = (selector) => parentElement.querySelector(selector);
  const [root, canvas] = [find(".grid"), find(".cells")];
  const { signal } = renew(parentElement);
  const state = { step: window.embryoStep ?? Infinity, spot: null };
  const chosen = { layer: 1, head: 1, scale: "linear", shared: false };

  const [width, height] = [heads * size, layers * size];
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const buffer = new OffscreenCanvas(width, height);
  let [tables, added, context, cell] = [null, null, null, 0];

  const palette = pixelsOf(colours);
  const tablesOf = (largest) => {
    const reach = chosen.scale === "log" ? decades : null;
    return largest.map((row, layer) => row.map((most, head) => {
      const end = chosen.shared ? header.shared_end : ends[layer][head];
      return palette.map((_, code) => palette[levelOf((shareOf(code, decades) * most) / end, reach)]);
    }));
  };
  const recolour = () => {
    const own = window.embryoMaps?.[header.name];
    tables = tablesOf(peaks);
    added = own ? { ...own, tables: tablesOf(own.peaks) } : null;
  };

  // The last maps up to the time bar's step; the first ones if the step is before all of them.
  function shown() {
    const index = indexOfStep(at, state.step);
    const rank = (place) => (place <= state.step ? place : -1 - place);
    if (added && rank(added.at) > rank(at[index]))
      return { step: added.step, codes: added.body, tables: added.tables };
    return { step: steps[index], codes: body.subarray(index * width * height, (index + 1) * width * height), tables };
  }

  function paint() {
    if (!context) return;
    const { step, codes, tables } = shown();
    for (let y = 0, i = 0; y < height; y++) {
      const row = tables[Math.floor(y / size)];
      for (let head = 0; head < heads; head++) {
        const table = row[head];
        for (let x = 0; x < size; x++, i++) pixels[i] = table[codes[i]];
      }
    }
    buffer.getContext("2d").putImageData(image, 0, 0);
    context.clearRect(LABEL.left - GAP, LABEL.top - GAP, heads * cell + 2 * GAP, layers * cell + 2 * GAP);
    const inner = cell - GAP;
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        const [x, y] = [LABEL.left + head * cell, LABEL.top + layer * cell];
        context.drawImage(buffer, head * size, layer * size, size, size, x, y, inner, inner);
      }
    }
    context.strokeRect(
      LABEL.left + (chosen.head - 1) * cell - 1.5, LABEL.top + (chosen.layer - 1) * cell - 1.5, inner + 3, inner + 3,
    );
    root.dataset.step = step;
    tell();
  }
  const repaint = oncePerFrame(paint);

  function layout() {
    if (!root.clientWidth) return;
    const tall = (500 - LABEL.top) / layers;
    cell = Math.max(18, Math.floor(Math.min((root.clientWidth - LABEL.left - GAP) / heads, tall, 120)));
    context = fit(canvas, LABEL.left + heads * cell + GAP, LABEL.top + layers * cell + GAP);
    context.imageSmoothingEnabled = cell < size;
    const { colour, family } = theme(root);
    Object.assign(context, { fillStyle: colour, strokeStyle: CHOSEN, lineWidth: 2, font: `11px ${family}` });
    context.textBaseline = "middle";
    context.textAlign = "center";
    const middle = (number) => (number - 0.5) * cell;
    for (let head = 1; head <= heads; head++) context.fillText(head, LABEL.left + middle(head), LABEL.top / 2 - 2);
    context.textAlign = "right";
    for (let layer = 1; layer <= layers; layer++) context.fillText(layer, LABEL.left - 8, LABEL.top + middle(layer));
    paint();
  }

  function choose(layer, head) {
    if (layer < 1 || layer > layers || head < 1 || head > heads) return;
    if (layer === chosen.layer && head === chosen.head) return;
    Object.assign(chosen, { layer, head });
    repaint();
    setTriggerValue("head", { layer, head });
  }

  function under(event) {
    const head = Math.floor((event.offsetX - LABEL.left) / cell) + 1;
    const layer = Math.floor((event.offsetY - LABEL.top) / cell) + 1;
    return head >= 1 && head <= heads && layer >= 1 && layer <= layers ? { layer, head } : null;
  }

  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  function tell() {
    const { layer, head } = state.spot ?? chosen;
    const maxima = [header, ...(added ? [added] : [])].map((of) => of.maxima[layer - 1][head - 1]);
    const most = `layer ${layer}, head ${head}: largest weight at the steps shown ${Math.max(...maxima).toPrecision(2)}`;
    find(".note").textContent = `${namedStep(shown().step, countedIn)}; ${most}`;
  }
  const point = (spot) => { state.spot = spot; tell(); };
  on(canvas, "click", (event) => { const spot = under(event); if (spot) choose(spot.layer, spot.head); });
  on(canvas, "pointermove", (event) => point(under(event)));
  on(canvas, "pointerleave", () => point(null));
  on(canvas, "keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    point(null);
    choose(chosen.layer + move[0], chosen.head + move[1]);
    tell();
    find(".announced").textContent = find(".note").textContent;
  });
  on(window, "embryo:step", ({ detail }) => { state.step = detail.step; repaint(); });
  const follow = (head = {}) => {
    Object.assign(chosen, head);
    recolour();
    repaint();
  };
  on(window, "embryo:maps", ({ detail }) => detail === header.name && follow());
  on(window, "embryo:head", ({ detail }) => follow(detail));

  const step = () => shown().step;
  saving(signal, header.name, step, (file) => gridDrawing(buffer, header, step(), file));

  const maps = `Attention maps of ${layers} layers (rows) and ${heads} heads (columns)`;
  canvas.setAttribute("aria-label", `${maps}; arrow keys choose one`);
  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  follow(window.embryoHead);
  layout();
  return () => parentElement.embryoListeners.abort();
}

// === File ===

function gridDrawing(buffer, { run, countedIn, layers, heads, size, edge }, step, { pixels, print }) {
  const left = 40;
  const cell = Math.min((pixels - left - edge) / heads, 96);
  const width = Math.max(left + heads * cell + edge, Math.min(pixels, 400));
  const title = wrapped(`${run}, ${namedStep(step, countedIn)}: attention of every head`, width - 2 * edge, TITLE);
  const top = titleRoom(title) + 24;
  const foot = wrapped(print, width - 2 * edge, SMALL);
  const svg = whitePage(width, top + layers * cell + footRoom(foot));
  writeTitle(svg, title, edge);
  for (let layer = 0; layer < layers; layer++) {
    words(svg, { text: layer + 1, x: left - 8, y: top + (layer + 0.5) * cell, align: "right" });
    for (let head = 0; head < heads; head++) {
      if (layer === 0) words(svg, { text: head + 1, x: left + (head + 0.5) * cell, y: top - 12 });
      const [x, y, side] = [left + head * cell, top + layer * cell, cell - GAP];
      picture(svg, buffer, head * size, layer * size, size, { x, y, width: side, height: side });
    }
  }
  writeFoot(svg, foot, edge, top + layers * cell);
  return svg;
}
