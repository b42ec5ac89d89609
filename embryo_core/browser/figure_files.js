// Saves a chart or maps as SVG or PNG, laid out for paper: see figure_files.py. Plotly is not reachable by name inside
// Streamlit, but the camera in a chart's own mode bar is: it draws the chart as it is at that moment. Maps get an event.
const DOTS = { svg: 96, png: 300 }; // per inch
const THANKS = 2500; // milliseconds for which it says that the caption was copied

// The chart as drawn on paper: its visible curves, the reader's zoom, the columns `kept` of a heat map of words that is
// too wide, and the names `long` in a legend of their own.
function forPaper(plot, layout, kept, long) {
  const shown = structuredClone(layout);
  for (const axis of Object.keys(shown).filter((name) => /^[xy]axis\d*$/.test(name))) {
    const { range, autorange } = plot.layout[axis] ?? {};
    if (range && !autorange && !(kept && axis === "xaxis")) Object.assign(shown[axis], { range, autorange: false });
  }
  const placed = (trace) => (long.includes(trace.name) ? { ...trace, legend: "legend2" } : trace);
  // Invisible points only receive clicks.
  const data = plot.data.flatMap((trace, i) => {
    if (trace.marker?.opacity === 0) return [];
    return trace.type === "heatmap" ? lettered(only(trace, plot._fullData[i], kept), layout.width) : placed(trace);
  });
  return { data, layout: shown };
}

// A heat map of words with only the columns `kept`; `read` is the same map as Plotly has parsed it.
function only(map, read, kept) {
  if (!kept || map.meta !== "words") return map;
  const at = kept.map((column) => read.x.indexOf(column));
  const [z, text] = [read.z, map.text].map((rows) => Array.from(rows, (row) => at.map((i) => row[i])));
  return { ...map, x: [...kept.keys()], z, text };
}

const [LEGIBLE, LETTER, PLOT] = [6.5, 0.58, 0.64]; // pixels; the width of a letter by its height; the plot's share of a figure

// A heat map whose words fit its cells, without words that would be too small to read; its colour bar is drawn beside it,
// because the page's colour bar is not part of the chart.
function lettered({ colorbar, ...map }, width) {
  const { title, tickvals, ticktext } = colorbar;
  const beside = { title: { ...title, text: `${title.text}<br> ` }, tickvals, ticktext, thickness: 8 };
  const trace = { ...map, showscale: true, colorbar: colorbar.orientation === "h" ? beside : colorbar };
  const words = (trace.text ?? []).flat().map((word) => String(word).replace(/<[^>]*>/g, ""));
  const cell = (PLOT * width) / (trace.text?.[0]?.length ?? 1) - 4;
  const size = Math.min(trace.textfont?.size ?? 12, cell / (LETTER * Math.max(1, ...words.map((word) => word.length))));
  return size < LEGIBLE ? { ...trace, texttemplate: "" } : { ...trace, textfont: { ...trace.textfont, size } };
}

// Waits until `save` has found what it saves, since a reader may be quicker than the page; stops if the menu is closed.
async function drawn(save, menu) {
  while (menu.isConnected && !save()) await new Promise(requestAnimationFrame);
}

function saveChart({ chart, name, sizes }, columns, format) {
  const key = chart.replace(/[^a-zA-Z0-9_-]/g, "-"); // as Streamlit makes a class of a key
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const camera = plot?.querySelector('.modebar-btn[data-title^="Download plot"]');
  if (!camera) return false;
  const { inches, layout, kept, long } = sizes[columns];
  const usual = { data: plot.data, layout: plot.layout, options: plot._context.toImageButtonOptions };
  Object.assign(plot, forPaper(plot, layout, kept, long)); // Plotly copies what it draws before the click returns
  plot._context.toImageButtonOptions = {
    format,
    filename: name,
    width: layout.width,
    height: layout.height,
    scale: (inches * DOTS[format]) / layout.width,
  };
  try {
    camera.click();
  } finally {
    Object.assign(plot, { data: usual.data, layout: usual.layout });
    plot._context.toImageButtonOptions = usual.options;
  }
  return true;
}

// The browser saves a file by a click on a link. This click must not bubble, or it would close the menu that shows the
// outcome.
addEventListener(
  "click",
  (event) => event.isTrusted || !event.target.download || event.stopPropagation(),
  { capture: true },
);

function saveMaps({ name, sizes }, columns, format) {
  const { inches, pixels, print } = sizes[columns];
  const detail = { name, format, pixels, print, scale: (inches * DOTS[format]) / pixels };
  return !window.dispatchEvent(new CustomEvent("embryo:save", { detail, cancelable: true }));
}

export default function ({ parentElement, data }) {
  const save = data.chart ? saveChart : saveMaps;
  const find = (selector) => parentElement.querySelector(selector);
  const [size, status] = [find("select"), find("[role=status]")];
  size.value = window.embryoColumns ?? "two"; // what was chosen last, for figures that are drawn from now on
  size.onchange = () => (window.embryoColumns = size.value);
  for (const button of parentElement.querySelectorAll("button")) {
    button.title = `Save this figure as ${button.textContent}; its caption and BibTeX are copied`;
    button.onclick = async () => {
      const copied = copy(data.copied).then(() => "Caption copied", () => "Caption not copied"); // while the click counts
      await drawn(() => save(data, size.value, button.dataset.format), button);
      status.textContent = await copied;
      setTimeout(() => (status.textContent = ""), THANKS);
    };
  }
}
