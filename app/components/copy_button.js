// A button that copies: see copy_button.py.
const THANKS = 1500; // milliseconds for which the button says that it has copied

// Without a secure context, as on another machine of the local network, only the old way is there.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = async () => {
    await copy(data.text ?? location.href);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = data.label), THANKS);
  };
}
