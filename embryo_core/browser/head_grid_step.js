// Stores the maps of all heads at a step that the grid of the same name lacks, in the window, where the grid finds them.

export default function ({ data }) {
  const { header, body } = unpack(data);
  (window.embryoMaps ??= {})[header.name] = header.step === null ? null : { ...header, body };
  window.dispatchEvent(new CustomEvent("embryo:maps", { detail: header.name }));
}
