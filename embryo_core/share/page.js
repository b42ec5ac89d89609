// Plays one head's maps: the page's button, slider and pointer around the HeadMap of head_map.js.

const PLAY_MS = 350;
const { codes, ...drawing } = JSON.parse(document.getElementById("data").textContent);
const { title, note, steps, countedIn, maximum } = drawing;
const find = (id) => document.getElementById(id);
const bytes = Uint8Array.from(atob(codes), (letter) => letter.charCodeAt(0));
const weights = Float32Array.from(new Uint16Array(bytes.buffer), (code) => (code / 65535) * maximum);
const map = new HeadMap(find("map"), find("legend"), drawing, weights);
let [index, timer] = [0, 0];

function paint() {
  map.paint(index);
  find("step").value = namedStep(steps[index], countedIn);
  find("scrub").value = index;
}

function layout() {
  const { color: colour, fontFamily: family } = getComputedStyle(document.body);
  map.layout(document.querySelector("main").clientWidth, { colour, family });
  paint();
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
  const spot = map.under(event);
  find("hover").textContent = spot ? map.describe(index, spot) : "";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", layout);

find("title").textContent = title;
find("note").textContent = note;
find("scrub").max = steps.length - 1;
new ResizeObserver(layout).observe(document.querySelector("main"));
// It does not start by itself if the system asks for reduced motion.
play(steps.length > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches);
