// The Overview's tiles: a sentence, a head and curves at the time bar's step, drawn in the browser (see growth.py).
const MAP = 160; // pixels of the head's map

const written = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

// An element with this text, which is never read as markup.
function made(name, text = "", style = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  Object.assign(element.style, style);
  return element;
}

function drawSentence(tile, { before, after, answers }, index) {
  const best = answers[index]; // pairs, since an object would list numbers first
  tile.querySelector(".text").replaceChildren(before, made("b", best[0]?.[0] ?? "…"), after);
  const rows = best.flatMap(([word, share]) =>
    [made("span", word), made("i", "", { width: `${100 * share}%` }), made("span", written(share))]);
  tile.querySelector(".answers").replaceChildren(...(rows.length ? rows : [made("span", "no answer yet")]));
}

function headPainter(tile, { size, colours, title, pattern, values }, codes) {
  const palette = pixelsOf(colours);
  const image = new ImageData(size, size);
  const pixels = new Uint32Array(image.data.buffer);
  const picture = new OffscreenCanvas(size, size);
  const context = fit(tile.querySelector("canvas"), MAP, MAP);
  tile.querySelector("canvas").setAttribute("aria-label", `Attention map of ${title}`);
  return (index) => {
    for (let i = 0; i < pixels.length; i++) pixels[i] = palette[codes[index * size * size + i]];
    picture.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(picture, 0, 0, MAP, MAP);
    tile.querySelector(".what").textContent = `${title}: ${pattern}, ${written(values[index])} of its attention`;
  };
}

// The whole curves are faint; what the model has reached by the step is drawn over them.
function curvesPainter(tile, { places, curves }) {
  const svg = tile.querySelector("svg");
  const top = Math.max(...curves.flatMap(({ values }) => values)) || 1; // all may be zero
  const lines = curves.flatMap(({ colour, values }) => {
    const points = values.map((value, i) => `${3 + 294 * places[i]},${146 - (140 * value) / top}`);
    return ["whole", "seen"].map((name) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
      line.setAttribute("class", name);
      line.setAttribute("stroke", colour);
      line.setAttribute("points", points.join(" "));
      return { name, line, points };
    });
  });
  svg.replaceChildren(...lines.map(({ line }) => line));
  return (index) => {
    for (const { name, line, points } of lines)
      if (name === "seen") line.setAttribute("points", points.slice(0, index + 1).join(" "));
    tile.querySelector(".names").replaceChildren(...curves.map(({ name, colour, values }) => {
      const entry = made("span", `${name} ${written(values[index])}`);
      entry.style.setProperty("--own", colour);
      return entry;
    }));
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { signal } = renew(parentElement);
  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  const painters = {
    sentence: (tile, own) => (index) => drawSentence(tile, own, index),
    head: (tile, own) => headPainter(tile, own, body),
    curves: curvesPainter,
  };
  const drawn = Object.entries(painters).flatMap(([name, painter]) => {
    const tile = parentElement.querySelector(`.${name}`);
    const own = header[name];
    tile.hidden = !own;
    if (!own) return [];
    tile.setAttribute("aria-label", own.label);
    on(tile, "click", () => setTriggerValue("open", name));
    return [{ steps: own.steps, paint: painter(tile, own) }];
  });
  const paint = () => drawn.forEach(({ steps, paint }) => paint(indexOfStep(steps)));
  const watch = parentElement.querySelector(".watch");
  const playing = (now) => {
    watch.classList.toggle("playing", now);
    watch.textContent = now ? "Pause" : "Watch it grow";
  };
  on(watch, "click", () => window.dispatchEvent(new CustomEvent("embryo:play")));
  on(window, "embryo:playing", ({ detail }) => playing(detail));
  on(window, "embryo:step", oncePerFrame(paint));
  playing(Boolean(window.embryoPlaying));
  paint();
  return () => parentElement.embryoListeners.abort();
}
