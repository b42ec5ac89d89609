// What a reader chooses for curves, made in the browser of figures that were drawn once: what the axis of steps counts, and
// smoothing.
"use strict";

const KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };

// Numbers of a trace as an array; Plotly's Python package may have written them as bytes.
function numbersOf(values) {
  const Kind = KINDS[values?.dtype];
  return Kind ? [...new Kind(Uint8Array.from(atob(values.bdata), (sign) => sign.charCodeAt(0)).buffer)] : values;
}

// The time bar of a run, with the places of its steps on an axis that counts `unit`.
function barOf({ run, unit }) {
  const { bar, units } = page.site.runs[run];
  return unit === "step" ? bar : { ...bar, values: units[unit].values };
}

// A figure whose axes of steps count another unit: between two checkpoints in proportion to the step.
function recounted({ data, layout }, { run, unit }) {
  const { bar, units, title } = page.site.runs[run];
  const named = Object.entries(layout).filter(([name, axis]) => /^xaxis\d*$/.test(name) && [title, undefined].includes(axis.title?.text));
  if (unit === "step" || !named.some(([, axis]) => axis.title?.text === title)) return { data, layout };
  const { counts, values, axes } = units[unit];
  const changed = { ...layout };
  const moves = new Map();
  for (const [name, axis] of named) {
    const log = axis.type === "log";
    const [first, zero] = [bar.values[axis.type][0], values[axis.type][0]];
    const place = (x) => {
      if (typeof x !== "number") return x;
      const step = log && x === first ? bar.steps[0] : x;
      const after = Math.min(Math.max(1, bar.steps.findIndex((one) => one >= step)), bar.steps.length - 1);
      const share = (step - bar.steps[after - 1]) / (bar.steps[after] - bar.steps[after - 1]);
      const count = counts[after - 1] + share * (counts[after] - counts[after - 1]);
      return log && count <= 0 ? zero : count;
    };
    const { range, tickformat, ...rest } = axis;
    const counted = axes[axis.type];
    changed[name] = axis.title?.text ? { ...rest, ...counted, title: { ...axis.title, ...counted.title } } : { ...rest, ...counted, title: undefined };
    if (axis.matches || axis.showticklabels === false) Object.assign(changed[name], { matches: axis.matches, showticklabels: axis.showticklabels });
    moves.set(name.replace("axis", ""), place);
  }
  const moved = (part, ends, of) => {
    const place = moves.get(of ?? "x");
    const found = ends.filter((end) => place && end in part).map((end) => [end, numbersOf(part[end])]);
    return { ...part, ...Object.fromEntries(found.map(([end, x]) => [end, Array.isArray(x) ? x.map(place) : place(x)])) };
  };
  changed.shapes = layout.shapes?.map((shape) => moved(shape, ["x0", "x1"], shape.xref));
  return { data: data.map((trace) => moved(trace, ["x"], trace.xaxis)), layout: changed };
}

// A figure with a smoothed line before each measured curve, which becomes faint.
function smoothed({ data, layout }, window) {
  const half = (window - 1) / 2;
  const mean = (values) => values.map((_, i) => {
    const near = values.slice(Math.max(0, i - half), i + half + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
  const traces = data.flatMap((trace) => {
    const { mode, line } = trace;
    const y = window > 1 && mode === "lines+markers" ? numbersOf(trace.y) : null;
    if (!Array.isArray(y) || y.length < 3 || !y.every(Number.isFinite)) return [trace];
    const behind = { ...trace, opacity: 0.35, line: { ...line, width: 1 } };
    const before = { ...trace, y: mean(y), mode: "lines", showlegend: false, hoverinfo: "skip", hovertemplate: undefined, name: `${trace.name}, smoothed` };
    return [behind, before];
  });
  return { data: traces, layout };
}
