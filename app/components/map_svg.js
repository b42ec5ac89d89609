// Drawings of maps as SVG and PNG files: white pages with the labels and the colour bar of head_map.js.

const SVG = "http://www.w3.org/2000/svg";

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

// Words whose middle line is at (x, y), or below it where they are turned to read upwards.
function words(svg, { text, x, y, align = "center", turned = false, size = 12 }) {
  const place = turned ? { transform: `translate(${x} ${y}) rotate(-90)` } : { x, y };
  const font = { "text-anchor": ANCHORS[align], "font-size": size, "font-family": "sans-serif", dy: "0.35em" };
  shape(svg, "text", { ...place, ...font }, text);
}

// One map of size x size pixels out of a canvas, drawn as a square.
function picture(svg, canvas, sx, sy, size, { x, y, width, height }) {
  const map = document.createElement("canvas");
  map.width = map.height = size;
  map.getContext("2d").drawImage(canvas, sx, sy, size, size, 0, 0, size, size);
  const href = map.toDataURL("image/png");
  shape(svg, "image", { x, y, width, height, href, style: "image-rendering: pixelated" });
}

// A head's map as it is painted now, as wide as can be, with its legend and what it shows.
function mapDrawing(map, step) {
  const { title, lines, size, margins, labels, legend, colours, sides, edge, font } = map.drawing;
  const [side, above] = [sides[1], 36];
  const box = { x: edge + margins.left, y: above, width: side, height: side };
  const bar = { x: box.x, y: above + side + margins.bottom + 6, width: legend.width, height: legend.height };
  const below = bar.y + legend.room[1] + 16;
  const svg = whitePage(box.x + side + margins.right + edge, below + 16 * lines.length);
  words(svg, { text: `${title}, step ${formatStep(step)}`, x: edge, y: 18, align: "left", size: 14 });
  picture(svg, map.picture, 0, 0, size, box);
  const part = 4;
  for (let x = 0; x < bar.width; x += part) {
    const fill = `rgb(${colours[levelOf(x / (bar.width - part), null)]})`;
    const width = Math.min(part + 0.5, bar.width - x);
    shape(svg, "rect", { x: bar.x + x, y: bar.y, width, height: bar.height, fill });
  }
  for (const label of [...placed(labels, box), ...placed(legend.labels, bar)]) words(svg, { ...label, size: font });
  lines.forEach((text, line) => words(svg, { text, x: edge, y: below + 16 * line, align: "left", size: font }));
  return written(svg);
}

const written = (svg) => new XMLSerializer().serializeToString(svg);

// === Files ===

const PNG_SCALE = 300 / 96; // of 300 dots per inch

const saveSvg = (name, text) => save(`${name}.svg`, "image/svg+xml", text);

// The same drawing as PNG, painted by the browser.
async function savePng(name, text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.naturalWidth * PNG_SCALE);
  canvas.height = Math.round(image.naturalHeight * PNG_SCALE);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(`${name}.png`, "image/png", blob));
}
