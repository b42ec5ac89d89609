// A button that copies: see copy_button.py.
const THANKS = 1500; // milliseconds for which the button says whether it has copied

export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = async () => {
    button.textContent = await copy(data.text ?? location.href).then(() => "Copied", () => "Not copied");
    setTimeout(() => (button.textContent = data.label), THANKS);
  };
}
