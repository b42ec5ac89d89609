// What bertviz expects of a notebook: its data under the name PYTHON_PARAMS, and require.js with jQuery and d3.

const { weights, shape, tokens, faintest, ...settings } = JSON.parse(document.getElementById("data").textContent);

const PYTHON_PARAMS = (() => {
  const [layers, heads, size] = shape;
  let next = 0;
  const array = (length, make) => Array.from({ length }, make);
  const attn = array(layers, () => array(heads, () => array(size, () => array(size, () => weights[next++] / 1000))));
  return { ...settings, attention: [{ name: null, attn, left_text: tokens, right_text: tokens }] };
})();

const requirejs = (names, run) => run(...names.map((name) => ({ jquery: window.jQuery, d3: window.d3 })[name]));
const require = requirejs;
require.config = () => {};

// bertviz draws a line for every weight, as opaque as the weight is large; those too faint to be seen are not made.
// Only lines have numbers as data. An entry that is left out stays empty, so that the others keep their index.
const enter = d3.selection.prototype.enter;
d3.selection.prototype.enter = function () {
  const entering = enter.call(this);
  for (const group of entering._groups) {
    group.forEach((node, i) => { if (typeof node.__data__ === "number" && node.__data__ < faintest) delete group[i]; });
  }
  return entering;
};

// The head view is redrawn at every step. The layer and the heads that the reader chose are kept, unless the page asks for
// another layer.
if ("layer" in settings) {
  const asked = settings.layer;
  const kept = JSON.parse(window.sessionStorage?.getItem("embryo:head-view") ?? "{}");
  if (kept.asked === asked && kept.of === shape[1]) {
    if (settings.include_layers.includes(kept.layer)) PYTHON_PARAMS.layer = kept.layer;
    PYTHON_PARAMS.heads = kept.heads;
  }
  const keep = () => {
    const groups = [...document.querySelectorAll("#attention .headAttention")];
    const opaque = (line) => line.getAttribute("stroke-opacity") > 0;
    const shown = (group) => [...group.querySelectorAll("line")].some(opaque);
    const heads = groups.flatMap((group, i) => (shown(group) ? [i] : []));
    const layer = Number(document.getElementById("layer").value);
    window.sessionStorage?.setItem("embryo:head-view", JSON.stringify({ asked, of: shape[1], layer, heads }));
  };
  for (const event of ["change", "click", "dblclick"]) document.addEventListener(event, keep);
}

// The model view opens the head again that the reader had opened.
if ("display_mode" in settings) {
  const name = "embryo:model-view";
  document.addEventListener("click", () => {
    const headings = [...document.querySelectorAll("text.detail")].map((text) => text.textContent);
    const open = headings.map((text) => text.match(/^Layer (\d+), Head (\d+)$/)).find(Boolean);
    window.sessionStorage?.setItem(name, JSON.stringify(open ? open.slice(1).map(Number) : []));
  });
  window.addEventListener("load", () => {
    const [layer, head] = JSON.parse(window.sessionStorage?.getItem(name) ?? "[]");
    const small = document.getElementById(`attn_background_${settings.include_layers.indexOf(layer)}_${head - 1}`);
    small?.parentNode.lastElementChild.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}
