// A document in its own frame. The next one is drawn behind the visible one and replaces it once it has loaded.
export default function ({ parentElement, data }) {
  const host = parentElement.querySelector(".frames");
  const { html, height, title } = data;
  if (host.shown === html) return;
  host.shown = html;
  const next = document.createElement("iframe");
  next.sandbox = "allow-scripts allow-same-origin"; // the latter for what a document keeps from one to the next
  next.srcdoc = html;
  next.style.height = `${height}px`;
  next.className = "coming";
  next.onload = () => {
    while (next.previousElementSibling) next.previousElementSibling.remove();
    next.className = "";
    next.title = title;
  };
  host.append(next);
}
