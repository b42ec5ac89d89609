// One head's maps at every checkpoint, [steps, L, L] float32, drawn in the browser as the step changes.

export default function ({ data, parentElement }) {
  const { header, body } = unpack(data);
  const { steps, countedIn, at, layer, head, scale } = header;
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".history");
  const map = new HeadMap(find(".map"), find(".legend"), header, new Float32Array(body.buffer));
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

  const observer = new ResizeObserver(layout);
  observer.observe(root);
  signal.addEventListener("abort", () => observer.disconnect());
  layout();
  announce({ layer, head, scale, shared: header.shared });
  return () => parentElement.embryoListeners.abort();
}
