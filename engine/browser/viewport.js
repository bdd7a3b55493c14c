// The part of the page visible now, in document order: see docs/commands.md for the format.
(limits) => {
  const width = window.innerWidth, height = window.innerHeight;
  const round = Math.round;
  const KEPT = ["id", "class", "name", "type", "href", "src", "alt", "title", "role", "value",
    "placeholder", "aria-label", "data-testid", "for"];
  const nodes = [];
  let truncated = false;
  const cut = (text) => {
    const plain = text.replace(/\s+/g, " ").trim();
    return plain.length > limits.text ? plain.slice(0, limits.text - 1) + "…" : plain;
  };
  const shown = (element) => {
    const style = getComputedStyle(element);
    return style.visibility === "visible" && style.opacity !== "0";
  };
  const attributes = (element) => {
    const found = {};
    // A field's content is the visitor's; only a button's label is the page's.
    const says = tagOf(element) === "BUTTON" || ["button", "submit", "reset"].includes(element.type);
    for (const name of KEPT) {
      if (name === "value" && !says) continue;
      const value = element.getAttribute(name);
      if (value) found[name] = cut(value);
    }
    return found;
  };
  const state = (element) => {
    const found = {};
    if (element.disabled) found.disabled = true;
    if (element.checked) found.checked = true;
    if (element === document.activeElement && element !== document.body) found.focused = true;
    return found;
  };
  const tagOf = (element) => element.tagName.toUpperCase(); // XHTML has small letters
  const isClosed = (element) => tagOf(element) === "DETAILS" && !element.open;
  // As displayed: a slot has the elements assigned to it, a closed <details> its summary only.
  // Not by `children`, which a field of a form may shadow, or `Node`, which a page may declare.
  const childrenOf = (element) => {
    const assigned = tagOf(element) === "SLOT" ? element.assignedElements() : [];
    if (assigned.length) return assigned;
    const nodes = (element.shadowRoot || element).childNodes;
    const children = [...nodes].filter((node) => node.nodeType === 1);
    return isClosed(element) ? children.filter((one) => tagOf(one) === "SUMMARY").slice(0, 1) : children;
  };
  const wordsOf = (element) => {
    if (isClosed(element)) return "";
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3);
    return texts.map((text) => text.data).join("");
  };
  const visit = (element, depth) => {
    if (nodes.length >= limits.nodes) { truncated = true; return; }
    const box = element.getBoundingClientRect();
    const inside = box.bottom > 0 && box.right > 0 && box.top < height && box.left < width;
    let below = depth;
    const dull = ["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD"].includes(tagOf(element));
    if (dull) return;
    if (inside && box.width > 0 && box.height > 0 && shown(element)) {
      const text = tagOf(element) === "TEXTAREA" ? "" : cut(wordsOf(element));
      const node = { tag: element.tagName.toLowerCase(), depth,
        rect: [round(box.left), round(box.top), round(box.width), round(box.height)] };
      if (text) node.text = text;
      const kept = attributes(element);
      if (Object.keys(kept).length) node.attributes = kept;
      nodes.push(Object.assign(node, state(element)));
      below = depth + 1;
    }
    if (below > limits.depth) { truncated = true; return; }
    for (const child of childrenOf(element)) visit(child, below);
  };
  if (document.body) visit(document.body, 0);
  return {
    url: location.href,
    title: cut(document.title),
    viewport: { width, height, scroll_x: round(window.scrollX), scroll_y: round(window.scrollY),
      page_width: document.documentElement.scrollWidth,
      page_height: document.documentElement.scrollHeight },
    nodes,
    truncated,
  };
}
