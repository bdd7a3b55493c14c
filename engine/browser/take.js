// Runs inside the page, in an isolated world: wait until the page is ready, then extract its
// visible content. The page's scripts can neither read nor replace anything here.
(async (ask) => {
  const started = performance.now();
  const left = () => ask.limitMs - (performance.now() - started);

  // The names of images and forms shadow the document's own properties, and those of a form's
  // fields the form's, in every world; they cannot shadow the prototypes' methods.
  const page = (name) => Reflect.get(Document.prototype, name, document);
  const pageDoes = (name, ...given) => page(name).apply(document, given);
  const { tag } = shown;
  const does = (element, name, ...given) =>
    Reflect.get(Element.prototype, name, element).apply(element, given);
  const everything = (element) => does(element, "getElementsByTagName", "*");

  // More than is ever kept: waiting for the rest would only use memory.
  const isTooLarge = () => {
    const root = page("documentElement");
    if (!root) return false;
    if (everything(root).length > ask.maxElements) return true;
    const texts = pageDoes("createTreeWalker", root, NodeFilter.SHOW_TEXT);
    let length = 0;
    while (texts.nextNode() && length <= ask.maxText) length += texts.currentNode.length;
    return length > ask.maxText;
  };

  let cutOff = ask.cutOff;

  // Ready: the load event has fired and the page is at rest, by the rule of `settle.js`. Nothing is
  // observed before the load event, because a parser reports thousands of changes.
  const loaded = () => new Promise((resolve) => {
    if (page("readyState") === "complete") return resolve(!cutOff);
    if (cutOff) return resolve(false);
    let isOver = false;
    const end = (yes) => { isOver = true; resolve(yes); };
    const look = () => {
      if (isOver) return;
      // `document.open` removes the listener below; without scripts no event arrives.
      if (page("readyState") === "complete") return end(true);
      if (left() <= 0) return end(false);
      if (isTooLarge()) {
        stop();
        return end(false);
      }
      later(look, Math.min(LOOK_MS, left()));
    };
    later(look, Math.min(LOOK_MS, left()));
    addEventListener("load", () => end(true), { once: true });
    const stopped = () => { cutOff = true; end(false); };
    pageDoes("addEventListener", `${ask.pending}!`, stopped, { once: true });
  });

  const there = () => new Promise((resolve) => {
    let isOver = false;
    const end = (found) => { isOver = true; dom.disconnect(); resolve(found); };
    const look = () => { if (pageDoes("querySelector", ask.waitFor)) end(true); };
    // In parts, because the limit of a running script may be changed.
    const wait = () => later(tick, Math.max(Math.min(left(), LOOK_MS), 0));
    const tick = () => {
      if (isOver) return;
      if (left() <= 0) end(false);
      else wait();
    };
    const dom = new MutationObserver(look);
    dom.observe(document, { subtree: true, childList: true, attributes: true });
    wait();
    look();
  });

  const web = (address) => {
    if (!/^https?:/.test(address)) return "";
    if (!address.includes("@")) return address;
    try {
      const url = new URL(address);
      url.username = url.password = "";
      return url.href;
    } catch {
      return "";
    }
  };

  // Elements whose words are never displayed.
  const UNSAID = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE"]);
  const isUnsaid = (element) => UNSAID.has(tag(element).toUpperCase()); // also of a drawing

  // A link's name: its words, or those of its image.
  const nameOf = (anchor) => {
    const level = (text) => text.slice(0, 4096).replace(/\s+/g, " ").trim().slice(0, 512).toWellFormed();
    const words = level(shown.wordsOf(anchor, 4096, ask.lines, UNSAID));
    if (words) return words;
    const picture = does(anchor, "querySelector", "img[alt]:not([alt=''])") || anchor;
    return level(does(picture, "getAttribute", "alt") || does(anchor, "getAttribute", "aria-label") || "");
  };

  // The address of a link; in a drawing it is not resolved.
  const hrefOf = ({ href, baseURI }) => {
    const drawn = href?.baseVal;
    if (typeof drawn !== "string") return href;
    return URL.canParse(drawn, baseURI) ? new URL(drawn, baseURI).href : "";
  };
  // Where a refresh leads, by the grammar of `meta_refresh.py`; null if it only renews the page.
  const refresh = new RegExp(`^(?:${ask.refresh})$`, "is");
  const refreshTo = (meta) => {
    const found = refresh.exec(does(meta, "getAttribute", "content"));
    const to = (found?.[2] || found?.[3] || found?.[4] || "").trim();
    if (!to) return null;
    const link = pageDoes("createElementNS", "http://www.w3.org/1999/xhtml", "a");
    link.href = to; // in the page's character set
    return web(link.href);
  };
  // Frames are pages of their own: those of the same host are followed like links.
  const withoutHash = (address) => address.replace(/#.*/s, "");
  const addressOf = (element) => {
    const name = tag(element);
    if (name === "META") return refreshTo(element);
    const isFrame = name === "FRAME" || name === "IFRAME";
    const address = isFrame ? element.src : hrefOf(element);
    const found = web(typeof address === "string" ? address : "");
    if (!isFrame || !found) return found;
    if (!URL.canParse(found)) return "";
    return new URL(found).hostname === location.hostname ? found : null;
  };

  // The named tokens of `rel` as bits, in the order of `page_facts.py`.
  const relOf = (anchor) => {
    const given = does(anchor, "getAttribute", "rel");
    if (!given) return 0;
    const tokens = given.toLowerCase().split(/\s+/);
    return ask.rels.reduce((bits, name, at) => bits | (tokens.includes(name) << at), 0);
  };

  let skipped = 0;
  const over = new Set();
  const rels = new Map(); // of each address, those that all of its links have
  const LEADING = 'a[*|href], area[href], frame[src], iframe[src], meta[http-equiv="refresh" i]';
  const links = (owners) => {
    const found = new Map();
    let chars = 0;
    const add = (anchor, address) => {
      if (over.has(address)) return;
      const isNew = !found.has(address);
      if (isNew) {
        chars += address.length;
        if (found.size >= ask.maxLinks || chars > ask.maxLinkChars) return over.add(address);
      }
      if (isNew || rels.get(address)) rels.set(address, relOf(anchor) & (isNew ? -1 : rels.get(address)));
      if (!found.get(address)) found.set(address, nameOf(anchor));
    };
    for (const owner of owners) {
      for (const anchor of shown.query(owner, LEADING)) {
        const address = addressOf(anchor);
        if (address && address.length <= 8192) add(anchor, address);
        else if (address !== null) skipped += 1;
      }
    }
    return found;
  };

  // Facts for audits, of the document's own elements alone; the terms are those of `page_facts.py`.
  const facts = () => {
    const short = (text) => text.slice(0, 4096).toWellFormed();
    const all = (selector) => [...shown.query(document, selector)];
    const given = (element, name) => short((element && does(element, "getAttribute", name)) || "");
    const first = (selector, name) => given(pageDoes("querySelector", selector), name);
    const textOf = (element) => Reflect.get(Node.prototype, "textContent", element);
    const titleOf = (heading) => shown.wordsOf(heading, 4096, ask.lines).toWellFormed();
    const body = page("body");
    let words = 0;
    if (body) {
      const texts = pageDoes("createTreeWalker", body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!isUnsaid(text.parentNode)) words += text.data.match(/\S+/g)?.length ?? 0;
      }
    }
    let inside = 0, outside = 0, unfollowed = 0;
    for (const anchor of all("a[*|href], area[href]")) {
      const isDrawn = typeof anchor.href !== "string";
      const { protocol, host } = isDrawn ? new URL(hrefOf(anchor) || "about:blank") : anchor;
      if (!/^https?:$/.test(protocol) || !host) continue;
      if (host === location.host) inside += 1;
      else outside += 1;
      if (/(^|\s)nofollow(\s|$)/i.test(given(anchor, "rel"))) unfollowed += 1;
    }
    const canonical = pageDoes("querySelector", 'link[rel~="canonical" i][href]');
    const headings = all("h1");
    const images = all("img");
    const scripts = all('script[type="application/ld+json" i]').slice(0, ask.maxScripts).map(textOf);
    const root = page("documentElement");
    return {
      charset: page("characterSet"),
      language: root ? given(root, "lang") : "",
      canonical: canonical ? short(web(String(canonical.href))) : "",
      description: first('meta[name="description" i]', "content"),
      robots: first('meta[name="robots" i]', "content"),
      h1: headings.length ? titleOf(headings[0]) : "",
      h1Count: headings.length,
      words,
      linksInternal: inside,
      linksExternal: outside,
      linksNofollow: unfollowed,
      images: images.length,
      imagesWithoutAlt: images.filter((image) => !does(image, "hasAttribute", "alt")).length,
      linkedData: scripts.filter((text) => text.length <= ask.maxScriptChars).map((text) => text.toWellFormed()),
      items: all("[itemtype]").slice(0, ask.maxTypes).map((element) => given(element, "itemtype")),
    };
  };

  // Text beyond the limit is cut before it costs a layout, a copy and a transfer.
  const cutAfter = (node, body) => {
    const rest = pageDoes("createRange");
    rest.setStartAfter(node);
    rest.setEndAfter(body.lastChild);
    rest.deleteContents();
    return true;
  };

  const cut = (body) => {
    const elements = everything(body);
    const tooMany = elements.length > ask.maxElements;
    if (tooMany) cutAfter(elements[ask.maxElements], body);
    const texts = pageDoes("createTreeWalker", body, NodeFilter.SHOW_TEXT);
    let length = 0;
    for (let count = 1; texts.nextNode(); count += 1) {
      const text = texts.currentNode;
      if (LEFT_OUT.has(tag(text.parentNode))) continue;
      const room = ask.maxText - length;
      length += text.length;
      if (length <= ask.maxText && count <= ask.maxTexts) continue;
      text.data = text.data.slice(0, room);
      return cutAfter(text, body);
    }
    return tooMany;
  };

  const MODULES = "script[type=module], link[rel=modulepreload]";
  const LOOK_MS = 100;
  const MOST_SCRIPTS = 1_000; // that are searched for imports
  const { LEFT_OUT } = shown;

  const keepDescription = (head) => {
    for (const child of [...does(head, "querySelectorAll", ":scope > *")]) {
      if (!does(child, "matches", 'meta[name="description" i]')) does(child, "remove");
    }
  };

  // Without an address of its own a link would seem to lead to the page itself.
  const keepLink = (address, twin) => {
    const found = web(address) || (/^(mailto|tel):/i.test(address) && address);
    if (found) twin.setAttribute("href", found);
    else twin.removeAttribute("href");
  };

  // What the markup hides may be displayed by the page's styles.
  const HIDES = /none|hidden|collapse/i;
  const keepAttributes = (element, twin) => {
    const name = tag(element);
    does(twin, "removeAttribute", "hidden");
    if (HIDES.test(does(twin, "getAttribute", "style"))) does(twin, "removeAttribute", "style");
    if (name === "HEAD") keepDescription(twin);
    else if (name === "A" && shown.isInvisible(element)) does(twin, "removeAttribute", "href");
    else if (name === "A" && element.hasAttribute("href")) keepLink(element.href, twin);
    else if (name === "IMG" && element.hasAttribute("src")) twin.setAttribute("src", web(element.src));
  };

  // Elements that may hide their own text; the elements in them are judged by themselves.
  const CLOSED = "details:not([open]), [hidden='until-found' i]";
  const removeTexts = (element) => {
    const children = [...Reflect.get(Node.prototype, "childNodes", element)];
    for (const one of children) if (one instanceof Text) one.remove();
  };

  // The copy's elements have the same order as the live ones, so both lists run in parallel. It
  // belongs to an inert document: in the page's own, custom elements would change their copies.
  const visible = (root) => {
    const copy = document.implementation.createHTMLDocument("").importNode(root, true);
    const live = everything(root);
    const closed = new Set(does(root, "querySelectorAll", CLOSED));
    const twins = does(copy, "querySelectorAll", "*");
    for (let at = 0; at < twins.length; at += 1) {
      const element = live[at];
      const name = tag(element);
      if (name === "HEAD") {
        keepDescription(twins[at]);
        at += everything(element).length;
      } else if (shown.isLeftOut(element, name)) {
        does(twins[at], "remove");
        at += everything(element).length;
      } else {
        keepAttributes(element, twins[at]);
        const isClosed = closed.has(element) && shown.hidesText(element);
        if (isClosed || shown.isInvisible(element)) removeTexts(twins[at]);
        shown.separate(element, twins[at], Reflect.get(Node.prototype, "previousSibling", twins[at]));
      }
    }
    return copy;
  };

  // Text and markup of one document: of a plain one as the browser returns them.
  const taken = (owner, roots) => {
    const body = Reflect.get(Document.prototype, "body", owner);
    const root = Reflect.get(Document.prototype, "documentElement", owner);
    let wasCut = body ? cut(body) : false;
    if (!roots.length || !body) {
      return { text: body ? body.innerText : "", copy: root ? visible(root) : null, wasCut };
    }
    const said = shown.textOf(body, ask.maxText, ask.maxElements);
    const made = shown.copyOf(root, keepAttributes, ask.maxElements);
    wasCut ||= said.cut || made.cut;
    return { text: said.text, copy: made.copy, wasCut };
  };

  // The content of frames follows that of the page itself, in order.
  const joined = (own, others) => {
    const texts = [own.text, ...others.map((one) => one.text)].filter((text) => text.trim());
    if (others.length && own.copy) {
      does(own.copy, "querySelector", "frameset")?.remove();
      const inert = Reflect.get(Node.prototype, "ownerDocument", own.copy);
      const body = does(own.copy, "querySelector", "body") || inert.createElement("body");
      if (!does(own.copy, "contains", body)) does(own.copy, "append", body);
      for (const { copy } of others) {
        const part = inert.createElement("div");
        const inside = copy && does(copy, "querySelector", "body");
        for (const child of inside ? [...inside.childNodes] : []) part.append(child);
        body.append(part);
      }
    }
    return {
      text: others.length ? texts.join("\n\n") : own.text,
      html: own.copy ? Reflect.get(Element.prototype, "outerHTML", own.copy) : "",
      wasCut: own.wasCut || others.some((one) => one.wasCut),
    };
  };

  const cookieChars = () => {
    try { return page("cookie").length; } catch { return 0; } // unavailable in a sandbox
  };

  // Whether the page's own host refused a part of it, as with too many cookies; the status is 0 if
  // it closed the connection.
  const isPartRefused = ({ name, responseStatus }) =>
    (responseStatus === 0 || ask.refusals.includes(responseStatus)) &&
    name.startsWith(`${location.origin}/`);

  // Custom fields: see `custom_fields.py`.
  const valueOf = (element, attribute) => {
    const level = (text) => text.slice(0, 8 * ask.maxValueChars).toWellFormed();
    if (!attribute) return level(shown.wordsOf(element, 8 * ask.maxValueChars, ask.lines));
    const given = does(element, "getAttribute", attribute);
    if (given === null || !ask.addresses.includes(attribute)) return given && level(given);
    try {
      const address = new URL(given, Reflect.get(Node.prototype, "baseURI", document)).href;
      return level(/^https?:/.test(address) ? address : given);
    } catch {
      return level(given);
    }
  };
  const valuesOf = ({ selector, attribute, many }) => {
    const found = [...pageDoes("querySelectorAll", selector)].slice(0, ask.maxValues);
    const values = found.map((one) => valueOf(one, attribute)).filter((value) => value !== null);
    return values.length ? [many ? values : values[0]] : [];
  };
  const named = (argument, read) => {
    try { return read(); } catch (wrong) { throw new Error(`${argument}: ${wrong.message}`); }
  };

  const rest = settle(ask, left, later);
  const more = loads(ask, { left, later, rest, shown, isTooLarge });
  const unready = (settled) => ({ settled, held: [], written: false });
  if (ask.loadMore) named("load_more", () => pageDoes("querySelector", ask.loadMore));
  if (ask.clickLinks) named("click_links", () => pageDoes("querySelector", ask.clickLinks));
  const came = await (ask.waitFor
    ? there().then(unready)
    : loaded().then((yes) => (yes ? rest.atRest() : unready(false))));
  const grows = came.settled && (ask.scroll || ask.loadMore) && page("documentElement");
  const grownFrom = performance.now();
  const { settled, held, written, loads: times, loadsCut } = grows
    ? await more.grow(came) : { ...came, loads: 0, loadsCut: Boolean(ask.scroll || ask.loadMore) };
  const grownFor = performance.now() - grownFrom;
  const values = named("fields", () => Object.fromEntries(
    ask.fields.flatMap((rule) => valuesOf(rule).map((value) => [rule.name, value]))));
  const isWhole = !cutOff && !ask.cutOff && page("readyState") !== "loading";
  // Any script may import modules, also later; nothing in the page tells when it has. But scripts of
  // other sites, as for ads, may come late on a page that has no modules itself.
  const hasModules = (owner) => shown.query(owner, MODULES).length > 0;
  const hasImports = (owner) =>
    [...Reflect.get(Document.prototype, "scripts", owner)].slice(0, MOST_SCRIPTS).some((one) =>
      does(one, "hasAttribute", "src") || /\bimport\b/.test(Reflect.get(Node.prototype, "textContent", one)));
  const [timing] = performance.getEntriesByType("navigation");
  const isShowing = rest.showing();
  const owners = shown.documentsOf(document);
  const found = links(owners.flat(2));
  const audited = facts();
  // The load event covers the scripts in the markup of a frame, too.
  const isLoaded = (owner) => Reflect.get(Document.prototype, "readyState", owner) === "complete";
  const inner = owners.slice(1).map(([owner]) => owner)
    .filter((owner) => isLoaded(owner) && (hasModules(owner) || hasImports(owner)));
  const mayImport = written || [document, ...inner].some(hasModules) ? "any" : inner.length || hasImports(document) ? "own" : "";
  const parts = owners.map(([owner, roots]) => taken(owner, roots));
  const frames = parts.slice(1).filter((one) => one.text.trim()).length;
  const pending = rest.tell("");
  const { text, html, wasCut } = joined(parts[0], parts.slice(1));
  const count = (name) => Math.min(Number(pending?.[name]) || 0, 1e6);
  return {
    url: location.href,
    title: page("title").slice(0, 4096).toWellFormed(),
    html: html.slice(0, ask.maxHtml).toWellFormed(),
    text: text.slice(0, ask.maxText).toWellFormed(),
    truncated: wasCut || !isWhole || html.length > ask.maxHtml || text.length > ask.maxText,
    // One text each: no value contains a line break, and thousands of values take longer to
    // transfer.
    links: found.size ? [...found.keys()].join("\n") : null,
    linkTexts: [...found.values()].join("\n"),
    linkRels: [...rels.values()].join(""),
    frames,
    skipped,
    over: over.size,
    cookieChars: cookieChars(),
    windows: count("windows"),
    partRefused: performance.getEntriesByType("resource").some(isPartRefused),
    outliving: count("outliving"),
    // Later versions of HTTP have one connection for many requests.
    connections: timing?.nextHopProtocol === "http/1.1" ? count("connections") : 0,
    storageFull: Number(pending?.stored ?? 0) > ask.maxStored,
    settled,
    held,
    mayImport: ask.waitFor ? "" : mayImport,
    importing: inner.map((owner) => withoutHash(Reflect.get(Document.prototype, "URL", owner))),
    empty: !isShowing && !found.size && !text.trim(),
    facts: audited,
    values,
    loads: times,
    loadsCut,
    contentType: page("contentType"),
    status: timing ? timing.responseStatus : 0,
    bytes: (timing && timing.decodedBodySize) || (settled ? 0 : html.length),
    transferred: timing ? timing.encodedBodySize : 0,
    responseMs: timing ? timing.responseStart : 0,
    renderMs: timing ? performance.now() - timing.responseStart - grownFor : 0,
  };
})
