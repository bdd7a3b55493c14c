// Names an element so that it is found again: test id, then role and name, then CSS.
// Every name is checked to be the only one of its kind at the moment it is given. Runs in a
// world of its own; what it reads of the page is data.
function describer() {
  const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"];
  const MAX_NAME = 80, MAX_ELEMENTS = 20000, MAX_SAME = 2000, MAX_CSS = 300, MAX_ATTR = 100;
  const INPUT_ROLES = {
    button: "button", submit: "button", reset: "button", image: "button", file: "button",
    checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton",
  };
  const ROLE_SOURCES = {
    button: "button,input[type=button],input[type=submit],input[type=reset],input[type=image],input[type=file]",
    link: "a[href],area[href]",
    checkbox: "input[type=checkbox]",
    radio: "input[type=radio]",
    textbox: "input,textarea,[contenteditable]",
    searchbox: "input[type=search]",
    combobox: "select,input[list]",
    listbox: "select",
    slider: "input[type=range]",
    spinbutton: "input[type=number]",
    option: "option",
    heading: "h1,h2,h3,h4,h5,h6",
  };
  const FROM_CONTENT = new Set(["button", "link", "checkbox", "radio", "tab", "menuitem",
    "menuitemcheckbox", "menuitemradio", "option", "switch", "treeitem", "gridcell", "heading"]);
  const EXPLICIT = new Set([...FROM_CONTENT, "textbox", "searchbox", "combobox", "listbox",
    "slider", "spinbutton"]);
  const FIELDS = "input,select,textarea";
  const LABELLED = /^(INPUT|SELECT|TEXTAREA)$/;
  const MADE_UP = [
    /\d{3,}/, /^[0-9a-f-]{8,}$/i, /[0-9a-f]{8,}/i, /:/, /\d.*[a-z].*\d/i,
    /^(ember|radix|headlessui|mui|ext-gen|gwt|yui|react|__|css-|sc-|jss|emotion|svelte-|chakra-)/i,
    /[a-z][A-Z][a-z]?[A-Z0-9]|[A-Z]{2}[a-z][A-Z]/,
  ];

  let roots = null;  // the document and its open shadow trees, for one description

  function shadowTrees() {
    if (roots) return roots;
    roots = [document];
    for (let at = 0; at < roots.length; at++) {
      const all = roots[at].querySelectorAll("*");
      for (let n = 0; n < all.length && n < MAX_ELEMENTS; n++) {
        if (all[n].shadowRoot) roots.push(all[n].shadowRoot);
      }
    }
    return roots;
  }

  function found(css, most) {
    const all = [];
    for (const root of shadowTrees()) {
      for (const element of root.querySelectorAll(css)) {
        all.push(element);
        if (all.length > most) return all;
      }
    }
    return all;
  }

  function only(css, element) {
    if (css.length > MAX_CSS) return false;
    try {
      const all = found(css, 1);
      return all.length === 1 && all[0] === element;
    } catch {
      return false;  // what made a bad selector of it is the page's own doing
    }
  }

  const quoted = (text) => '"' + text.replace(/["\\]/g, "\\$&") + '"';
  const plain = (text) => text.replace(/[\s\u00a0\u200b]+/g, " ").trim();
  const isMadeUp = (text) => MADE_UP.some((sign) => sign.test(text));

  function attribute(element, name) {
    const value = element.getAttribute(name);
    return value && value.length <= MAX_ATTR && !/[\n\r\0]/.test(value) ? value : null;
  }

  function testId(element) {
    for (const name of TEST_IDS) {
      const value = attribute(element, name);
      if (value && !isMadeUp(value.replace(/\d{1,6}$/, ""))) return `[${name}=${quoted(value)}]`;
    }
    return null;
  }

  function roleOf(element) {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0];
    if (given) return EXPLICIT.has(given) ? given : null;
    const type = (element.type || "").toLowerCase();
    switch (element.localName) {
      case "button": return "button";
      case "a": case "area": return element.hasAttribute("href") ? "link" : null;
      case "textarea": return "textbox";
      case "select": return element.multiple || element.size > 1 ? "listbox" : "combobox";
      case "option": return "option";
      case "h1": case "h2": case "h3": case "h4": case "h5": case "h6": return "heading";
      case "input":
        if (type === "hidden") return null;
        if (INPUT_ROLES[type]) return INPUT_ROLES[type];
        if (element.hasAttribute("list")) return "combobox";
        return type === "search" ? "searchbox" : "textbox";
    }
    return element.isContentEditable && element.hasAttribute("contenteditable") ? "textbox" : null;
  }

  // What a reader would hear, or null where that is not certain (a wrong name finds nothing).
  function wordsIn(node, skip) {
    if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
    if (node.nodeType !== Node.ELEMENT_NODE || node === skip) return "";
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility !== "visible") return "";
    if (node.getAttribute("aria-hidden") === "true") return "";
    if (node.matches(FIELDS) || node.localName === "slot" || node.shadowRoot) return null;
    if (node.hasAttribute("aria-labelledby")) return null;
    const label = plain(node.getAttribute("aria-label") || "");
    if (label) return ` ${label} `;
    if (node.localName === "img") return node.getAttribute("alt") || "";
    if (node.localName === "svg") return node.querySelector("title,text") ? null : "";
    return contentOf(node, skip, style.display);
  }

  function contentOf(element, skip, display) {
    for (const side of ["::before", "::after"]) {
      const content = getComputedStyle(element, side).content;
      if (content !== "none" && content !== "normal" && content !== '""') return null;
    }
    let words = "";
    for (const child of element.childNodes) {
      const part = wordsIn(child, skip);
      if (part === null) return null;
      words += part;
    }
    return display.startsWith("inline") || display === "contents" ? words : ` ${words} `;
  }

  function nameOf(element, role) {
    if (element.hasAttribute("aria-labelledby")) {
      const ids = element.getAttribute("aria-labelledby").trim().split(/\s+/);
      const parts = ids.map((id) => element.getRootNode().getElementById?.(id));
      if (parts.some((part) => !part)) return null;
      const words = parts.map((part) => wordsIn(part, null));
      return words.includes(null) ? null : plain(words.join(" "));
    }
    const own = plain(element.getAttribute("aria-label") || "");
    if (own) return own;
    return plain(nativeName(element, role) ?? "") || null;
  }

  function nativeName(element, role) {
    const type = (element.type || "").toLowerCase();
    if (element.localName === "input" && ["button", "submit", "reset"].includes(type)) {
      return element.value || { submit: "Submit", reset: "Reset" }[type];
    }
    if (element.localName === "input" && type === "image") return element.getAttribute("alt");
    if (LABELLED.test(element.tagName) && element.labels?.length) {
      const words = [...element.labels].map((label) => wordsIn(label, element));
      return words.includes(null) ? null : words.join(" ");
    }
    if (FROM_CONTENT.has(role) && !LABELLED.test(element.tagName)) {
      const words = contentOf(element, null, "inline");
      if (words === null || plain(words)) return words;
    }
    return element.getAttribute("title") || element.getAttribute("placeholder");
  }

  function byRole(element) {
    const role = roleOf(element);
    const name = role && nameOf(element, role);
    if (!name || name.length > MAX_NAME || /\d{4,}/.test(name)) return { role, name, selector: null };
    const like = [ROLE_SOURCES[role], `[role=${role}]`].filter(Boolean).join(",");
    const all = found(like, MAX_SAME);
    const same = (other) => {
      if (roleOf(other) !== role) return false;
      const theirs = nameOf(other, role);
      return theirs === null ? (other.textContent || "").includes(name) : theirs === name;
    };
    const sure = all.length <= MAX_SAME && all.every((other) => other === element || !same(other));
    return { role, name, selector: sure ? `role=${role}[name=${quoted(name)}]` : null };
  }

  function* ownCss(element) {
    const tag = CSS.escape(element.localName);
    const test = testId(element);
    if (test) yield test;
    const id = attribute(element, "id");
    if (id && !isMadeUp(id)) yield `#${CSS.escape(id)}`;
    const name = attribute(element, "name");
    if (name && !isMadeUp(name)) {
      yield `${tag}[name=${quoted(name)}]`;
      const value = ["radio", "checkbox"].includes(element.type) && attribute(element, "value");
      if (value) yield `${tag}[name=${quoted(name)}][value=${quoted(value)}]`;
    }
    for (const key of ["aria-label", "placeholder", "for", "title", "alt", "href", "type"]) {
      const value = attribute(element, key);
      if (value && (key !== "href" || !/[?#]/.test(value))) yield `${tag}[${key}=${quoted(value)}]`;
    }
    const classes = [...element.classList].filter((one) => !isMadeUp(one)).slice(0, 4);
    for (const one of classes) yield `${tag}.${CSS.escape(one)}`;
    if (classes.length > 1) yield `${tag}.${classes.map((one) => CSS.escape(one)).join(".")}`;
  }

  function position(element) {
    const tag = CSS.escape(element.localName);
    const siblings = [...(element.parentNode?.children ?? [])]
      .filter((other) => other.localName === element.localName);
    return siblings.length > 1 ? `${tag}:nth-of-type(${siblings.indexOf(element) + 1})` : tag;
  }

  function cssOf(element) {
    for (const css of ownCss(element)) if (only(css, element)) return css;
    let path = position(element);
    for (let above = element.parentElement; above; above = above.parentElement) {
      if (only(path, element)) return path;
      for (const css of ownCss(above)) {
        if (only(css, above) && only(`${css} > ${path}`, element)) return `${css} > ${path}`;
      }
      path = `${position(above)} > ${path}`;
    }
    if (only(path, element)) return path;
    const host = element.getRootNode().host;  // an open shadow tree: name its host first
    if (!host) return path;
    const outer = cssOf(host);
    return outer && onlyInside(host, path, element) ? `${outer} ${path}` : null;
  }

  // As Playwright reads it: a blank between two steps goes through shadow trees, too.
  function onlyInside(host, css, element) {
    const isInside = (root) => {
      for (let at = root; at.host; at = at.host.getRootNode()) if (at.host === host) return true;
      return false;
    };
    const all = [...host.querySelectorAll(css)];
    for (const root of shadowTrees().filter(isInside)) all.push(...root.querySelectorAll(css));
    return all.length === 1 && all[0] === element;
  }

  // Only tags and places: nothing of it can repeat what somebody typed.
  function pathOf(element) {
    const parts = [];
    for (let at = element; at && at !== document.documentElement; at = at.parentElement) {
      parts.unshift(position(at));
    }
    const path = parts.join(" > ");
    return element.getRootNode() === document && only(path, element) ? path : null;
  }

  function frames() {
    const path = [];
    try {
      for (let here = window; here !== here.top; here = here.parent) {
        if (!here.frameElement) return null;
        path.unshift(frameCss(here.frameElement));
      }
    } catch {
      return null;  // a frame of another site cannot be named from within
    }
    return path.includes(null) ? null : path;
  }

  function frameCss(frame) {
    const inside = (css) => frame.ownerDocument.querySelectorAll(css).length === 1;
    const own = [...ownCss(frame)].find(inside);
    if (own) return own;
    const at = [...frame.ownerDocument.querySelectorAll("iframe,frame")].indexOf(frame);
    const path = [];
    for (let part = frame; part; part = part.parentElement) path.unshift(position(part));
    return at >= 0 && inside(path.join(" > ")) ? path.join(" > ") : null;
  }

  function describe(element) {
    roots = null;
    const test = testId(element);
    const role = byRole(element);
    const told = {
      tag: element.localName,
      type: (element.type || "").toString().slice(0, 20),
      role: role.role,
      name: role.name && role.name.slice(0, 200),
      testid: test && only(test, element) ? test : null,
      byRole: role.selector,
      css: cssOf(element),
      path: pathOf(element),
      frame: frames(),
      hints: ["name", "id", "autocomplete", "placeholder", "aria-label", ...TEST_IDS]
        .map((key) => (element.getAttribute(key) || "").slice(0, MAX_ATTR)),
    };
    roots = null;
    return told;
  }

  return { describe, roleOf };
}
