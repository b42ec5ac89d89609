// Drawings of maps as SVG and PNG files: white pages with title, small print, and the labels of head_map.js.

const SVG = "http://www.w3.org/2000/svg";
const XLINK = "http://www.w3.org/1999/xlink";
const FONT_FAMILY = "Arial, Helvetica, 'Liberation Sans', sans-serif"; // as in embryo_core/figures/file_layout.py
const [TITLE, SMALL] = [15, 10.5]; // pixels of the title's and of the small print's letters

function shape(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}

// A white page to draw on.
function whitePage(width, height) {
  const svg = shape(null, "svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  shape(svg, "rect", { width, height, fill: "white" });
  return svg;
}

const ANCHORS = { left: "start", center: "middle", right: "end" };

// Text whose middle line is at (x, y), or which ends below that point if it is turned to read upwards.
function words(svg, { text, x, y, align = "center", turned = false, size = 12 }) {
  const place = turned ? { transform: `translate(${x} ${y}) rotate(-90)` } : { x, y };
  const font = { "text-anchor": ANCHORS[align], "font-size": size, "font-family": FONT_FAMILY, fill: "#222222", dy: "0.35em" };
  shape(svg, "text", { ...place, ...font }, text);
}

// One map of size x size pixels from a canvas, drawn as a square. Each weight gets many pixels, so that it stays sharp in
// programs that smooth enlarged images.
function picture(svg, canvas, sx, sy, size, { x, y, width, height }) {
  const map = document.createElement("canvas");
  map.width = map.height = size * Math.ceil((4 * width) / size);
  const context = map.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, sx, sy, size, size, 0, 0, map.width, map.height);
  const image = shape(svg, "image", { x, y, width, height, style: "image-rendering: pixelated" });
  image.setAttributeNS(XLINK, "xlink:href", map.toDataURL("image/png")); // the older name, which Inkscape reads too
}

// === Title and small print ===

// Text in lines that fit into a width in pixels; a word longer than that is cut.
function wrapped(text, width, size) {
  const letters = Math.floor(width / (0.6 * size));
  return text.match(new RegExp(`\\S.{0,${letters - 1}}(?=\\s|$)|\\S{${letters}}`, "g")) ?? [];
}

// The height of the lines in pixels, with the space around them.
const titleRoom = (lines) => 16 + 19 * lines.length;
const footRoom = (lines) => 18 + 14 * lines.length;

function writeTitle(svg, lines, x) {
  lines.forEach((text, line) => words(svg, { text, x, y: 18 + 19 * line, align: "left", size: TITLE }));
}

function writeFoot(svg, lines, x, top) {
  lines.forEach((text, line) => words(svg, { text, x, y: top + 16 + 14 * line, align: "left", size: SMALL }));
}

// === One head ===

// A head's map as painted now, as wide as the file allows, with its legend.
function mapDrawing(map, step, { pixels, print }) {
  const { title, countedIn, size, margins, labels, legend, sides, edge, font } = map.drawing;
  const side = Math.min(pixels - margins.left - margins.right - 2 * edge, sides[1]);
  const width = margins.left + side + margins.right + 2 * edge;
  const heading = wrapped(`${title}, ${namedStep(step, countedIn)}`, width - 2 * edge, TITLE);
  const box = { x: edge + margins.left, y: titleRoom(heading), width: side, height: side };
  const y = box.y + side + margins.bottom + 6;
  const bar = { x: Math.min(box.x, width - legend.room[0]), y, width: legend.width, height: legend.height };
  const foot = wrapped(print, width - 2 * edge, SMALL);
  const svg = whitePage(width, y + legend.room[1] + footRoom(foot));
  writeTitle(svg, heading, edge);
  picture(svg, map.picture, 0, 0, size, box);
  drawBar(svg, map.drawing, bar);
  for (const label of [...placed(labels, box), ...placed(legend.labels, bar)]) words(svg, { ...label, size: font });
  writeFoot(svg, foot, edge, y + legend.room[1]);
  return svg;
}

// All colours from left to right.
function drawBar(svg, { colours }, { x, y, width, height }) {
  const part = 4;
  for (let at = 0; at < width; at += part) {
    const fill = `rgb(${colours[levelOf(at / (width - part), null)]})`;
    shape(svg, "rect", { x: x + at, y, width: Math.min(part + 0.5, width - at), height, fill });
  }
}

// === Files ===

// Saves what `draw` returns when the menu of a figure's files (figure_files.js) asks for the maps of this name.
function saving(signal, name, step, draw) {
  const save = async (event) => {
    const { detail } = event;
    if (detail.name !== name) return;
    event.preventDefault(); // it is heard
    const svg = draw(detail);
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", width * detail.scale);
    svg.setAttribute("height", height * detail.scale);
    const text = new XMLSerializer().serializeToString(svg);
    const file = detail.format === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await painted(text);
    download(file, `${name}-step${step()}.${detail.format}`);
  };
  window.addEventListener("embryo:save", save, { signal });
}

// A drawing as PNG, painted by the browser.
async function painted(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function download(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
