// Saves a chart as SVG or PNG: see figure_files.py. Plotly is not reachable by name inside Streamlit, but the camera in a
// chart's own mode bar is: it draws what the chart's context asks for.
const PNG_SCALE = 3; // pixels of the file per pixel of the page

function save(key, format) {
  const name = key.replace(/[^a-zA-Z0-9_-]/g, "-"); // as Streamlit makes a class of a key
  const plot = document.querySelector(`.st-key-${name} .js-plotly-plot`);
  const camera = plot?.querySelector('.modebar-btn[data-title^="Download plot"]');
  if (!camera) return;
  const usual = plot._context.toImageButtonOptions;
  plot._context.toImageButtonOptions = { ...usual, format, scale: format === "png" ? PNG_SCALE : 1 };
  camera.click();
  plot._context.toImageButtonOptions = usual;
}

export default function ({ parentElement, data }) {
  for (const button of parentElement.querySelectorAll("button")) {
    button.title = `Save this figure as ${button.textContent}`;
    button.onclick = () => save(data.figure, button.dataset.format);
  }
}
