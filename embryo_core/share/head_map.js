// One head's map on a canvas, its legend, and the weight under the pointer: map_style.py describes the layout.

// A step with its unit, as in words.py.
function namedStep(step, countedIn) {
  const number = step.toLocaleString("en-US");
  if (countedIn === "updates") return `step ${number}`;
  return `${number} ${step === 1 ? countedIn.replace(/s$/, "") : countedIn}`;
}

// === Colours ===

// The index of a weight's colour among 256; the weight is a share of the one where the colours end; `decades` is null on a
// linear scale.
function levelOf(share, decades) {
  const position = decades === null ? share : 1 + Math.log10(Math.max(share, 10 ** -decades)) / decades;
  return Math.round(255 * Math.min(position, 1));
}

// Colours [256] of [red, green, blue] as the 32-bit pixels of an ImageData (little-endian, opaque).
const pixelsOf = (colours) =>
  Uint32Array.from(colours, ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0);

// === Drawing ===

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

// The labels that a box of this size has room for, each at its place.
function* placed(labels, box) {
  for (const { share, offset, least, ...label } of labels) {
    if (box.width < least) continue;
    yield { ...label, x: box.x + share[0] * box.width + offset[0], y: box.y + share[1] * box.height + offset[1] };
  }
}

function writeLabels(context, labels, box) {
  context.textBaseline = "middle";
  for (const { text, x, y, align, turned } of placed(labels, box)) {
    context.save();
    context.translate(x, y);
    if (turned) context.rotate(-Math.PI / 2);
    context.textAlign = align;
    context.fillText(text, 0, 0);
    context.restore();
  }
}

// Draws the maps of a history one at a time: `weights` [steps, size, size], row = from, column = to.
class HeadMap {
  constructor(canvas, legend, drawing, weights) {
    Object.assign(this, { canvas, legend, drawing, weights });
    const { size, colours, title, scale, end } = drawing;
    this.palette = pixelsOf(colours);
    this.image = new ImageData(size, size);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.picture = new OffscreenCanvas(size, size); // a pixel for each weight
    canvas.setAttribute("aria-label", `Attention map of ${title}`);
    legend.setAttribute("aria-label", `Colour: attention weight, ${scale}, up to ${end.toPrecision(3)}`);
  }

  // Sizes the canvas for a page of this width and draws everything that is the same at all steps.
  layout(width, { colour, family }) {
    const { margins: { left, top, right, bottom }, sides, labels, font } = this.drawing;
    const side = Math.max(sides[0], Math.min(width - left - right, sides[1]));
    this.box = { x: left, y: top, width: side, height: side };
    this.context = fit(this.canvas, left + side + right, top + side + bottom);
    Object.assign(this.context, { fillStyle: colour, font: `${font}px ${family}` });
    writeLabels(this.context, labels, this.box);
    this.layoutLegend(colour, family);
  }

  layoutLegend(colour, family) {
    const { legend: { width, height, labels, room }, colours, font } = this.drawing;
    const context = fit(this.legend, room[0], room[1]);
    for (let x = 0; x < width; x++) {
      context.fillStyle = `rgb(${colours[levelOf(x / (width - 1), null)]})`;
      context.fillRect(x, 0, Math.min(1.5, width - x), height); // they overlap: no gaps on a screen of 1.25 pixels each
    }
    Object.assign(context, { fillStyle: colour, font: `${font}px ${family}` });
    writeLabels(context, labels, { x: 0, y: 0, width, height });
  }

  paint(index) {
    const { size, end, decades } = this.drawing;
    const first = index * size * size;
    for (let i = 0; i < this.pixels.length; i++) {
      this.pixels[i] = this.palette[levelOf(this.weights[first + i] / end, decades)];
    }
    this.picture.getContext("2d").putImageData(this.image, 0, 0);
    const { x, y, width, height } = this.box;
    this.context.drawImage(this.picture, x, y, width, height);
  }

  // The weight under the pointer as {row, column}, or null beside the map.
  under({ offsetX, offsetY }) {
    const { size } = this.drawing;
    const row = Math.floor(((offsetY - this.box.y) / this.box.height) * size);
    const column = Math.floor(((offsetX - this.box.x) / this.box.width) * size);
    return Math.min(row, column) >= 0 && Math.max(row, column) < size ? { row, column } : null;
  }

  describe(index, { row, column }) {
    const { size, tokens } = this.drawing;
    const [from, to] = [row, column].map((i) => (tokens.length ? `${i} “${tokens[i]}”` : `position ${i}`));
    const weight = this.weights[(index * size + row) * size + column];
    return `from ${from} to ${to}: weight ${weight.toPrecision(4)}`;
  }
}
