// Shared by the two attention components: the payload from Python, and the page's step and head.

// Bytes made by `pack` in head_maps.py: length of the header (uint32), the header (JSON), then the maps.
function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { header, body: bytes.slice(4 + length) };
}

// Code c > 0 means the share 10^(decades * ((c - 1) / 254 - 1)) of the largest weight, code 0 a smaller one.
const shareOf = (code, decades) => (code === 0 ? 0 : 10 ** (decades * ((code - 1) / 254 - 1)));

// Index of the last stored step that is not after the time bar's; of the last one until the bar is drawn.
function indexOfStep(steps, step = window.embryoStep ?? Infinity) {
  return Math.max(0, steps.findLastIndex((stored) => stored <= step));
}

// Calls `draw` once before the next frame, however often it is requested.
function oncePerFrame(draw) {
  let asked = 0;
  return () => {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); });
  };
}

// Streamlit calls a component again at every rerun; the previous call's listeners are removed.
function renew(parent) {
  parent.embryoListeners?.abort();
  parent.embryoListeners = new AbortController();
  return parent.embryoListeners;
}

// The colour and the font of the page's text.
function theme(element) {
  const style = getComputedStyle(element);
  return { colour: style.color, family: style.fontFamily };
}

// Informs the page's other component of the chosen head.
function announce(chosen) {
  window.embryoHead = chosen;
  window.dispatchEvent(new CustomEvent("embryo:head", { detail: chosen }));
}
