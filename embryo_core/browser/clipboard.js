// navigator.clipboard needs a secure context; on another machine of the local network only execCommand works.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// Copies a text by a click on a button, which says for a while whether it has copied.
async function copyBy(button, text, label) {
  button.textContent = await copy(text).then(() => "Copied", () => "Not copied");
  setTimeout(() => (button.textContent = label), 1500);
}

// The markup that shows an address in a page of somebody else.
function frameOf(address, title) {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: address, title, width: "100%", height: "640" });
  frame.style.border = "0";
  return frame.outerHTML;
}
