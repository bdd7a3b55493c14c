// Documents as displayed: shadow roots (`pending.js` opens closed ones) with their slotted content,
// and the documents of frames that the page's own origin may read. Runs in an isolated world.
// Prototype methods are used, because the fields of a form cannot shadow them.
(() => {
  // A page may declare classes of these names.
  const { Node, Element, Document, DocumentFragment, Reflect, Set } = window;
  const MAX_ROOTS = 10_000;
  const MAX_FRAMES = 100;
  const MAX_FRAME_DEPTH = 5;
  const ofNode = (name, node) => Reflect.get(Node.prototype, name, node);
  const ofElement = (name, element) => Reflect.get(Element.prototype, name, element);
  const ofDocument = (name, owner) => Reflect.get(Document.prototype, name, owner);
  // Read once, because they are used for every element of every page.
  const getter = (name) => Object.getOwnPropertyDescriptor(Element.prototype, name).get;
  const [tagOf, namespaceOf, shadowOf] = ["tagName", "namespaceURI", "shadowRoot"].map(getter);
  // In upper case for elements of HTML, also in a document of XML.
  const tag = (element) => {
    const name = tagOf.call(element);
    return name >= "a" && namespaceOf.call(element) === "http://www.w3.org/1999/xhtml" ? name.toUpperCase() : name;
  };
  const append = (element, one) => ofElement("append", element).call(element, one);
  const isElement = (node) => ofNode("nodeType", node) === 1;
  const isText = (node) => ofNode("nodeType", node) === 3;
  const styleOf = (element) => getComputedStyle(element);

  const LEFT_OUT = new Set([
    "SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "IFRAME", "OBJECT", "TEXTAREA", "VIDEO", "AUDIO",
    "CANVAS", "METER", "PROGRESS", "DATALIST", "RP",
  ]);
  const BOXES = new Set([
    "IMG", "INPUT", "IFRAME", "OBJECT", "TEXTAREA", "VIDEO", "AUDIO", "CANVAS", "METER", "PROGRESS",
    "EMBED",
  ]);

  const hidden = (element) =>
    !ofElement("checkVisibility", element).call(element) && styleOf(element).display !== "contents";

  // Of an element that is not hidden: whether its own text is invisible; elements in it may be shown.
  const SEEN = { visibilityProperty: true };
  const isInvisible = (element) =>
    !ofElement("checkVisibility", element).call(element, SEEN) && styleOf(element).visibility !== "visible";

  const isLeftOut = (element, name) =>
    LEFT_OUT.has(name) || hidden(element) || (name === "IMG" && isInvisible(element));

  // The blank or line break that keeps an element and its neighbours apart in markup, where styles
  // do so and its name does not.
  const INLINE = new Set([
    "A", "ABBR", "B", "BDI", "BDO", "BUTTON", "CITE", "CODE", "DATA", "DEL", "DFN", "EM", "FONT", "I",
    "INS", "KBD", "LABEL", "MARK", "OUTPUT", "Q", "S", "SAMP", "SMALL", "SPAN", "STRIKE", "STRONG",
    "SUB", "SUP", "TIME", "TT", "U", "VAR",
  ]);
  const IN_LINES = new Set(["block", "flex", "grid", "table-row", "list-item"]);
  const OF_ROWS = /flex|grid|table-row/;
  const separatorOf = (element) => {
    const name = tag(element);
    if (!INLINE.has(name) && !name.includes("-")) return "";
    const { display, position, float } = styleOf(element);
    if (display === "none" || display.startsWith("inline") || display === "contents" || display.startsWith("ruby")) return "";
    // Icons and notes beside the text; letters of a word that move one by one.
    if (position === "absolute" || position === "fixed" || float !== "none") return "";
    if (ofNode("textContent", element).trim().length < 2) return "";
    if (!ofElement("closest", element).call(element, "pre")) return " ";
    const isLine = IN_LINES.has(display) && !OF_ROWS.test(styleOf(ofNode("parentNode", element)).display);
    return isLine ? "\n" : "";
  };
  // Whether a line ends with a node.
  const endsLine = (node) => {
    if (ofNode("textContent", node).endsWith("\n")) return true;
    let end = node;
    while (end !== null && isElement(end) && tag(end) !== "BR") end = ofNode("lastChild", end);
    return end !== null && isElement(end);
  };
  // Puts it around the copy of an element, which follows `previous`; lines of code have one break.
  const separate = (element, copy, previous) => {
    const separator = separatorOf(element);
    if (!separator) return;
    const isFirst = previous === null || (separator === "\n" && endsLine(previous));
    if (!isFirst) ofElement("before", copy).call(copy, separator);
    if (separator === " ") ofElement("after", copy).call(copy, separator);
  };

  // The text of an element, without the elements of the names `leftOut`, and with a blank where it
  // begins another line: at the elements of the names `lines`, and where styles do so.
  const wordsOf = (element, most, lines, leftOut = new Set()) => {
    if (ofElement("firstElementChild", element) === null) return ofNode("textContent", element).slice(0, most);
    const open = [{ nodes: ofNode("childNodes", element), at: 0, gap: "" }];
    let words = "";
    while (open.length && words.length < most) {
      const top = open.at(-1);
      const node = top.nodes[top.at];
      top.at += 1;
      if (node === undefined) {
        words += top.gap;
        open.pop();
      } else if (isText(node)) words += node.data;
      else if (isElement(node) && !leftOut.has(tag(node).toUpperCase())) {
        const gap = lines.includes(tag(node).toLowerCase()) || separatorOf(node) ? " " : "";
        words += gap;
        open.push({ nodes: ofNode("childNodes", node), at: 0, gap });
      }
    }
    return words.slice(0, most);
  };

  // Of a document or a shadow root, without nested roots. A frame's document belongs to another
  // realm, so `instanceof` fails for it.
  const isDocument = (node) => ofNode("nodeType", node) === 9;
  const query = (root, selector) => Reflect
    .get((isDocument(root) ? Document : DocumentFragment).prototype, "querySelectorAll", root)
    .call(root, selector);
  const elementsOf = (root) => {
    if (isElement(root)) return ofElement("getElementsByTagName", root).call(root, "*");
    return isDocument(root) ? ofDocument("getElementsByTagName", root).call(root, "*") : query(root, "*");
  };

  // The open shadow roots of a document or an element, nested ones included.
  const rootsOf = (owner) => {
    const own = isElement(owner) ? ofElement("shadowRoot", owner) : null;
    const found = own ? [own] : [];
    const within = [owner, ...found];
    while (within.length && found.length < MAX_ROOTS) {
      const elements = elementsOf(within.pop());
      for (let at = 0; at < elements.length; at += 1) {
        const root = shadowOf.call(elements[at]);
        if (root !== null) {
          found.push(root);
          within.push(root);
        }
      }
    }
    return found;
  };

  // Of an element with a box: whether its own text is hidden, as that of closed details.
  const hidesText = (element) => {
    const isDetails = tag(element) === "DETAILS";
    const { contentVisibility, display } = getComputedStyle(element, isDetails ? "::details-content" : null);
    return contentVisibility === "hidden" && display !== "inline" && display !== "contents";
  };
  const isUntilFound = (element) =>
    ofElement("getAttribute", element).call(element, "hidden")?.toLowerCase() === "until-found";

  const childrenOf = (node) => {
    if (!isElement(node)) return ofNode("childNodes", node);
    const root = ofElement("shadowRoot", node);
    if (root) return ofNode("childNodes", root);
    const name = tag(node);
    if (name === "SLOT" && ofNode("nodeType", node.getRootNode()) === 11) {
      const assigned = node.assignedNodes?.() ?? [];
      if (assigned.length) return assigned;
    }
    if (isUntilFound(node) && hidesText(node)) return [];
    if (name === "DETAILS" && !node.open) {
      return [...ofNode("childNodes", node)].filter((child) => isElement(child) && tag(child) === "SUMMARY").slice(0, 1);
    }
    return ofNode("childNodes", node);
  };

  // The words of a document with the breaks between them, by the rules of `innerText`.
  class Lines {
    constructor(most) {
      this.out = [];
      this.room = most;
      this.required = 0;
      this.blank = false;
      this.start = true;
    }
    block(breaks) {
      this.blank = false;
      this.start = true;
      if (this.out.length) this.required = Math.max(this.required, breaks);
    }
    say(text) {
      if (this.required) this.out.push("\n".repeat(this.required));
      this.required = 0;
      this.out.push(text);
      this.room -= text.length;
    }
    newline() {
      this.blank = false;
      this.start = true;
      this.say("\n");
    }
    box() {
      if (this.blank && !this.start) this.say(" ");
      this.blank = false;
      this.start = false;
    }
    collapsed(text) {
      const words = text.replace(/[ \t\n\r]+/g, " ");
      const core = words.replace(/^ | $/g, "");
      if (!core) {
        this.blank ||= !this.start && words !== "";
        return;
      }
      if ((this.blank || words[0] === " ") && !this.start) this.say(" ");
      this.say(core);
      this.start = false;
      this.blank = words.endsWith(" ");
    }
    text(text, style) {
      const kept = style.whiteSpaceCollapse;
      if (kept === "collapse") return this.collapsed(text);
      if (kept === "preserve-breaks") {
        text.split("\n").forEach((line, number) => {
          if (number) this.newline();
          this.collapsed(line);
        });
        return undefined;
      }
      if (this.blank && !this.start) this.say(" ");
      this.blank = false;
      this.say(text);
      this.start = text.endsWith("\n");
      return undefined;
    }
  }

  const transformed = (text, how) => {
    if (how === "uppercase") return text.toUpperCase();
    if (how === "lowercase") return text.toLowerCase();
    if (how !== "capitalize") return text;
    return text.replace(/(?<![\p{L}\p{N}]['\u2019]?)\p{L}/gu, (sign) => sign.toUpperCase());
  };

  const LINES = /^(block|flex|grid|list-item|table$|flow-root|table-caption)/;
  const OWN = /^inline-(block|flex|grid|table)/;

  // A formula's one-letter variable is displayed in italics.
  const italic = (text) => {
    const sign = text.trim();
    if (sign.length !== 1) return text;
    if (sign === "h") return "\u210e";
    const at = sign.codePointAt(0);
    if (sign >= "A" && sign <= "Z") return String.fromCodePoint(0x1d434 + at - 65);
    return sign >= "a" && sign <= "z" ? String.fromCodePoint(0x1d44e + at - 97) : text;
  };

  // Begin an element; return the function that ends it, or null if its content is hidden.
  const begin = (element, style, lines, state) => {
    const name = tag(element);
    const visible = style.visibility === "visible";
    if (name === "BR") return visible ? lines.newline() : lines.block(0);
    const isFallback = name === "OBJECT" && !element.hasAttribute("data") && !element.hasAttribute("type");
    if (BOXES.has(name) && !isFallback) return lines.box();
    if (name === "SELECT") {
      lines.box();
      for (const option of element.options ?? []) {
        lines.block(1);
        lines.collapsed(option.text);
        lines.block(1);
      }
      lines.start = false;
      return null;
    }
    const { display } = style;
    if (display === "table-row") {
      const table = state.tables.at(-1);
      if (table?.rows && visible) lines.newline();
      if (table) [table.rows, table.cells] = [true, false];
      return () => {};
    }
    if (display === "table-cell") {
      const table = state.tables.at(-1);
      if (table?.cells) lines.say("\t");
      if (table) table.cells = true;
      lines.block(0);
      return () => lines.block(0);
    }
    const isFormula = ofElement("namespaceURI", element)?.endsWith("MathML") && name !== "math";
    if (isFormula || LINES.test(display) || style.float !== "none" || /^(absolute|fixed)$/.test(style.position)) {
      const breaks = !visible ? 0 : name === "P" ? 2 : 1;
      const isTable = display === "table";
      lines.block(breaks);
      if (isTable) state.tables.push({ rows: false, cells: false });
      return () => {
        lines.block(breaks);
        if (isTable) state.tables.pop();
      };
    }
    if (name === "Q" || name === "math" || name === "svg") {
      lines.box();
      return () => {
        lines.box();
        lines.start = false;
      };
    }
    if (!OWN.test(display)) return () => {};
    lines.box();
    lines.start = true;
    return () => Object.assign(lines, { start: false, blank: false });
  };

  const textOf = (body, most, mostElements) => {
    const lines = new Lines(most);
    const state = { tables: [] };
    const open = [{ nodes: childrenOf(body), at: 0, style: styleOf(body), end: () => {} }];
    let elements = 0;
    while (open.length && lines.room > 0 && elements <= mostElements) {
      const top = open.at(-1);
      if (top.at >= top.nodes.length) {
        top.end();
        open.pop();
        continue;
      }
      const node = top.nodes[top.at];
      top.at += 1;
      if (isText(node)) {
        const { data } = node;
        const isGap = /^table(?!-c)/.test(top.style.display) && !data.trim();
        if (!isGap && data && top.style.visibility === "visible") {
          const how = top.style.textTransform;
          const text = how === "math-auto" ? italic(data) : transformed(data, how);
          lines.text(text.slice(0, lines.room), top.style);
        }
      } else if (isElement(node)) {
        elements += 1;
        if (hidden(node)) continue;
        const style = styleOf(node);
        const end = begin(node, style, lines, state);
        if (end) open.push({ nodes: childrenOf(node), at: 0, style, end });
      }
    }
    return { text: lines.out.join(""), cut: open.length > 0 };
  };

  // A copy of the displayed content, as plain elements of an inert document.
  const copyOf = (root, keep, most) => {
    const inert = document.implementation.createHTMLDocument("");
    const whole = inert.importNode(root, false);
    const open = [{ nodes: childrenOf(root), at: 0, into: whole }];
    let elements = 0;
    while (open.length && elements <= most) {
      const top = open.at(-1);
      if (top.at >= top.nodes.length) {
        open.pop();
        continue;
      }
      const node = top.nodes[top.at];
      top.at += 1;
      if (isText(node)) {
        if (!top.isInvisible) append(top.into, node.data);
      } else if (isElement(node)) {
        elements += 1;
        const name = tag(node);
        if (name === "HEAD") {
          const head = inert.importNode(node, true);
          keep(node, head);
          append(top.into, head);
        } else if (!isLeftOut(node, name)) {
          const isSlot = name === "SLOT";
          const into = isSlot ? top.into : inert.importNode(node, false);
          if (!isSlot) {
            keep(node, into);
            const previous = ofNode("lastChild", top.into);
            append(top.into, into);
            separate(node, into, previous);
          }
          open.push({ nodes: childrenOf(node), at: 0, into, isInvisible: isInvisible(node) });
        }
      }
    }
    return { copy: whole, cut: open.length > 0 };
  };

  // The whole markup with its shadow roots as declarative ones, hidden content included.
  const markupOf = (owner) => {
    const root = ofDocument("documentElement", owner);
    if (!root) return "";
    const shadowRoots = rootsOf(owner);
    if (!shadowRoots.length) return ofElement("outerHTML", root);
    return withRoots(root, shadowRoots);
  };

  const withRoots = (element, shadowRoots) => {
    const inside = ofElement("getHTML", element).call(element, { shadowRoots });
    const shell = ofElement("outerHTML", document.implementation.createHTMLDocument("").importNode(element, false));
    const end = shell.lastIndexOf("</");
    return end < 0 ? shell : shell.slice(0, end) + inside + shell.slice(end);
  };

  // A document and those of its readable and visible frames, in order, nested ones included; each
  // with its shadow roots.
  const documentsOf = (owner, depth = 0, found = []) => {
    const roots = rootsOf(owner);
    found.push([owner, roots]);
    if (depth >= MAX_FRAME_DEPTH) return found;
    for (const frame of [owner, ...roots].flatMap((root) => [...query(root, "iframe, frame")])) {
      if (found.length > MAX_FRAMES) break;
      const inner = frame.contentDocument;
      if (inner && ofDocument("body", inner) && isSeen(frame)) documentsOf(inner, depth + 1, found);
    }
    return found;
  };

  const isSeen = (frame) => {
    if (tag(frame) === "FRAME") return true;
    const box = ofElement("getBoundingClientRect", frame).call(frame);
    return !hidden(frame) && styleOf(frame).visibility === "visible" && box.width > 1 && box.height > 1;
  };

  return { LEFT_OUT, tag, query, rootsOf, textOf, wordsOf, copyOf, markupOf, withRoots, documentsOf, isLeftOut, isInvisible, hidesText, separate };
})()
