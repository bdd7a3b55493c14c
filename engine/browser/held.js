// Describe a field that is being typed into: where the focus is, and what the fields from it on hold.
((node) => {
  const field = node.tagName === "LABEL" && node.control || node;
  const isBox = (one) => one.tagName === "INPUT" && (one.maxLength === 1 || one.size === 1);
  const TEXTS = new Set(["text", "search", "url", "tel", "email", "password", "number"]);

  let active = field.ownerDocument.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  const isHere = active === field || field.contains(active)
    || (active?.isContentEditable && active.contains(field));
  let focus = isHere ? "here" : active && isBox(active) ? "box" : "away";
  if (!field.ownerDocument.hasFocus()) focus = "away"; // in another frame
  if (!field.isConnected) focus = "gone";

  const inputs = [...field.getRootNode().querySelectorAll("input")];
  const next = inputs.slice(inputs.indexOf(field)).filter((one) => TEXTS.has(one.type)).slice(0, 100);
  const hasValue = field.tagName === "TEXTAREA" || field.tagName === "INPUT";
  return {
    focus,
    kind: hasValue ? "value" : field.isContentEditable ? "text" : "none",
    secret: field.type === "password",
    text: hasValue ? field.value : field.isContentEditable ? field.innerText : "",
    spread: inputs.includes(field) ? next.map((one) => one.value).join("") : "",
  };
})
