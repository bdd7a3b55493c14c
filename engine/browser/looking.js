// A page's text in reading order, with its elements. See `elements.js`.
((el) => {
  const DEPTH = 500;
  const NESTED = "a[href], button, input, select, textarea, [role=button], [role=link], [onclick]";
  const LABELLED = new Set(["image", "dialog", "form", "frame", "table", "group", "progressbar", "meter",
    "video", "audio", "heading"]);
  const told = (role, element) => el.ACTIVE.has(role) || role === "frame" || role === "heading"
    || (LABELLED.has(role) && el.nameOf(element, role) !== "");

  class Reading {
    constructor(ask) {
      this.ask = ask;
      this.lines = [];
      this.items = [];
      this.line = [];
      this.room = ask.maxChars;
      this.cut = false;
    }
    flush() {
      const says = this.line.some((part) => typeof part === "number" || part.trim());
      if (says && this.line.some((part) => part !== "- " && part !== " | ")) this.lines.push(this.line);
      this.line = [];
    }
    say(text) {
      if (this.ask.activeOnly) return;
      const last = this.line.at(-1);
      if (typeof last === "string" && !last.endsWith("| ")) this.line[this.line.length - 1] = last + text;
      else this.line.push(text);
      this.spend(text.length);
    }
    put(element, role) {
      if (this.ask.activeOnly) this.flush();
      const item = el.describe(element, role, el.numberOf(element));
      this.items.push(item);
      this.line.push(this.items.length - 1);
      this.spend(item.name.length + 40);
    }
    spend(chars) {
      this.room -= chars;
      if (this.room < 0 || this.items.length >= this.ask.maxItems) this.cut = true;
    }
  }

  const text = (reading, node, pre) => {
    if (!el.seen(node.parentElement || node.parentNode.host)) return;
    if (!pre) return reading.say(node.data.replace(/\s+/g, " ").toWellFormed());
    node.data.toWellFormed().split("\n").forEach((row, at) => {
      if (at) reading.flush();
      reading.say(row);
    });
  };

  const frame = (reading, element, depth) => {
    const document = el.inner(element);
    reading.put(element, "frame");
    if (!document?.body) {
      const item = reading.items.at(-1);
      item.states.push("of another site, not read");
      if (/^https?:/.test(element.src)) item.href = element.src; // it can be opened on its own
    }
    reading.flush();
    if (document?.body) walk(reading, document.body, depth + 1, false);
    reading.flush();
  };

  // A label is reported as its field's name; other content of it (the field, a link) is not.
  const isToldByField = (element) =>
    el.tagOf(element) === "LABEL" && element.control && el.seen(element.control);

  const children = (reading, element, depth, pre) => {
    const quiet = isToldByField(element);
    for (const child of el.childrenOf(element)) {
      if (reading.cut) return;
      if (el.isText(child)) quiet || text(reading, child, pre);
      else if (el.isElement(child)) walk(reading, child, depth + 1, pre);
    }
  };

  const walk = (reading, element, depth, pre) => {
    if (depth > DEPTH) reading.cut = true;
    const tag = el.tagOf(element);
    if (reading.cut || el.LEFT_OUT.has(tag) || !el.shown(element) || el.muted(element)) return;
    if (tag === "BR") return reading.flush();
    if (el.isFrame(element)) return frame(reading, element, depth);
    const display = getComputedStyle(element).display;
    const cell = display === "table-cell";
    const block = !cell && !display.startsWith("inline") && display !== "contents";
    if (block) reading.flush();
    if (cell && reading.line.length) reading.say(" | ");
    if (display === "list-item" && tag !== "SUMMARY") reading.say("- ");
    const role = el.seen(element) ? el.roleOf(element) : "";
    let inside = true;
    if (role && told(role, element) && (!reading.ask.activeOnly || el.ACTIVE.has(role))) {
      reading.put(element, role);
      inside = !el.ACTIVE.has(role) && role !== "heading" && role !== "image"
        || (!el.TYPED.has(role) && role !== "listbox" && element.querySelector(NESTED) !== null);
      if (inside && block) reading.flush();
    }
    if (inside) children(reading, element, depth, pre || tag === "PRE");
    if (block) reading.flush();
  };

  const position = () => {
    const scroller = document.scrollingElement || document.documentElement;
    return {
      scrollY: Math.round(scroller.scrollTop),
      height: scroller.scrollHeight,
      viewHeight: innerHeight,
    };
  };
  const extent = () => {
    const { scrollWidth, scrollHeight } = document.documentElement;
    return { width: Math.max(1, Math.min(scrollWidth, 4000)), height: Math.max(1, scrollHeight) };
  };
  const page = () => ({
    url: location.href,
    title: el.level(document.title, 1000),
    status: performance.getEntriesByType("navigation")[0]?.responseStatus ?? 0,
  });

  const read = (ask) => {
    const root = ask.within ? el.elementOf(ask.within) : document.body || document.documentElement;
    if (!root) return ask.within ? { stale: true } : { ...page(), ...position(), lines: [], items: [], cut: false };
    const reading = new Reading(ask);
    walk(reading, root, 0, false);
    reading.flush();
    const { lines, items, cut } = reading;
    return { ...page(), ...position(), lines, items, cut };
  };

  // Everything that can be searched: elements with a role, and the smallest blocks of text.
  let listed = [];
  const everything = (root, visit, depth = 0, above = -1) => {
    if (depth > DEPTH || LEFT(root)) return;
    const at = visit(root, above) ?? above;
    const document = el.isFrame(root) ? el.inner(root) : null;
    if (document?.body) everything(document.body, visit, depth + 1, at);
    for (const child of el.childrenOf(root)) {
      if (el.isElement(child)) everything(child, visit, depth + 1, at);
    }
  };
  const LEFT = (element) => el.LEFT_OUT.has(el.tagOf(element)) || !el.shown(element) || el.muted(element);
  const speaks = (element) => [...el.childrenOf(element)].some((child) => el.isText(child) && child.data.trim());
  const CONTAINERS = new Set(["list", "table", "row", "navigation", "main", "form", "group", "dialog"]);

  const collect = (ask) => {
    listed = [];
    const found = [];
    let cut = false;
    // `above` is the nearest listed ancestor.
    const visit = (element, above) => {
      if (found.length >= ask.most) cut = true;
      if (cut || !el.seen(element)) return null;
      const role = el.roleOf(element) || (speaks(element) && el.tagOf(element) !== "LABEL" ? "text" : "");
      if (!role) return null;
      const about = el.describe(element, role, 0);
      about.above = above;
      const container = CONTAINERS.has(role) || el.TYPED.has(role) || el.isSecret(element);
      about.text = container ? "" : el.level(el.textOf(element, 500), 500);
      about.hint = ["placeholder", "title", "id", "name", "alt"]
        .map((key) => element.getAttribute(key)).filter(Boolean).join(" ").slice(0, 300);
      if (!(about.name || about.text || about.hint || el.ACTIVE.has(role))) return null;
      listed.push(element);
      return found.push(about) - 1;
    };
    if (document.body) everything(document.body, visit);
    return { ...page(), items: found, cut };
  };

  const number = (ask) => ({ refs: ask.at.map((at) => (listed[at] ? el.numberOf(listed[at]) : 0)) });

  // A picture shows the visible part; a secret in a plain field is covered meanwhile.
  let covered = [];
  const cover = ({ on }) => {
    for (const [field, before] of covered) field.style.webkitTextSecurity = before;
    covered = [];
    if (on) {
      for (const field of secretFields()) {
        covered.push([field, field.style.webkitTextSecurity]);
        field.style.webkitTextSecurity = "disc";
      }
    }
    return { fields: covered.length };
  };

  // Secret values, because the page's own text may repeat them.
  const secretFields = () => {
    const found = [];
    const look = (root) => {
      for (const one of root.querySelectorAll("*")) {
        const tag = el.tagOf(one);
        const filled = (tag === "INPUT" || tag === "TEXTAREA") && one.value;
        if (filled && found.length < 50 && el.isSecret(one)) found.push(one);
        const shadow = el.shadowRoot(one);
        if (shadow) look(shadow);
        const inside = el.isFrame(one) ? el.inner(one) : null;
        if (inside) look(inside);
      }
    };
    look(document);
    return found;
  };
  const secrets = () => secretFields().map((field) => field.value.slice(0, 1000));

  return { read, collect, number, secrets, cover, page, extent };
})
