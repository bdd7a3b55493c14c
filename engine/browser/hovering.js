// Find the elements, outermost first, that the pointer must be over for another one to appear:
// menus that open, and buttons of a row that are visible on hover only. Style sheets use :hover;
// effects of scripts are detected by changes right after the pointer arrived.
function hoverer() {
  const SHOWING = ["display", "visibility", "pointer-events", "height", "max-height", "width",
    "max-width", "transform", "translate", "scale", "clip", "clip-path", "left", "right", "top",
    "bottom", "content-visibility"];
  const MAX_RULES = 20000, MAX_DEEP = 4, ANSWER_MS = 500, QUIET_MS = 1000;
  const CHANGES = ["class", "style", "hidden", "open"];
  const shown = new WeakMap();  // added or changed element -> element under the pointer
  const unread = new Set();  // hosts of style sheets that cannot be read
  let over = null, last = null, overAt = -1e9, pressedAt = -1e9;

  // The fields of a form shadow its own properties.
  const parentOf = (element) => Reflect.get(Node.prototype, "parentElement", element);
  const above = (element) => parentOf(element) ?? element.getRootNode().host ?? null;

  // Split at commas outside brackets and quotation marks.
  function parts(selectors) {
    const all = [];
    let part = "", depth = 0, quote = "";
    for (let n = 0; n < selectors.length; n++) {
      const sign = selectors[n];
      if (sign === "\\") { part += sign + (selectors[++n] ?? ""); continue; }
      if (quote) quote = sign === quote ? "" : quote;
      else if (sign === '"' || sign === "'") quote = sign;
      else if ("([".includes(sign)) depth++;
      else if (")]".includes(sign)) depth--;
      else if (sign === "," && !depth) { all.push(part); part = ""; continue; }
      part += sign;
    }
    return [...all, part];
  }

  function* rulesOf(rules, outer, left) {
    for (const rule of rules) {
      if (left.rules-- <= 0) return;
      if (rule.styleSheet) yield* rulesOfSheet(rule.styleSheet, left);
      const own = rule.selectorText;
      const selectors = !own ? outer : !outer ? own :
        parts(own).map((one) => (one.includes("&") ? one.replaceAll("&", `:is(${outer})`) :
          `:is(${outer}) ${one}`)).join(",");
      if (selectors?.includes(":hover") && rule.style) {
        const says = SHOWING.map((name) => rule.style.getPropertyValue(name)).filter(Boolean);
        if (says.some((value) => value !== "none" && value !== "hidden")) yield selectors;
      }
      if (rule.cssRules?.length) yield* rulesOf(rule.cssRules, selectors, left);
    }
  }

  function* rulesOfSheet(sheet, left) {
    try {
      if (!sheet.disabled) yield* rulesOf(sheet.cssRules, "", left);
    } catch {
      unread.add(hostOf(sheet));  // of another site, so its rules cannot be read
    }
  }

  function hostOf(sheet) {
    try {
      return new URL(sheet.href).host;
    } catch {
      return location.host;
    }
  }

  function hoverSelectors(root) {
    const left = { rules: MAX_RULES }, all = [];
    for (const sheet of [...root.styleSheets, ...root.adoptedStyleSheets ?? []]) {
      for (const selectors of rulesOfSheet(sheet, left)) {
        all.push(...parts(selectors).filter((one) => one.includes(":hover")));
      }
    }
    return all;
  }

  function matches(element, selector) {
    try {
      return Element.prototype.matches.call(element, selector);
    } catch {
      return false;
    }
  }

  const always = (selector) => selector.replaceAll(":hover", ":is(*)");

  // The nearest element, or an earlier one, that matches the selector up to its :hover.
  function hovered(element, selector) {
    const end = selector.lastIndexOf(":hover") + ":hover".length;
    const rest = /^[^\s>+~)]*/.exec(selector.slice(end))[0];
    const wanted = always(selector.slice(0, end) + rest);
    for (let at = element; at; at = parentOf(at)) {
      for (let one = at; one; one = one.previousElementSibling) if (matches(one, wanted)) return one;
    }
    return null;
  }

  function byRule(element) {
    const known = new Map();
    for (let at = element; at && !isWhole(at); at = above(at)) {
      const root = at.getRootNode();
      if (!known.has(root)) known.set(root, hoverSelectors(root));
      for (const selector of known.get(root)) {
        if (!matches(at, always(selector))) continue;
        const found = hovered(at, selector);
        if (found && found !== at && found !== element && !isWhole(found)) return found;
      }
    }
    return null;
  }

  function byScript(element) {
    for (let at = element; at && !isWhole(at); at = above(at)) {
      const found = shown.get(at);
      const isUsable = found && found.isConnected && found !== element && !element.contains(found);
      if (isUsable && found.checkVisibility({ visibilityProperty: true })) return found;
    }
    return null;
  }

  const isWhole = (element) => element === document.body || element === document.documentElement;

  function needed(element) {
    const all = [];
    for (let at = element; all.length < MAX_DEEP;) {
      at = byRule(at) ?? byScript(at);
      if (!at || all.includes(at)) break;
      all.unshift(at);
    }
    return all;
  }

  // A page that loads or moves under a resting mouse is no effect of the mouse.
  function entered(event) {
    if (!event.isTrusted || event.pointerType !== "mouse") return;
    const hasMoved = last && (last.x !== event.screenX || last.y !== event.screenY);
    const element = event.composedPath()[0];
    last = { x: event.screenX, y: event.screenY };
    over = hasMoved && !isWhole(element) ? element : null;
    overAt = performance.now();
  }

  const moved = (event) => { last = { x: event.screenX, y: event.screenY }; };
  const acted = () => { pressedAt = performance.now(); };

  new MutationObserver((changes) => {
    const now = performance.now();
    if (!over || document.readyState !== "complete") return;
    if (now - overAt > ANSWER_MS || overAt - pressedAt < QUIET_MS) return;
    for (const change of changes) {
      const nodes = change.type === "childList" ? change.addedNodes : [change.target];
      for (const node of nodes) {
        if (node.nodeType === Node.ELEMENT_NODE) shown.set(node, over);
      }
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: CHANGES });

  return { needed, entered, moved, acted, unread };
}
