// Make selectors for an element: test id, role and name, text of the nearest item, stable CSS,
// number among similar elements, position. Each is the only match when it is made, and none
// contains a generated id or a state. Runs in an isolated world; all page content is only data.
function describer() {
  const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"];
  const MAX_NAME = 80, MAX_ELEMENTS = 20000, MAX_SAME = 2000, MAX_CSS = 300, MAX_ATTR = 100;
  const MAX_TEXT = 60, MAX_ITEMS = 3, MAX_TRIES = 6, MAX_RUNS = 300, MAX_STEPS = 25;
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
    columnheader: "th",
    rowheader: "th",
    cell: "td,th",
    gridcell: "td,th",
    row: "tr",
  };
  // The role of such an element depends on its ancestors.
  const UNCERTAIN = "th,td,tr";
  const FROM_CONTENT = new Set(["button", "link", "checkbox", "radio", "tab", "menuitem",
    "menuitemcheckbox", "menuitemradio", "option", "switch", "treeitem", "gridcell", "heading",
    "columnheader", "rowheader", "cell", "row", "tooltip"]);
  const EXPLICIT = new Set([...FROM_CONTENT, "textbox", "searchbox", "combobox", "listbox",
    "slider", "spinbutton"]);
  const FIELDS = "input,select,textarea";
  const LABELLED = /^(INPUT|SELECT|TEXTAREA)$/;
  const GENERATED = [
    /\d{3,}/, /^[0-9a-f-]{8,}$/i, /[0-9a-f]{8,}/i, /[^\w\-. ]/, /\d.*[a-z].*\d/i,
    /^(ember|radix|headlessui|mui|ext-gen|gwt|yui|react|__|css-|sc-|jss|emotion|svelte-|chakra-)/i,
    /^(rc[-_]|el-id|cdk-|mat-|ng-|ui-id-|v-\d|bits-|melt-|reach-|downshift|select2-|j_id|isc_)/i,
    /^(_r_|jsx-|tss-|makeStyles-|tippy-|popper|floating-ui|field-?:|uid|guid|uuid)/i,
    /[a-z][A-Z][a-z]?[A-Z0-9]|[A-Z]{2}[a-z][A-Z]/,
    /^_.+_[a-z0-9+]{5,}(_\d+)?$/i, /__(?=[A-Za-z0-9+]*[0-9A-Z+])[A-Za-z0-9+]{5}$/,
  ];
  // Words in classes that express an element's state instead of its identity.
  const STATES = new Set(`active inactive selected unselected checked unchecked indeterminate
    disabled enabled open opened closed close expanded collapsed collapsing collapse show shown
    showing hide hidden hiding visible invisible current focus focused focusable hover hovered
    pressed completed complete done editing edited loading loaded busy pending error invalid valid
    dirty pristine touched untouched dragging dragged dragover sortable-chosen sortable-ghost
    blank empty filled fade in out on off leave enter entering leaving entered exited animated
    animating transition first last odd even highlighted highlight previous next prev sorted
    asc desc sorting waiting ready running stopped playing paused is has was not`.split(/\s+/));
  const ITEMS = new Set(["li", "tr", "article"]);
  const ITEM_ROLES = new Set(["listitem", "row", "option", "treeitem", "article", "gridcell"]);
  const CONTAINERS = { dialog: "dialog", fieldset: "group", nav: "navigation", form: "form",
    section: "region", table: "table", main: "main" };
  const CONTAINER_ROLES = new Set([...Object.values(CONTAINERS), "alertdialog", "toolbar", "menu",
    "tablist", "tabpanel", "list", "grid", "tree", "radiogroup", "search", "listbox"]);

  let roots = null;  // the document and its open shadow trees, for one description
  let named = new Map();  // role -> the elements that have it, with their names, for one description

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
      return false;  // a page that breaks selectors gets none
    }
  }

  const quoted = (text) => '"' + text.replace(/["\\]/g, "\\$&") + '"';
  const plain = (text) => text.replace(/[\s\u00a0\u200b]+/g, " ").trim();
  const isGenerated = (text) => GENERATED.some((sign) => sign.test(text)) || isScrambled(text);
  // The fields of a form shadow its own properties, so those are read from the prototypes.
  const ofNode = (name, node) => Reflect.get(Node.prototype, name, node);
  const matches = (element, css) => Element.prototype.matches.call(element, css);
  const parentOf = (element) => ofNode("parentElement", element);
  const typeOf = (element) => (typeof element.type === "string" ? element.type.toLowerCase() : "");
  const above = (element) => parentOf(element) ?? element.getRootNode().host ?? null;
  const siblingsOf = (element) => {
    const parent = ofNode("parentNode", element);
    return parent ? [...ofNode("childNodes", parent)].filter((one) => ofNode("nodeType", one) === 1) : [];
  };

  // As in Playwright's recorder: a mix of letters, capitals and digits is generated.
  function isScrambled(text) {
    let last = "", changes = 0;
    for (const sign of text) {
      if (sign === "-" || sign === "_") continue;
      const sort = /[a-z]/.test(sign) ? "a" : /[A-Z]/.test(sign) ? "A" : /\d/.test(sign) ? "0" : "?";
      if (last && last !== sort && !(last === "A" && sort === "a")) changes++;
      last = sort;
    }
    return changes >= text.length / 4 || /(^|[-_])[^aeiouy\d_-]{7,}($|[-_])/i.test(text);
  }

  function isState(name) {
    const words = name.replace(/([a-z\d])([A-Z])/g, "$1-$2").toLowerCase().split(/[-_]+/);
    return STATES.has(name.toLowerCase()) || words.some((word) => STATES.has(word));
  }

  function isExposed(element) {
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    for (let at = element; at; at = above(at)) {
      if (at.getAttribute("aria-hidden") === "true") return false;
    }
    return true;
  }

  function isInside(outer, element) {
    for (let at = element; at; at = above(at)) if (at === outer) return true;
    return false;
  }

  function attribute(element, name) {
    const value = element.getAttribute(name);
    return value && value.length <= MAX_ATTR && !/[\n\r\0]/.test(value) ? value : null;
  }

  function testId(element) {
    for (const name of TEST_IDS) {
      const value = attribute(element, name);
      if (value && !isGenerated(value.replace(/\d{1,6}$/, ""))) return `[${name}=${quoted(value)}]`;
    }
    return null;
  }

  function roleOf(element) {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0];
    if (given) return EXPLICIT.has(given) ? given : null;
    const type = typeOf(element);
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

  // The accessible name, or null if it is uncertain (a wrong name matches nothing).
  function wordsIn(node, skip) {
    if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
    if (node.nodeType !== Node.ELEMENT_NODE || node === skip) return "";
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility !== "visible") return "";
    if (node.getAttribute("aria-hidden") === "true") return "";
    if (matches(node, FIELDS) || node.localName === "slot" || node.shadowRoot) return null;
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
    for (const child of ofNode("childNodes", element)) {
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
    const type = typeOf(element);
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

  // All elements that a selector by this role could match; null if there are too many.
  function ofRole(role) {
    if (!named.has(role)) {
      const all = found([ROLE_SOURCES[role], `[role=${role}]`].filter(Boolean).join(","), MAX_SAME);
      const like = all.filter((one) => roleOf(one) === role || isUncertain(one));
      named.set(role, all.length > MAX_SAME ? null : like.map((one) =>
        ({ element: one, exposed: isExposed(one), name: isUncertain(one) ? null : nameOf(one, role) })));
    }
    return named.get(role);
  }

  const isUncertain = (element) => !element.hasAttribute("role") && matches(element, UNCERTAIN);

  // An uncertain name may be equal.
  function sameName(one, name) {
    return one.name === null ? (one.element.textContent || "").includes(name) : one.name === name;
  }

  function isUsable(name) {
    return name && name.length <= MAX_NAME && !/\d{4,}/.test(name);
  }

  function byRole(element) {
    const role = roleOf(element), name = role && nameOf(element, role);
    if (!isUsable(name) || !isExposed(element)) return { role, name, selector: null };
    const same = ofRole(role)?.filter((one) => one.exposed && sameName(one, name));
    const sure = same?.length === 1 && same[0].element === element;
    return { role, name, selector: sure ? `role=${role}[name=${quoted(name)}]` : null };
  }

  // The number among elements of the same role and name, if that set is certain.
  function byNumber(element, role, name) {
    if (!role || !isExposed(element)) return null;
    const all = ofRole(role)?.filter((one) => one.exposed);
    if (!all || all.some((one) => one.element.getRootNode() !== document)) return null;
    if (all.some((one) => isUncertain(one.element))) return null;
    const usable = isUsable(name);
    if (usable && all.some((one) => one.name === null && sameName(one, name))) return null;
    const same = usable ? all.filter((one) => one.name === name) : all;
    const at = same.findIndex((one) => one.element === element);
    const what = usable ? `role=${role}[name=${quoted(name)}]` : `role=${role}`;
    return at < 0 || same.length < 2 ? null : `${what} >> nth=${at}`;
  }

  // The element's own text between its children, as Playwright reads it.
  function runsOf(element) {
    if (/^(SCRIPT|STYLE|NOSCRIPT|TEXTAREA|OPTION)$/.test(element.tagName)) return [];
    const runs = [];
    let run = "";
    for (const child of ofNode("childNodes", element)) {
      if (child.nodeType === Node.TEXT_NODE) run += child.nodeValue;
      else if (child.nodeType === Node.ELEMENT_NODE) { runs.push(run); run = ""; }
    }
    return [...runs, run].map((one) => one.replace(/[\u200b\u00ad]/g, "").replace(/\s+/g, " ").trim())
      .filter(Boolean);
  }

  function* partsOf(element) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT);
    for (let at = element, n = 0; at && n < MAX_RUNS; at = walker.nextNode(), n++) yield at;
  }

  function hasRun(element, text) {
    if (!element.textContent.includes(text.split(" ")[0])) return false;
    for (const part of partsOf(element)) if (runsOf(part).includes(text)) return true;
    return false;
  }

  const isWords = (text) => text.length > 1 && text.length <= MAX_TEXT && /\p{L}/u.test(text);

  function withText(text) {
    const first = text.split(" ")[0], all = new Set();
    for (const root of shadowTrees()) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const holder = walker.currentNode.parentElement;
        if (!holder || !walker.currentNode.nodeValue.includes(first)) continue;
        if (runsOf(holder).includes(text)) all.add(holder);
      }
    }
    for (const button of found("input[type=button],input[type=submit],input[type=reset]", MAX_SAME)) {
      if (plain(button.value) === text) all.add(button);
    }
    return all;
  }

  function byText(element) {
    if (element.isContentEditable || /^(SELECT|HTML|BODY)$/.test(element.tagName)) return null;
    const text = runsOf(element).find(isWords);
    if (!text || document.head.contains(element)) return null;
    const all = withText(text);
    return all.size === 1 && all.has(element) ? `text=${quoted(text)}` : null;
  }

  // Selectors through an entry of a list or table, or through one of several similar boxes.
  function itemTag(element) {
    if (ITEMS.has(element.localName)) return element.localName;
    const role = element.getAttribute("role");
    if (ITEM_ROLES.has(role)) return `[role=${role}]`;
    if (!/^(div|section|fieldset|tbody|dl|details|label|p)$/.test(element.localName)) return null;
    const siblings = siblingsOf(element).filter((one) => one !== element);
    const shared = stableClasses(element).find((name) => siblings.some((one) =>
      one.localName === element.localName && one.classList.contains(name)));
    return shared ? `${element.localName}.${CSS.escape(shared)}` : null;
  }

  // By a text that no other entry has, and that is outside the target element.
  function byItemText(item, element) {
    const tag = itemTag(item);
    if (!tag) return null;
    const rivals = found(tag, MAX_SAME).filter((one) => one !== item);
    if (rivals.length >= MAX_SAME) return null;
    const texts = [];
    for (const part of partsOf(item)) {
      if (part.isContentEditable || (element !== item && isInside(element, part))) continue;
      for (const text of runsOf(part)) if (isWords(text)) texts.push([text, part === item]);
    }
    texts.sort(([one], [other]) => /\d/.test(one) - /\d/.test(other));
    for (const [text, own] of texts.slice(0, MAX_TRIES)) {
      if (rivals.some((one) => hasRun(one, text))) continue;
      return own ? `${tag}:text-is(${quoted(text)})` : `${tag}:has(:text-is(${quoted(text)}))`;
    }
    return null;
  }

  function byContainer(element) {
    const given = element.getAttribute("role"), role = given || CONTAINERS[element.localName];
    if (!CONTAINER_ROLES.has(role) || !isExposed(element)) return null;
    const name = containerName(element);
    if (!isUsable(name)) return null;
    const tag = Object.keys(CONTAINERS).find((one) => CONTAINERS[one] === role);
    const all = found([tag, `[role=${role}]`].filter(Boolean).join(","), MAX_SAME);
    const same = all.filter((one) => one !== element && containerName(one) === name);
    return same.length ? null : `role=${role}[name=${quoted(name)}]`;
  }

  function containerName(element) {
    const legend = element.localName === "fieldset" && element.querySelector(":scope > legend");
    if (legend && !element.hasAttribute("aria-label") && !element.hasAttribute("aria-labelledby")) {
      const words = wordsIn(legend, null);
      return words === null ? null : plain(words);
    }
    return nameOf(element, "");
  }

  // Through its entry in a list or table, or through the nearest named part of the page.
  function within(element, role, name, text) {
    const ways = [], kinds = new Set();
    let items = 0, steps = 0;
    for (let at = element; at && at !== document.body && steps < MAX_STEPS; at = above(at), steps++) {
      const item = items < MAX_ITEMS ? byItemText(at, element) : null;
      if (item) items++;
      if (item && at === element && !text) { kinds.add("item"); ways.push(["item", item]); }
      if (at === element) continue;
      for (const [kind, scope] of [["item", item], ["part", stableScope(at)]]) {
        if (!scope || kinds.has(kind)) continue;
        const own = ownWithin(at, element, role, name, kind === "item", text);
        if (own) { kinds.add(kind); ways.push([kind === "item" ? kind : "role", `${scope} >> ${own}`]); }
      }
      if (kinds.size === 2) break;
    }
    return ways;
  }

  function stableScope(element) {
    const test = testId(element);
    if (test && only(test, element)) return test;
    const container = byContainer(element);
    if (container) return container;
    const id = attribute(element, "id");
    return id && !isGenerated(id) && only(`#${CSS.escape(id)}`, element) ? `#${CSS.escape(id)}` : null;
  }

  function ownWithin(scope, element, role, name, isItem, text) {
    const test = testId(element);
    if (test && onlyWithin(scope, found(test, MAX_SAME), element)) return test;
    if (role && isExposed(element)) {
      const all = ofRole(role)?.filter((one) => one.exposed && isInside(scope, one.element));
      const same = isUsable(name) ? all?.filter((one) => sameName(one, name)) : null;
      if (same?.length === 1) return `role=${role}[name=${quoted(name)}]`;
      if (isItem && all?.length === 1) return `role=${role}`;
    }
    if (!isItem || text) return null;  // its own text is more specific than a class
    for (const css of [...strongCss(element), ...weakCss(element), CSS.escape(element.localName)]) {
      if (onlyWithin(scope, found(css, MAX_SAME), element)) return css;
    }
    return null;
  }

  function onlyWithin(scope, all, element) {
    const inside = all.filter((one) => one !== scope && isInside(scope, one));
    return all.length <= MAX_SAME && inside.length === 1 && inside[0] === element;
  }

  function stableClasses(element) {
    return [...element.classList].filter((one) => !isGenerated(one) && !isState(one));
  }

  // Attributes that identify this element.
  function* strongCss(element) {
    const tag = CSS.escape(element.localName);
    const test = testId(element);
    if (test) yield test;
    const id = attribute(element, "id");
    if (id && !isGenerated(id)) yield `#${CSS.escape(id)}`;
    const name = attribute(element, "name");
    if (name && !isGenerated(name)) {
      yield `${tag}[name=${quoted(name)}]`;
      const value = ["radio", "checkbox"].includes(element.type) && attribute(element, "value");
      if (value) yield `${tag}[name=${quoted(name)}][value=${quoted(value)}]`;
    }
    for (const key of ["aria-label", "placeholder", "for", "title", "alt", "href"]) {
      const value = attribute(element, key);
      if (!value || (key === "for" && isGenerated(value))) continue;
      if (key !== "href" || !/[?#]|[0-9a-f]{12}/i.test(value)) yield `${tag}[${key}=${quoted(value)}]`;
    }
  }

  function* weakCss(element) {
    const tag = CSS.escape(element.localName);
    const type = attribute(element, "type");
    if (type) yield `${tag}[type=${quoted(type)}]`;
    const classes = stableClasses(element).slice(0, 4);
    for (const one of classes) yield `${tag}.${CSS.escape(one)}`;
    if (classes.length > 1) yield `${tag}.${classes.map((one) => CSS.escape(one)).join(".")}`;
  }

  function* ownCss(element) {
    yield* strongCss(element);
    yield* weakCss(element);
  }

  function position(element) {
    const tag = CSS.escape(element.localName);
    const siblings = siblingsOf(element).filter((other) => other.localName === element.localName);
    return siblings.length > 1 ? `${tag}:nth-of-type(${siblings.indexOf(element) + 1})` : tag;
  }

  function cssOf(element) {
    for (const css of ownCss(element)) if (only(css, element)) return css;
    let path = position(element);
    for (let above = parentOf(element); above; above = parentOf(above)) {
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

  // As in Playwright: a blank between two steps also crosses shadow roots.
  function onlyInside(host, css, element) {
    const all = [...host.querySelectorAll(css)];
    for (const root of shadowTrees()) {
      if (root.host && isInside(host, root.host)) all.push(...root.querySelectorAll(css));
    }
    return all.length === 1 && all[0] === element;
  }

  // Tags and positions only, so that typed text is never repeated.
  function pathOf(element) {
    const parts = [];
    for (let at = element; at && at !== document.documentElement; at = parentOf(at)) {
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
    for (let part = frame; part; part = parentOf(part)) path.unshift(position(part));
    return at >= 0 && inside(path.join(" > ")) ? path.join(" > ") : null;
  }

  function describe(element) {
    roots = null;
    named = new Map();
    const test = testId(element);
    const { role, name, selector } = byRole(element);
    const text = byText(element);
    const told = {
      tag: element.localName,
      type: typeOf(element).slice(0, 20),
      role,
      name: name && name.slice(0, 200),
      testid: test && only(test, element) ? test : null,
      byRole: selector,
      within: within(element, role, name, text),
      text,
      strong: [...strongCss(element)].find((css) => only(css, element)) ?? null,
      number: selector ? null : byNumber(element, role, name),
      css: cssOf(element),
      path: pathOf(element),
      frame: frames(),
      hints: ["name", "id", "autocomplete", "placeholder", "aria-label", ...TEST_IDS]
        .map((key) => (element.getAttribute(key) || "").slice(0, MAX_ATTR)),
    };
    roots = null;
    named = new Map();
    return told;
  }

  return { describe, roleOf, isGenerated };
}
