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
  const isText = (node) => node.nodeType === 3;
  const isElement = (node) => node.nodeType === 1;
  const parentOf = (node) => node.assignedSlot || node.parentNode || node.host || null;

  const inner = (frame) => {
    try {
      return frame.contentDocument;
    } catch {
      return null;
    }
  };

  // The tree as displayed: open shadow roots and their slotted content, without frames.
  const childrenOf = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.tagName === "DETAILS" && !node.open) return node.querySelectorAll(":scope > summary");
    if (node.tagName === "SLOT") {
      const assigned = node.assignedNodes({ flatten: true });
      return assigned.length ? assigned : node.childNodes;
    }
    return node.childNodes;
  };

  const shown = (element) =>
    element.checkVisibility() || getComputedStyle(element).display === "contents";
  const seen = (element) => element.checkVisibility({ visibilityProperty: true });
  const muted = (element) => element.getAttribute("aria-hidden") === "true";

  const textOf = (node, limit, depth = 0) => {
    if (isText(node)) return node.data;
    if (!isElement(node) || depth > 100) return "";
    if (LEFT_OUT.has(node.tagName) || !shown(node) || muted(node)) return "";
    if (node.tagName === "IMG") return ` ${node.alt} `;
    const spoken = node.getAttribute("aria-label");
    if (spoken && depth) return ` ${spoken} `;
    if (node.tagName === "INPUT" || node.tagName === "SELECT" || node.tagName === "TEXTAREA") return "";
    let text = "";
    for (const child of childrenOf(node)) {
      text += textOf(child, limit, depth + 1);
      if (text.length > limit * 4) break;
    }
    return getComputedStyle(node).display.startsWith("inline") ? text : ` ${text} `;
  };

  const roleOf = (element) => {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0].toLowerCase();
    if (given && given !== "none" && given !== "presentation") return given === "img" ? "image" : given;
    const tag = element.tagName;
    if (tag === "INPUT") return INPUT_ROLES[element.type] ?? (element.list ? "combobox" : "textbox");
    if (tag === "A" || tag === "AREA") return element.hasAttribute("href") ? "link" : clickable(element);
    if (tag === "SELECT") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (tag === "SUMMARY" && element.parentNode?.tagName !== "DETAILS") return "";
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
    if (tag in TAG_ROLES) return TAG_ROLES[tag];
    if (tag.toLowerCase() === "svg") return element.querySelector(":scope > title") ? "image" : "";
    return clickable(element);
  };

  // Event listeners cannot be listed; these signs of clickability are visible to people too.
  const clickable = (element) => {
    if (element.tagName === "LABEL" || element.tagName === "BODY" || element.tagName === "HTML") return "";
    if (element.hasAttribute("onclick") || element.tabIndex >= 0 && element.hasAttribute("tabindex")) {
      return "clickable";
    }
    const hand = (one) => one && getComputedStyle(one).cursor === "pointer";
    return hand(element) && !hand(element.parentElement) && !element.closest("a, button, label")
      ? "clickable" : "";
  };

  const spokenBy = (element) => {
    const root = element.getRootNode();
    const ids = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean);
    const texts = ids.map((id) => root.getElementById?.(id)).filter(Boolean);
    return texts.map((one) => textOf(one, NAME_LIMIT) || one.textContent).join(" ");
  };

  const nameOf = (element, role) => {
    const from = [
      () => spokenBy(element),
      () => element.getAttribute("aria-label"),
      () => [...(element.labels || [])].map((label) => textOf(label, NAME_LIMIT)).join(" "),
      () => (element.tagName === "IMG" || element.type === "image" ? element.alt : ""),
      () => (role === "button" && element.tagName === "INPUT" ? element.value || element.type : ""),
      () => (element.tagName === "FIELDSET" ? textOf(element.querySelector("legend") || element, 100) : ""),
      () => (element.tagName === "TABLE" && element.caption ? textOf(element.caption, NAME_LIMIT) : ""),
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
    if (element.tagName !== "INPUT" && element.tagName !== "TEXTAREA") return false;
    if (secrets.has(element)) return true;
    const fill = (element.getAttribute("autocomplete") || "").toLowerCase().split(/\s+/);
    const told = ["name", "id", "aria-label", "placeholder"].map((key) => element.getAttribute(key));
    const labels = [...(element.labels || [])].map((label) => label.textContent);
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
      const next = one.shadowRoot?.activeElement || (one.tagName === "IFRAME" && inner(one)?.activeElement);
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
  const isOff = (element) => element.matches(":disabled") || element.getAttribute("aria-disabled") === "true";
  const isFixed = (element) => element.readOnly === true || element.getAttribute("aria-readonly") === "true";

  const isChecked = (element) => {
    if (element.tagName === "INPUT") return element.indeterminate ? "mixed" : element.checked;
    const told = element.getAttribute("aria-checked");
    return told === "mixed" ? told : told === "true";
  };

  const statesOf = (element, role) => {
    const states = [];
    if (CHECKED.has(role)) states.push({ true: "checked", false: "not checked", mixed: "mixed" }[isChecked(element)]);
    for (const [key, words] of Object.entries(SAID)) {
      const word = words[element.getAttribute(key)];
      if (word) states.push(word);
    }
    if (element.tagName === "SUMMARY") states.push(element.parentNode.open ? "expanded" : "collapsed");
    if (element.tagName === "OPTION" && element.selected) states.push("selected");
    const current = element.getAttribute("aria-current");
    if (current && current !== "false") states.push("current");
    if (isOff(element)) states.push("disabled");
    if (isFixed(element)) states.push("read-only");
    if (element.required || element.getAttribute("aria-required") === "true") states.push("required");
    if (element === focused()) states.push("focused");
    return states;
  };

  const valueOf = (element, role) => {
    if (element.tagName === "SELECT") return [...element.selectedOptions].map((one) => one.label).join(", ");
    if (role === "progressbar" || role === "meter") return String(element.value ?? "");
    if (element.tagName === "INPUT" && CHECKED.has(role)) return "";
    if (role === "button") return "";
    if (element.tagName === "INPUT" || element.tagName === "TEXTAREA") return element.value;
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
    const secret = isSecret(element);
    const value = valueOf(element, role);
    const told = { ref: number, role, name: nameOf(element, role), states: statesOf(element, role) };
    if (secret) told.secret = value.length > 0;
    else if (value) told.value = level(value, VALUE_LIMIT);
    if (role === "heading") told.level = Number(element.getAttribute("aria-level") || element.tagName[1]) || 2;
    if (role === "link" && element.href) told.href = web(String(element.href.baseVal ?? element.href));
    if (element.tagName === "INPUT" && role === "textbox" && element.type !== "text") told.type = element.type;
    if (element.tagName === "SELECT") {
      told.options = [...element.options].slice(0, OPTIONS_LIMIT).map((one) => level(one.label, 100));
    }
    return told;
  };

  return {
    ACTIVE, LEFT_OUT, TYPED, level, isText, isElement, parentOf, childrenOf, inner, shown, seen, muted,
    textOf, roleOf, nameOf, isSecret, isOff, isFixed, isChecked, focused, numberOf, elementOf, describe,
    statesOf, start: (first) => { next = Math.max(next, first); }, following: () => next,
  };
})
