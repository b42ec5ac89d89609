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

// bertviz draws a line for every weight, as opaque as the weight is large; those too faint to be seen are not made. Only
// lines have numbers as data. The place of a line that is left out stays empty, so that the others keep their index.
const enter = d3.selection.prototype.enter;
d3.selection.prototype.enter = function () {
  const entering = enter.call(this);
  for (const group of entering._groups) {
    group.forEach((node, i) => { if (typeof node.__data__ === "number" && node.__data__ < faintest) delete group[i]; });
  }
  return entering;
};
