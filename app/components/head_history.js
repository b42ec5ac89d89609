// One head's maps at every checkpoint, [steps, L, L] float32, drawn in the browser as the step changes.

export default function ({ data, parentElement }) {
  const { header, body } = unpack(data);
  const { steps, layer, head, scale } = header;
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".history");
  const map = new HeadMap(find(".map"), find(".legend"), header, new Float32Array(body.buffer));
  const { signal } = renew(parentElement);

  const state = { index: indexOfStep(steps), pointer: null };

  function paint() {
    map.paint(state.index);
    root.dataset.step = steps[state.index];
    if (state.pointer) find(".hover").textContent = map.describe(state.index, state.pointer);
  }
  const repaint = oncePerFrame(paint);

  function layout() {
    if (!root.clientWidth) return;
    map.layout(root.clientWidth, theme(root));
    paint();
  }

  function point(spot) {
    state.pointer = spot;
    find(".hover").textContent = spot ? map.describe(state.index, spot) : "";
  }

  const name = () => `${header.name}-step${steps[state.index]}`;
  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  on(find(".map"), "pointermove", (event) => point(map.under(event)));
  on(find(".map"), "pointerleave", () => point(null));
  const drawn = () => mapDrawing(map, steps[state.index]);
  on(find(".svg"), "click", () => saveSvg(name(), drawn()));
  on(find(".png"), "click", () => savePng(name(), drawn()));
  on(find(".csv"), "click", () => save(`${name()}.csv`, "text/csv", tableOf(map.weights, header, state.index)));
  on(window, "embryo:step", ({ detail }) => { state.index = indexOfStep(steps, detail.step); repaint(); });

  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  layout();
  announce({ layer, head, scale, shared: header.shared });
  return () => parentElement.embryoListeners.abort();
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
