// Plays one head's maps, [steps, L, L] shares of the largest weight in 16 bits, and says what lies under the pointer.

const PLAY_MS = 350;
const SIDE = 420;
const { title, note, steps, size, largest, codes, colours, legend, decades, tokens } = JSON.parse(
  document.getElementById("data").textContent,
);
const find = (id) => document.getElementById(id);
const bytes = Uint8Array.from(atob(codes), (letter) => letter.charCodeAt(0));
const shares = Float32Array.from(new Uint16Array(bytes.buffer), (code) => code / 65535);
const named = tokens.length > 0;
const margin = named ? { left: 110, top: 8, bottom: 110 } : { left: 50, top: 8, bottom: 46 };
const cell = SIDE / size;
let [index, timer] = [0, 0];

// Place in the colour scale, in [0, 1], of a share of the largest weight.
const place = (share) => (decades === null ? share : share <= 0 ? 0 : Math.max(0, 1 + Math.log10(share) / decades));

function colourAt(t) {
  const at = Math.min(Math.max(t, 0), 1) * (colours.length - 1);
  const low = Math.min(Math.floor(at), colours.length - 2);
  return colours[low].map((c, i) => Math.round(c + (at - low) * (colours[low + 1][i] - c)));
}

function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  canvas.style.width = `${width}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = false;
  return context;
}

const pen = fit(find("map"), margin.left + SIDE, margin.top + SIDE + margin.bottom);
const image = new ImageData(size, size);
const buffer = Object.assign(document.createElement("canvas"), { width: size, height: size });

function paint() {
  for (let i = 0; i < size * size; i++) {
    image.data.set([...colourAt(place(shares[index * size * size + i])), 255], 4 * i);
  }
  buffer.getContext("2d").putImageData(image, 0, 0);
  pen.drawImage(buffer, margin.left, margin.top, SIDE, SIDE);
  find("step").value = `step ${steps[index].toLocaleString("en-US")}`;
  find("scrub").value = index;
}

function upright(words, x, y, align) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = align;
  pen.fillText(words, 0, 0);
  pen.restore();
}

const shortened = (token) => ([...token].length > 12 ? `${[...token].slice(0, 11).join("")}…` : token);

function axes() {
  pen.fillStyle = getComputedStyle(document.body).color;
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const every = named ? Math.ceil(11 / cell) : size <= 12 ? 1 : size <= 32 ? 4 : 8;
  const bottom = margin.top + SIDE;
  for (let position = 0; position < size; position += every) {
    const at = (position + 0.5) * cell;
    const words = named ? shortened(tokens[position]) : String(position);
    pen.textAlign = "right";
    pen.fillText(words, margin.left - 6, margin.top + at);
    if (named) upright(words, margin.left + at, bottom + 6, "right");
    else { pen.textAlign = "center"; pen.fillText(words, margin.left + at, bottom + 12); }
  }
  pen.textAlign = "center";
  pen.fillText(named ? "to" : "to position (0 is [CLS])", margin.left + SIDE / 2, bottom + margin.bottom - 10);
  upright(named ? "from" : "from position", 8, margin.top + SIDE / 2, "center");
}

function colourBar() {
  const canvas = document.createElement("canvas");
  const bar = fit(canvas, 208, 12);
  for (let x = 0; x < 208; x++) {
    bar.fillStyle = `rgb(${colourAt(x / 207)})`;
    bar.fillRect(x, 0, 1.5, 12);
  }
  find("legend").append(canvas, ...legend.map((words) => Object.assign(document.createElement("span"), { textContent: words })));
}

function play(on) {
  clearInterval(timer);
  timer = on ? setInterval(advance, PLAY_MS) : 0;
  find("play").textContent = on ? "❚❚" : "▶";
  find("play").setAttribute("aria-label", on ? "Pause" : "Play");
}

function advance() {
  index = Math.min(index + 1, steps.length - 1);
  if (index === steps.length - 1) play(false);
  paint();
}

find("play").addEventListener("click", () => {
  if (!timer && index === steps.length - 1) { index = 0; paint(); }
  play(!timer);
});
find("scrub").addEventListener("input", (event) => { play(false); index = Number(event.target.value); paint(); });
find("map").addEventListener("pointermove", (event) => {
  const shown = find("map").clientWidth / (margin.left + SIDE);
  const from = [event.offsetY / shown - margin.top, event.offsetX / shown - margin.left];
  const [row, column] = from.map((at) => Math.floor(at / cell));
  const inside = Math.min(row, column) >= 0 && Math.max(row, column) < size;
  const name = (i) => (named ? `${i} “${tokens[i]}”` : `position ${i}`);
  const weight = () => (shares[index * size * size + row * size + column] * largest).toPrecision(4);
  find("hover").textContent = inside ? `from ${name(row)} to ${name(column)}: weight ${weight()}` : "";
});

find("title").textContent = title;
find("note").textContent = note;
find("map").setAttribute("aria-label", `Attention map of ${title}`);
find("scrub").max = steps.length - 1;
axes();
colourBar();
paint();
play(steps.length > 1);
