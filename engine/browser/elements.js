// The accessible description of an element: role, name, state. Runs in an isolated world. Every
// reported element keeps its number for the lifetime of its document.
(() => {
  const NAME_LIMIT = 300;
  const VALUE_LIMIT = 500;
  const OPTIONS_LIMIT = 50;
  const LEFT_OUT = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "OBJECT", "EMBED"]);
  const TAG_ROLES = {
    BUTTON: "button", SUMMARY: "button", TEXTAREA: "textbox", OPTION: "option", IMG: "image",
    H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading",
    NAV: "navigation", MAIN: "main", FORM: "form", TABLE: "table", TH: "columnheader", TD: "cell",
    UL: "list", OL: "list", LI: "listitem", DIALOG: "dialog", FIELDSET: "group", IFRAME: "frame",
    FRAME: "frame", VIDEO: "video", AUDIO: "audio", PROGRESS: "progressbar", METER: "meter",
    P: "paragraph", TR: "row",
  };
  const INPUT_ROLES = {
    checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button",
    image: "button", range: "slider", number: "spinbutton", search: "searchbox", file: "file",
    color: "color", hidden: "",
  };
  const ACTIVE = new Set([
    "link", "button", "textbox", "searchbox", "spinbutton", "checkbox", "radio", "switch", "slider",
    "combobox", "listbox", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio",
    "treeitem", "file", "color", "clickable",
  ]);
  const FROM_CONTENT = new Set([
    ...ACTIVE, "heading", "cell", "columnheader", "rowheader", "listitem", "paragraph", "row",
    "tooltip", "gridcell", "alert", "status",
  ]);
  const TYPED = new Set(["textbox", "searchbox", "spinbutton", "slider", "color", "combobox"]);
  const SECRET_FILL = /^(current-password|new-password|one-time-code|cc-[a-z-]+)$/;
  const SECRET_NAME = new RegExp(
    "passw|passcode|passphrase|kennwort|secret|token|api.?key|credential|authorization|card.?number"
    + "|security.?code|credit.?card|account.?number|\\b(pin|pwd|cvv|cvc|csc|otp|totp|mfa|ssn|iban|pan)\\b", "i");

  const level = (text, limit) => text.replace(/\s+/g, " ").trim().slice(0, limit).toWellFormed();

  // Properties are read by the getters of their prototypes, because the fields of a form shadow its
  // own properties.
  const reader = (owner, name) => {
    const { get } = Object.getOwnPropertyDescriptor(owner.prototype, name);
    return (node) => get.call(node);
  };
  const nodeType = reader(Node, "nodeType");
  const parentNode = reader(Node, "parentNode");
  const childNodes = reader(Node, "childNodes");
  const shadowRoot = reader(Element, "shadowRoot");
  const assignedSlot = reader(Element, "assignedSlot");
  const namespace = reader(Element, "namespaceURI");
  const localName = reader(Element, "localName");
  const tagName = reader(Element, "tagName");
  const matches = (element, selector) => Element.prototype.matches.call(element, selector);
  const closest = (element, selector) => Element.prototype.closest.call(element, selector);

  const isText = (node) => nodeType(node) === 3;
  const isElement = (node) => nodeType(node) === 1;
  // In capitals for every element of HTML; an XHTML document gives them in small letters.
  const tagOf = (element) => {
    const tag = tagName(element);
    const isXhtml = tag >= "a" && namespace(element) === "http://www.w3.org/1999/xhtml";
    return isXhtml ? localName(element).toUpperCase() : tag;
  };

  // The tree as displayed: a slotted element is in its slot, a shadow root in its host.
  const parentOf = (node) => {
    if (nodeType(node) === 11) return node.host ?? null;
    return (isElement(node) ? assignedSlot(node) : null) ?? parentNode(node);
  };
  const aboveOf = (element) => {
    const parent = parentOf(element);
    return !parent || isElement(parent) ? parent : parentOf(parent);
  };

  const inner = (frame) => {
    try {
      return frame.contentDocument;
    } catch {
      return null;
    }
  };

  // The tree as displayed: open shadow roots and their slotted content, without frames.
  const childrenOf = (node) => {
    const root = shadowRoot(node);
    if (root) return root.childNodes;
    const tag = tagOf(node);
    if (tag === "DETAILS" && !node.open) return node.querySelectorAll(":scope > summary");
    if (tag === "SLOT") {
      const assigned = node.assignedNodes({ flatten: true });
      return assigned.length ? assigned : node.childNodes;
    }
    return childNodes(node);
  };

  // An element with `display: contents` has no box, and counts as invisible; its content has boxes.
  const isBoxless = (element) => getComputedStyle(element).display === "contents";
  const shown = (element) => element.checkVisibility() || isBoxless(element);
  const seen = (element) => element.checkVisibility({ visibilityProperty: true })
    || (isBoxless(element) && getComputedStyle(element).visibility === "visible");
  const isFrame = (element) => {
    const tag = tagOf(element);
    return tag === "IFRAME" || tag === "FRAME";
  };
  const muted = (element) => element.getAttribute("aria-hidden") === "true";

  const textOf = (node, limit, depth = 0) => {
    if (isText(node)) return node.data;
    if (!isElement(node) || depth > 100) return "";
    const tag = tagOf(node);
    if (LEFT_OUT.has(tag) || !shown(node) || muted(node)) return "";
    if (tag === "IMG") return ` ${node.alt} `;
    const spoken = node.getAttribute("aria-label");
    if (spoken && depth) return ` ${spoken} `;
    if (tag === "INPUT" || tag === "SELECT" || tag === "TEXTAREA") return "";
    let text = "";
    for (const child of childrenOf(node)) {
      text += textOf(child, limit, depth + 1);
      if (text.length > limit * 4) break;
    }
    return /^(inline|contents)/.test(getComputedStyle(node).display) ? text : ` ${text} `;
  };

  const roleOf = (element) => {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();
    if (given && given !== "none" && given !== "presentation") return given === "img" ? "image" : given;
    const tag = tagOf(element);
    if (tag === "INPUT") return INPUT_ROLES[element.type] ?? (element.list ? "combobox" : "textbox");
    if (tag === "A" || tag === "AREA") return element.hasAttribute("href") ? "link" : clickable(element);
    if (tag === "SELECT") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    const above = aboveOf(element);
    if (tag === "SUMMARY" && !(above && tagOf(above) === "DETAILS")) return "";
    if (element.isContentEditable && !above?.isContentEditable) return "textbox";
    if (tag in TAG_ROLES) return TAG_ROLES[tag];
    if (tag.toLowerCase() === "svg") return element.querySelector(":scope > title") ? "image" : "";
    return clickable(element);
  };

  // Event listeners cannot be listed; these signs of clickability are visible to people too.
  const clickable = (element) => {
    if (["LABEL", "BODY", "HTML"].includes(tagOf(element))) return "";
    if (element.hasAttribute("onclick") || element.tabIndex >= 0 && element.hasAttribute("tabindex")) {
      return "clickable";
    }
    const hand = (one) => one && getComputedStyle(one).cursor === "pointer";
    return hand(element) && !hand(aboveOf(element)) && !closest(element, "a, button, label")
      ? "clickable" : "";
  };

  const spokenBy = (element) => {
    const root = element.getRootNode();
    const ids = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean);
    const texts = ids.map((id) => root.getElementById?.(id)).filter(Boolean);
    return texts.map((one) => textOf(one, NAME_LIMIT) || one.textContent).join(" ");
  };

  // A form has none, but may have a field of this name.
  const labelsOf = (element) => (tagOf(element) === "FORM" ? [] : [...(element.labels ?? [])]);

  const nameOf = (element, role) => {
    const tag = tagOf(element);
    const from = [
      () => spokenBy(element),
      () => element.getAttribute("aria-label"),
      () => labelsOf(element).map((label) => textOf(label, NAME_LIMIT)).join(" "),
      () => (tag === "IMG" || element.type === "image" ? element.alt : ""),
      () => (role === "button" && tag === "INPUT" ? element.value || element.type : ""),
      () => (tag === "FIELDSET" ? textOf(element.querySelector("legend") || element, 100) : ""),
      () => (tag === "TABLE" && element.caption ? textOf(element.caption, NAME_LIMIT) : ""),
      () => (role === "image" ? element.querySelector?.(":scope > title")?.textContent : ""),
      () => (role === "option" ? element.label : ""),
      () => (FROM_CONTENT.has(role) && !isSecret(element) && !TYPED.has(role) ? textOf(element, NAME_LIMIT) : ""),
      () => element.getAttribute("title"),
      () => element.getAttribute("placeholder"),
      () => (TYPED.has(role) || role === "frame" ? element.getAttribute("name") : ""),
    ];
    for (const ask of from) {
      const name = level(ask() || "", NAME_LIMIT);
      if (name) return name;
    }
    return "";
  };

  // A secret stays one: pages reveal a password by changing its field's type.
  const secrets = new WeakSet();
  const isSecret = (element) => {
    const tag = tagOf(element);
    if (tag !== "INPUT" && tag !== "TEXTAREA") return false;
    if (secrets.has(element)) return true;
    const fill = (element.getAttribute("autocomplete") || "").toLowerCase().split(/\s+/);
    const told = ["name", "id", "aria-label", "placeholder"].map((key) => element.getAttribute(key));
    const labels = labelsOf(element).map((label) => label.textContent);
    const words = [...told, ...labels].filter(Boolean).join(" ").slice(0, 1000);
    const plain = words.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ");
    const secret = element.type === "password" || fill.some((one) => SECRET_FILL.test(one))
      || (!INPUT_ROLES[element.type] && SECRET_NAME.test(plain));
    if (secret) secrets.add(element);
    return secret;
  };

  const focused = () => {
    let one = document.activeElement;
    while (one) {
      const next = one.shadowRoot?.activeElement || (isFrame(one) && inner(one)?.activeElement);
      if (!next) return one;
      one = next;
    }
    return null;
  };

  const SAID = {
    "aria-expanded": { true: "expanded", false: "collapsed" },
    "aria-pressed": { true: "pressed", false: "not pressed", mixed: "mixed" },
    "aria-selected": { true: "selected" },
    "aria-invalid": { true: "invalid", spelling: "invalid", grammar: "invalid" },
  };
  const CHECKED = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
  const isOff = (element) => matches(element, ":disabled") || element.getAttribute("aria-disabled") === "true";
  const isFixed = (element) => element.readOnly === true || element.getAttribute("aria-readonly") === "true";

  const isChecked = (element) => {
    if (tagOf(element) === "INPUT") return element.indeterminate ? "mixed" : element.checked;
    const told = element.getAttribute("aria-checked");
    return told === "mixed" ? told : told === "true";
  };

  const statesOf = (element, role) => {
    const tag = tagOf(element);
    const states = [];
    if (CHECKED.has(role)) states.push({ true: "checked", false: "not checked", mixed: "mixed" }[isChecked(element)]);
    for (const [key, words] of Object.entries(SAID)) {
      const word = words[element.getAttribute(key)];
      if (word) states.push(word);
    }
    if (tag === "SUMMARY") states.push(element.parentNode.open ? "expanded" : "collapsed");
    if (tag === "OPTION" && element.selected) states.push("selected");
    const current = element.getAttribute("aria-current");
    if (current && current !== "false") states.push("current");
    if (isOff(element)) states.push("disabled");
    if (isFixed(element)) states.push("read-only");
    if (element.required === true || element.getAttribute("aria-required") === "true") states.push("required");
    if (element === focused()) states.push("focused");
    return states;
  };

  const valueOf = (element, role) => {
    const tag = tagOf(element);
    if (tag === "SELECT") return [...element.selectedOptions].map((one) => one.label).join(", ");
    if (role === "progressbar" || role === "meter") return String(element.value ?? "");
    if (tag === "INPUT" && CHECKED.has(role)) return "";
    if (role === "button") return "";
    if (tag === "INPUT" || tag === "TEXTAREA") return element.value;
    if (element.isContentEditable && role === "textbox") return element.innerText;
    return element.getAttribute("aria-valuetext") || element.getAttribute("aria-valuenow") || "";
  };

  const web = (address) => {
    try {
      const url = new URL(address, document.baseURI);
      url.username = url.password = "";
      return url.href.slice(0, 2048);
    } catch {
      return "";
    }
  };

  // number -> element, weakly: it must not keep elements that the page removed.
  const numbers = new WeakMap();
  const elements = new Map();
  let next = 0;
  const numberOf = (element) => {
    let number = numbers.get(element);
    if (!number) {
      number = next;
      next += 1;
      numbers.set(element, number);
      elements.set(number, new WeakRef(element));
    }
    return number;
  };
  const elementOf = (number) => {
    const element = elements.get(number)?.deref();
    return element?.isConnected && element.ownerDocument.defaultView ? element : null;
  };

  const describe = (element, role, number) => {
    const tag = tagOf(element);
    const secret = isSecret(element);
    const value = valueOf(element, role);
    const told = { ref: number, role, name: nameOf(element, role), states: statesOf(element, role) };
    if (secret) told.secret = value.length > 0;
    else if (value) told.value = level(value, VALUE_LIMIT);
    if (role === "heading") told.level = Number(element.getAttribute("aria-level") || tag[1]) || 2;
    if (role === "link" && element.href) told.href = web(String(element.href.baseVal ?? element.href));
    if (tag === "INPUT" && role === "textbox" && element.type !== "text") told.type = element.type;
    if (tag === "SELECT") {
      told.options = [...element.options].slice(0, OPTIONS_LIMIT).map((one) => level(one.label, 100));
    }
    return told;
  };

  return {
    ACTIVE, LEFT_OUT, TYPED, level, isText, isElement, tagOf, closest, shadowRoot, parentOf, aboveOf, childrenOf,
    inner, isFrame, isBoxless, shown, seen, muted, textOf, roleOf, nameOf, labelsOf, isSecret, isOff, isFixed,
    isChecked, focused, numberOf, elementOf, describe, statesOf,
    start: (first) => { next = Math.max(next, first); }, following: () => next,
  };
})
