// A button that copies: see copy_button.py.
const THANKS = 1500; // milliseconds for which the button says whether it has copied

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
  button.onclick = async () => {
    button.textContent = await copy(data.text ?? seen(data.figure)).then(() => "Copied", () => "Not copied");
    setTimeout(() => (button.textContent = data.label), THANKS);
  };
}
