// Shared by the two attention components: the payload from Python, the colours, and the page's step.

// Bytes made by `payload()` in attention.py: length of the header (uint32), the header (JSON), then the maps.
function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { header, body: bytes.slice(4 + length) };
}

// Colours of the scale as [r, g, b] at t in [0, 1], interpolated between evenly spaced stops.
function colourAt(stops, t) {
  const place = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((c, i) => Math.round(c + (place - low) * (stops[low + 1][i] - c)));
}

// 256 colours as the 32-bit pixels of an ImageData (little-endian, opaque).
function colourTable(stops, curve = (t) => t) {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = colourAt(stops, curve(i / 255));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

// Place in the colour scale of a weight given as a share of the head's largest weight.
function place(share, scale, decades) {
  if (scale === "linear") return share;
  return share <= 0 ? 0 : Math.max(0, 1 + Math.log10(share) / decades);
}

// Index of the last stored step that is not after `step`.
function indexOfStep(steps, step) {
  let index = 0;
  for (let i = 0; i < steps.length && steps[i] <= step; i++) index = i;
  return index;
}

const formatStep = (step) => step.toLocaleString("en-US");

// A canvas sized for the screen's pixels; returns its context, in CSS pixels.
function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  return context;
}

// Calls `draw` once before the next frame, however often it is asked to.
function oncePerFrame(draw) {
  let asked = 0;
  return () => {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); });
  };
}

// Streamlit calls a component again at every rerun: the listeners of the call before are dropped.
function renew(parent) {
  parent.embryoListeners?.abort();
  parent.embryoListeners = new AbortController();
  return parent.embryoListeners;
}

const themeColour = (element, name, otherwise) =>
  getComputedStyle(element).getPropertyValue(name).trim() || otherwise;

// === The chosen head, told to the other component of the page ===

function announce(chosen) {
  window.embryoHead = chosen;
  window.dispatchEvent(new CustomEvent("embryo:head", { detail: chosen }));
}

// === Downloads ===

const SVG = "http://www.w3.org/2000/svg";

function shape(parent, name, attributes, words) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (words !== undefined) element.textContent = words;
  parent?.append(element);
  return element;
}

// A white page to draw on.
function page(width, height) {
  const svg = shape(null, "svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  shape(svg, "rect", { width, height, fill: "white" });
  return svg;
}

function label(svg, words, x, y, anchor = "middle", size = 12) {
  return shape(svg, "text", { x, y, "text-anchor": anchor, "font-size": size, "font-family": "sans-serif" }, words);
}

// One map of size x size pixels out of a canvas, drawn as a square of `side`.
function picture(svg, canvas, sx, sy, size, x, y, side) {
  const map = document.createElement("canvas");
  map.width = map.height = size;
  map.getContext("2d").drawImage(canvas, sx, sy, size, size, 0, 0, size, size);
  const href = map.toDataURL("image/png");
  shape(svg, "image", { x, y, width: side, height: side, href, style: "image-rendering: pixelated" });
}

const written = (svg) => new XMLSerializer().serializeToString(svg);

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
