// One head's maps at every checkpoint, [steps, L, L], drawn in the browser as the step changes.

// Weights as float32, or as codes of a byte (see `history_payload`).
function weightsOf({ maximum, coded }, body) {
  if (!coded) return new Float32Array(body.buffer);
  const weights = Float32Array.from({ length: 256 }, (_, code) => maximum * shareOf(code, coded));
  return Float32Array.from(body, (code) => weights[code]);
}

export default function ({ data, parentElement }) {
  const { header, body } = unpack(data);
  const { steps, countedIn, at, layer, head, scale, size } = header;
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".history");
  const weights = weightsOf(header, body);
  const map = new HeadMap(find(".map"), find(".legend"), header, weights);
  const { signal } = renew(parentElement);

  const state = { index: indexOfStep(at), pointer: null };

  function paint() {
    map.paint(state.index);
    root.dataset.step = steps[state.index];
    tell();
  }
  // The weight under the pointer, or else the step of the maps: a step without maps shows earlier ones.
  function tell() {
    const step = namedStep(steps[state.index], countedIn);
    find(".hover").textContent = state.pointer ? map.describe(state.index, state.pointer) : step;
  }
  const repaint = oncePerFrame(paint);

  function layout() {
    if (!root.clientWidth) return;
    map.layout(root.clientWidth, theme(root));
    paint();
  }

  function point(spot) {
    state.pointer = spot;
    tell();
  }

  const on = (target, event, handler) => target.addEventListener(event, handler, { signal });
  on(find(".map"), "pointermove", (event) => point(map.under(event)));
  on(find(".map"), "pointerleave", () => point(null));
  on(window, "embryo:step", ({ detail }) => { state.index = indexOfStep(at, detail.step); repaint(); });

  saving(signal, header.name, () => steps[state.index], (file) => mapDrawing(map, steps[state.index], file));

  // The weights of all steps as rows of a table, whose columns come first.
  root.weights = () => {
    const row = (weight, i) => [steps[Math.floor(i / size ** 2)], layer, head, Math.floor(i / size) % size, i % size, weight.toPrecision(4)];
    return [["step", "layer", "head", "from", "to", "weight"], ...Array.from(weights, row)];
  };

  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  layout();
  announce({ layer, head, scale, shared: header.shared });
  return () => parentElement.embryoListeners.abort();
}
