// One head's maps at every checkpoint, [steps, L, L] float32, drawn in the browser as the step changes.

const PLAY_MS = 250;
const SETTLED_MS = 2000; // while the user scrubs, answers of the server to earlier steps arrive late

export default function ({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { steps, layer, head, scale } = header;
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".history");
  const map = new HeadMap(find(".map"), find(".legend"), header, new Float32Array(body.buffer));
  const { signal } = renew(parentElement);

  // What outlives a rerun: the step shown, and whether it plays. The server's step counts unless it just moved here.
  const state = (parentElement.embryo ??= { index: 0, moved: -Infinity, timer: 0 });
  if (performance.now() - state.moved > SETTLED_MS || state.index >= steps.length) {
    state.index = indexOfStep(steps, header.step);
  }

  function paint() {
    map.paint(state.index);
    find(".step").value = `step ${formatStep(steps[state.index])}`;
    find(".scrub").value = state.index;
    root.dataset.step = steps[state.index];
    if (state.pointer) find(".hover").textContent = map.describe(state.index, state.pointer);
  }
  const repaint = oncePerFrame(paint);

  function layout() {
    if (!root.clientWidth) return;
    map.layout(root.clientWidth, theme(root));
    paint();
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

  function point(spot) {
    state.pointer = spot;
    find(".hover").textContent = spot ? map.describe(state.index, spot) : "";
  }

  const name = () => `${header.name}-step${steps[state.index]}`;
  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  find(".scrub").max = steps.length - 1;
  on(find(".scrub"), "input", (event) => { play(false); show(Number(event.target.value), true); });
  on(find(".scrub"), "change", settle);
  on(find(".play"), "click", () => {
    if (state.timer) { play(false); settle(); return; }
    if (state.index === steps.length - 1) show(0, true);
    play(true);
  });
  on(find(".map"), "pointermove", (event) => point(map.under(event)));
  on(find(".map"), "pointerleave", () => point(null));
  const drawn = () => mapDrawing(map, steps[state.index]);
  on(find(".svg"), "click", () => saveSvg(name(), drawn()));
  on(find(".png"), "click", () => savePng(name(), drawn()));
  on(find(".csv"), "click", () => save(`${name()}.csv`, "text/csv", tableOf(map.weights, header, state.index)));
  on(window, "embryo:step", ({ detail }) => {
    if (detail.from !== "map") show(indexOfStep(steps, detail.step), false);
  });

  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  layout();
  play(Boolean(state.timer));
  announce({ layer, head, scale, shared: header.shared, step: steps[state.index] });
  return () => { play(false); parentElement.embryoListeners.abort(); };
}

// The weights of one step as CSV, with the pieces of a sentence beside their positions.
function tableOf(weights, { run, steps, layer, head, size, tokens }, index) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = [`run,step,layer,head,from,to,weight${tokens.length ? ",from_piece,to_piece" : ""}`];
  for (let i = 0; i < size * size; i++) {
    const [row, column] = [Math.floor(i / size), i % size];
    const weight = weights[index * size * size + i].toPrecision(6);
    const pieces = tokens.length ? `,${quoted(tokens[row])},${quoted(tokens[column])}` : "";
    rows.push(`${quoted(run)},${steps[index]},${layer},${head},${row},${column},${weight}${pieces}`);
  }
  return rows.join("\n") + "\n";
}
