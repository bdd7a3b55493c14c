// Runs inside the page, in an isolated world: click one element that is no link, wait until the
// page is at rest, and report where the click leads. Nothing is left here: each navigation of a
// script is cancelled and its address noted. What this cannot see, requests of documents and new
// windows, is refused and noted outside.
(async (ask) => {
  const started = performance.now();
  const MOST_ELEMENTS = 1_000; // that are listed at once
  const MOST_LOOKS = 10_000; // of one document
  const MOST_ADDRESSES = 5; // of one click
  const MOST_LINKS = 1_000; // that appear after one click
  const MOST_LINK_CHARS = 1_000_000;
  // A timer that a click sets, or an animation that it starts, is waited for if it ends within.
  const TIMER_MS = 1_000;
  const TEXT = 512;
  const REACT_MS = 50;
  const STARTS_MS = 100; // after a click, for its animations

  const page = (name) => Reflect.get(Document.prototype, name, document);
  const pageDoes = (name, ...given) => page(name).apply(document, given);
  const does = (element, name, ...given) =>
    Reflect.get(Element.prototype, name, element).apply(element, given);
  const ofNode = (name, node) => Reflect.get(Node.prototype, name, node);
  const tag = (element) => Reflect.get(Element.prototype, "tagName", element);
  const pause = (ms) => new Promise((then) => { later(then, ms); });

  // State of this document, kept between the calls.
  const start = () => {
    const kept = {
      clicked: new WeakSet(),
      clickedAs: new Map(), // by signature
      known: new WeakMap(), // signatures of each element, by its looks
      alike: new Map(), // elements, by their looks
      links: new Set(), // addresses that the page had, also as they are written
      notes: null,
    };
    window.navigation?.addEventListener("navigate", (event) => {
      if (!event.cancelable) return;
      event.preventDefault();
      kept.notes?.add(event);
    });
    return kept;
  };
  const kept = (globalThis.clicksOfThisDocument ??= start());

  class Notes {
    constructor() {
      this.addresses = [];
      this.forms = 0; // that would have sent data
      this.routed = false; // the page's script changed its address, and maybe the page
      this.hashed = false;
    }

    add({ destination, formData, downloadRequest, hashChange, navigationType }) {
      if (formData) this.forms += 1;
      else if (downloadRequest === null && navigationType !== "reload") {
        if (this.addresses.length < MOST_ADDRESSES) this.addresses.push(destination.url.slice(0, 8192));
      }
      this.routed ||= destination.sameDocument && !hashChange;
      this.hashed ||= hashChange;
    }

    // New windows, whose addresses the page's own script notes.
    addWindows(opening) {
      for (const address of Array.isArray(opening) ? opening : []) {
        if (this.addresses.length < MOST_ADDRESSES) this.addresses.push(String(address).slice(0, 8192));
      }
    }

    get leads() { return this.addresses.length > 0 || this.routed || this.forms > 0; }
  }

  const limit = () => ask.limitMs - (performance.now() - started);
  let notes = new Notes();
  const left = () => (notes.leads ? 0 : limit());
  const rest = settle(ask, left, later);

  const nameOf = (element) => {
    const level = (text) => String(text ?? "").slice(0, 4096).replace(/\s+/g, " ").trim().slice(0, TEXT).toWellFormed();
    const words = level(ofNode("textContent", element));
    if (words) return words;
    const names = ["aria-label", "title", "alt", "value"].map((name) => does(element, "getAttribute", name));
    const picture = does(element, "querySelector", "[alt], [aria-label]");
    if (picture) names.push(does(picture, "getAttribute", "alt"), does(picture, "getAttribute", "aria-label"));
    return level(names.find(Boolean));
  };

  // By what an element is known on the page when it is opened again: what it is, not where, since
  // an opened menu moves the others.
  const ROW = "tr, li, article, [role=row], [role=listitem], [role=option]";
  const UNSTEADY = /^(?:class|style|tabindex|disabled|aria-.*|data-state)$/;
  const looksOf = (element) => {
    const attributes = [...Reflect.get(Element.prototype, "attributes", element)]
      .filter(({ name }) => !UNSTEADY.test(name))
      .map(({ name, value }) => `${name}=${value.slice(0, 100)}`);
    const row = does(element, "closest", ROW);
    const around = row && row !== element ? nameOf(row).slice(0, 100) : "";
    return [tag(element), nameOf(element).slice(0, 100), around, ...attributes].join("|").slice(0, 1000);
  };

  const isLink = (element) => {
    const anchor = does(element, "closest", "a[href], area[href]");
    if (!anchor) return false;
    const given = does(anchor, "getAttribute", "href").trim();
    return !/^(?:#(?![!/].)|javascript:|$)/i.test(given);
  };
  const sends = (element) => {
    const control = does(element, "closest", "button, input");
    if (!control) return false;
    const { type } = control;
    return type === "file" || (control.form && ["submit", "image", "reset"].includes(type));
  };
  const isShown = (element) => {
    if (!does(element, "checkVisibility", { visibilityProperty: true })) return false;
    const { width, height } = does(element, "getBoundingClientRect");
    return width > 0 && height > 0;
  };
  const isOff = (element) => does(element, "matches", ":disabled, [aria-disabled=true]");

  // Equal elements are numbered. One keeps its number in this document, also while it looks
  // different, since a click that disables, renames or removes an element must not move the others
  // up: they would be taken for those that were clicked. An element that replaces another one, as
  // when a list is written anew, takes the number of the one that is gone.
  const signatureOf = (element) => {
    const looks = looksOf(element);
    const known = kept.known.get(element);
    if (known?.has(looks)) return known.get(looks);
    const same = kept.alike.get(looks) ?? [];
    if (!same.length && kept.alike.size >= MOST_LOOKS) return null;
    const isGone = (one) => !(one.deref() && ofNode("isConnected", one.deref()));
    const free = same.findIndex(isGone);
    const number = free < 0 ? same.length : free;
    const signature = `${looks}|${number}`;
    same[number] = new WeakRef(element);
    kept.alike.set(looks, same);
    kept.known.set(element, new Map(known).set(looks, signature));
    return signature;
  };

  // The elements by their signatures, in the order of the page.
  let cut = false; // there are more of them
  const matching = () => {
    const found = new Map();
    for (const root of [document, ...shown.rootsOf(document)]) {
      for (const element of shown.query(root, ask.selector)) {
        if (isLink(element) || sends(element) || !isShown(element) || isOff(element)) continue;
        const signature = found.size < MOST_ELEMENTS ? signatureOf(element) : null;
        if (signature === null) {
          cut = true;
          return found;
        }
        found.set(signature, element);
      }
    }
    return found;
  };
  // An element whose attributes or surroundings have changed, if only one can be meant.
  const alike = (elements) => {
    const found = elements.filter((element) => {
      const name = nameOf(element).slice(0, 100);
      return name && ask.signature.startsWith(`${tag(element)}|${name}|`) && !kept.clicked.has(element);
    });
    return found.length === 1 ? found[0] : undefined;
  };
  // Of an element that is to be clicked again, and may be named differently by now.
  const clickedBefore = (elements) => {
    const element = kept.clickedAs.get(ask.signature)?.deref();
    return elements.includes(element) ? element : undefined;
  };
  // One that says itself that it opens or selects something does the same each time.
  const OPENS = "summary, [role=tab], [aria-expanded], [aria-haspopup], [aria-selected], [aria-pressed], [aria-checked]";
  const goesOn = (present) => {
    const element = present.get(ask.signature) ?? clickedBefore([...present.values()]);
    return element !== undefined && !does(element, "matches", OPENS);
  };
  const listed = (present) => [...present]
    .filter(([, element]) => !kept.clicked.has(element))
    .map(([signature, element]) => [signature, nameOf(element)]);

  const pointer = (element) => {
    const box = does(element, "getBoundingClientRect");
    const at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
    const common = { bubbles: true, cancelable: true, composed: true, view: window, detail: 1, ...at };
    const send = (Kind, type, more) => does(element, "dispatchEvent", new Kind(type, { ...common, ...more }));
    const mouse = { pointerId: 1, pointerType: "mouse", isPrimary: true };
    send(PointerEvent, "pointerover", mouse);
    send(MouseEvent, "mouseover");
    send(PointerEvent, "pointerdown", { ...mouse, buttons: 1 });
    send(MouseEvent, "mousedown", { buttons: 1 });
    send(PointerEvent, "pointerup", mouse);
    send(MouseEvent, "mouseup");
    if (element instanceof HTMLElement) Reflect.get(HTMLElement.prototype, "click", element).call(element);
    else send(MouseEvent, "click");
  };

  // The links of the page with an address, which are never clicked: what a click adds of them, as
  // an opened menu or the next part of a list, is what it leads to.
  const addressOf = ({ href, baseURI }) => {
    try {
      const url = new URL(href.baseVal ?? href, baseURI); // in a drawing it is not resolved
      url.username = url.password = "";
      const address = url.href.replace(/#(?![/!]).*/s, "");
      return /^https?:$/.test(url.protocol) && address.length <= 8192 ? address : null;
    } catch {
      return null;
    }
  };
  const addedLinks = () => {
    const added = new Map();
    const written = [];
    for (const root of [document, ...shown.rootsOf(document)]) {
      for (const anchor of shown.query(root, "a[*|href], area[href]")) {
        const { href } = anchor;
        if (kept.links.has(href) && !added.has(href)) continue; // without reading it: a page may have thousands
        if (typeof href === "string") written.push(href);
        const address = addressOf(anchor);
        if (address === null || (kept.links.has(address) && !added.has(address))) continue;
        kept.links.add(address);
        if (!added.get(address)) added.set(address, nameOf(anchor));
      }
    }
    for (const href of written) kept.links.add(href);
    return added;
  };
  const limited = (added) => {
    const links = [];
    let chars = 0;
    for (const [address, name] of added) {
      chars += address.length + name.length;
      if (links.length < MOST_LINKS && chars <= MOST_LINK_CHARS) links.push([address, name]);
      else cut = true;
    }
    return links;
  };

  // What changed before the click does not make the page written by it.
  const forget = () => pageDoes("dispatchEvent", new CustomEvent(`${ask.pending}?`, { detail: "seen" }));
  const dueSoon = () => {
    const due = rest.tell("")?.due ?? null;
    return due !== null && due < TIMER_MS ? due : null;
  };
  // When the last timer is due that the click itself has set by now. A page with timers of its own,
  // as a countdown, sets the next one soon, which is not to be waited for.
  const ownTimers = () => {
    const soon = (rest.tell("")?.set ?? []).filter((ms) => ms < TIMER_MS);
    return performance.now() + Math.max(...soon); // in the past without any
  };
  // How long the animations go on that the click has started, at whose end a script may open
  // something; negative without any. Those that started later are the page's own.
  const animations = () => pageDoes("getAnimations");
  const animates = (known, clickedAt) => {
    let ms = -Infinity;
    for (const animation of animations()) {
      const { startTime, currentTime, playbackRate, effect, timeline } = animation;
      if (known.has(animation) || animation.playState !== "running" || timeline !== page("timeline")) continue;
      if (startTime - clickedAt > STARTS_MS) continue;
      const end = playbackRate < 0 ? 0 : effect?.getComputedTiming().endTime;
      const left = (end - currentTime) / playbackRate;
      if (left < TIMER_MS) ms = Math.max(ms, left);
    }
    return ms;
  };

  // What a click still loads at its limit may add elements and links.
  const untilRest = async () => {
    const { settled } = await rest.atRest();
    cut ||= !settled && !notes.leads;
  };

  const click = async (element) => {
    let changed = false;
    const dom = new MutationObserver(() => { changed = true; });
    kept.clicked.add(element);
    kept.clickedAs.set(ask.signature, new WeakRef(element));
    does(element, "scrollIntoView", { block: "center", behavior: "instant" });
    forget();
    const ticks = dueSoon() !== null; // the page has timers of its own
    const known = new Set(animations());
    const clickedAt = performance.now();
    kept.notes = notes;
    dom.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    try {
      pointer(element);
      notes.addWindows(rest.tell("")?.opening);
      await pause(0); // the handlers may have waited for a promise
      const until = ownTimers();
      if (!notes.leads) {
        await untilRest();
        notes.addWindows(rest.tell("")?.opening);
      }
      const timer = Math.max(until - performance.now(), (ticks ? null : dueSoon()) ?? -1);
      const due = notes.leads ? -1 : Math.max(timer, animates(known, clickedAt));
      if (due >= 0) {
        changed = false;
        await pause(Math.min(due + REACT_MS, Math.max(limit(), 0)));
        const isQuiet = timer < 0 && !changed && !rest.tell("")?.open.length;
        if (!notes.leads && !isQuiet) await untilRest();
        notes.addWindows(rest.tell("")?.opening);
      }
      // A cancelled change of the fragment leaves the page as it is, unless it also reacts itself.
      if (notes.hashed) {
        changed = false;
        await pause(REACT_MS);
        notes.routed ||= changed;
      }
    } finally {
      kept.notes = null;
      dom.disconnect();
    }
  };

  const loaded = () => page("readyState") === "complete" ? null : new Promise((then) => {
    later(then, limit());
    addEventListener("load", then, { once: true });
  });
  const there = async () => {
    while (ask.waitFor && limit() > 0 && !pageDoes("querySelector", ask.waitFor)) await pause(REACT_MS);
  };

  if (ask.signature === null) { // the page was opened again
    await loaded();
    await there();
    if (!ask.isRead) await rest.atRest();
    return { found: true, addresses: [], forms: 0, moved: false, candidates: listed(matching()), cut };
  }
  const present = matching();
  const elements = [...present.values()];
  const element = present.get(ask.signature) ?? clickedBefore(elements)
    ?? (ask.isAsListed ? alike(elements) : undefined);
  if (!element) return { found: false, addresses: [], forms: 0, moved: false, candidates: [] };
  addedLinks(); // what comes before the click does not come from it
  await click(element);
  const moved = notes.routed || page("documentElement") === null;
  const after = moved ? new Map() : matching();
  return {
    found: true,
    addresses: notes.addresses,
    links: moved ? [] : limited(addedLinks()), // those of another page are its own
    forms: notes.forms,
    moved,
    candidates: listed(after),
    again: goesOn(after),
    cut,
  };
})
