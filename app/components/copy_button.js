// A button that copies: see copy_button.py.

// The address of what is seen: while time plays, the step is ahead of the address bar.
function seen(figure) {
  const link = new URL(location.href);
  if (window.embryoStep !== undefined) link.searchParams.set("step", window.embryoStep);
  if (!figure) return link.href;
  link.searchParams.set("figure", figure);
  link.searchParams.set("embed", "true"); // Streamlit's own, without its menus
  return frameOf(link.href, figure);
}

export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = () => copyBy(button, data.text ?? seen(data.figure), data.label);
}
