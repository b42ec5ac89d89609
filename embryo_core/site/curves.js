// Compute in the browser what a reader chooses for curves: the unit of the axis of steps, and smoothing, except that of
// downsampled curves (parts.py).
"use strict";

const KINDS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };

// Numbers of a trace as an array; Plotly's Python package may have written them as bytes.
function numbersOf(values) {
  const Kind = KINDS[values?.dtype];
  return Kind ? [...new Kind(bytesOf(values.bdata).buffer)] : values;
}

// The time bar of a run, with the places of its steps on an axis that counts `unit`.
function barOf({ run, unit }) {
  const { bar, units } = page.site.runs[run];
  return unit === "step" ? bar : { ...bar, values: units[unit].values };
}

// A figure whose axes of steps count another unit: between two checkpoints in proportion to the step.
function recounted({ data, layout }, { run, unit }) {
  const { bar, units, title, heading } = page.site.runs[run];
  const titleOf = (axis) => axis.title?.text?.replaceAll("<br>", " ") ?? ""; // in files, a long title has two lines
  const isHeading = (text) => text.endsWith(heading); // "peak at step"
  const isTitled = (axis) => titleOf(axis) === title || isHeading(titleOf(axis));
  const ofSteps = (axis) => axis.type && (!titleOf(axis) || isTitled(axis)); // maps have no type, and keep steps
  const named = Object.entries(layout).filter(([name, axis]) => /^xaxis\d*$/.test(name) && ofSteps(axis));
  if (unit === "step" || !named.some(([, axis]) => isTitled(axis))) return { data, layout };
  const { counts, values, axes } = units[unit];
  const changed = { ...layout };
  const moves = new Map();
  for (const [name, axis] of named) {
    const log = axis.type === "log";
    const [first, zero] = [bar.values[axis.type][0], values[axis.type][0]];
    const place = (x) => {
      if (typeof x !== "number") return x;
      const step = log && x === first ? bar.steps[0] : x;
      const next = bar.steps.findIndex((one) => one >= step);
      const after = next < 0 ? bar.steps.length - 1 : Math.max(1, next); // beyond the last: at the last rate
      const share = (step - bar.steps[after - 1]) / (bar.steps[after] - bar.steps[after - 1]);
      const count = counts[after - 1] + share * (counts[after] - counts[after - 1]);
      return log && count <= 0 ? zero : count;
    };
    const { range, tickformat, ...rest } = axis;
    const counted = axes[axis.type];
    const text = titleOf(axis);
    const inUnit = isHeading(text) ? text.slice(0, -heading.length) + units[unit].heading : counted.title.text;
    changed[name] = { ...rest, ...counted, title: text ? { ...axis.title, ...counted.title, text: inUnit } : axis.title };
    if (axis.matches || axis.showticklabels === false) Object.assign(changed[name], { matches: axis.matches, showticklabels: axis.showticklabels });
    moves.set(name.replace("axis", ""), place);
  }
  const moved = (part, ends, of) => {
    const place = moves.get(of ?? "x");
    const found = ends.filter((end) => place && end in part).map((end) => [end, numbersOf(part[end])]);
    const changes = Object.fromEntries(found.map(([end, x]) => [end, Array.isArray(x) ? x.map(place) : place(x)]));
    for (const [end, sign] of [["array", 1], ["arrayminus", -1]]) {
      if (!place || !part.error_x?.[end]) continue;
      const x = numbersOf(part.x);
      const lengths = numbersOf(part.error_x[end]).map((length, i) => sign * (place(x[i] + sign * length) - place(x[i])));
      changes.error_x = { ...part.error_x, ...changes.error_x, [end]: lengths };
    }
    return { ...part, ...changes };
  };
  changed.shapes = layout.shapes?.map((shape) => moved(shape, ["x0", "x1"], shape.xref));
  return { data: data.map((trace) => moved(trace, ["x"], trace.xaxis)), layout: changed };
}

// A figure with a smoothed line before each measured curve that figures/smoothing.py marked; its own line becomes faint.
function smoothed({ data, layout }, window) {
  const half = (window - 1) / 2;
  const mean = (values) => {
    const measured = values.filter(Number.isFinite); // null: the line breaks there
    const means = measured.map((_, i) => {
      const near = measured.slice(Math.max(0, i - half), i + half + 1);
      return near.reduce((sum, value) => sum + value, 0) / near.length;
    });
    return values.map((value) => (Number.isFinite(value) ? means.shift() : null));
  };
  const traces = data.flatMap((trace) => {
    const { line } = trace;
    if (window === 1 || trace.meta !== "smoothable") return [trace];
    const behind = { ...trace, line: { ...line, color: `${line.color}59`, width: 1 } }; // 35 % opaque
    const before = { ...trace, y: mean(numbersOf(trace.y)), mode: "lines", showlegend: false, hoverinfo: "skip", hovertemplate: undefined, name: `${trace.name}, smoothed` };
    return [behind, before];
  });
  return { data: traces, layout };
}
