// A document in a frame of its own. The next one is drawn behind the one that is seen and takes its place when it is there.
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
