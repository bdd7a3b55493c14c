// Runs inside the page, in an isolated world: load more of a page at rest. It is scrolled through to
// its end, and an element that loads more is clicked, until it has not grown any further. `take.js`
// uses it; `settle.js` tells when the page is at rest again.
((ask, { left, later, rest, shown, isTooLarge }) => {
  const LOOK_MS = 100;
  const FRAME_MS = 32;
  const MOST_SCREENS = 200;
  const MOST_BOXES = 3;
  const MOST_TRIES = 20; // elements without effect, one after the other
  const MOST_BY_ITSELF = 10; // steps of a page that may grow without them, as a list of news
  const LINE = 16; // in pixels; less is no row
  const LABEL = { letters: 100, elements: 10 }; // at most, of an element that loads more
  const WORDS = 20; // letters; less may be a clock

  const ofNode = (name, node) => Reflect.get(Node.prototype, name, node);
  const page = (name) => Reflect.get(Document.prototype, name, document);
  const pageDoes = (name, ...given) => page(name).apply(document, given);
  const does = (element, name, ...given) =>
    Reflect.get(Element.prototype, name, element).apply(element, given);
  const ofElement = (name, element) => Reflect.get(Element.prototype, name, element);
  const pause = (ms) => new Promise((then) => { later(then, Math.max(Math.min(ms, left()), 0)); });

  // --- scrolling ---
  // How far a box can be scrolled.
  const roomOf = (box) => Math.max(ofElement("scrollHeight", box) - ofElement("clientHeight", box) - 1, 0);
  const scrolls = (box) => roomOf(box) > 0 && /auto|scroll/.test(getComputedStyle(box).overflowY);
  // The elements in the middle of the window, those below an overlay and in open shadow roots
  // included.
  const inTheMiddle = () => {
    const at = [innerWidth / 2, innerHeight / 2];
    const found = new Set(pageDoes("elementsFromPoint", ...at));
    for (const element of found) { // grows
      const root = ofElement("shadowRoot", element);
      const within = root ? Reflect.get(ShadowRoot.prototype, "elementsFromPoint", root).apply(root, at) : [];
      for (const one of within) found.add(one);
    }
    return [...found];
  };
  let inner = []; // boxes beside the page itself; they stay the same while they can be scrolled
  const innerBoxes = (root) => {
    inner = inner.filter((box) => ofNode("isConnected", box) && roomOf(box));
    if (!inner.length) {
      const boxes = inTheMiddle().filter((box) => box !== root && scrolls(box));
      inner = boxes.sort((one, other) => roomOf(other) - roomOf(one)).slice(0, MOST_BOXES);
    }
    return inner;
  };
  // The page itself, and the boxes with more in them: a page may be a little too high for the window
  // beside its list, and an overlay may have a box of its own.
  const scrollBoxes = () => {
    const root = page("scrollingElement") ?? page("documentElement");
    return [root, ...innerBoxes(root).filter((box) => roomOf(box) > roomOf(root))];
  };
  const scrollThrough = async (box) => {
    for (let screens = 0; screens < MOST_SCREENS && left() > 0; screens += 1) {
      const before = ofElement("scrollTop", box);
      does(box, "scrollBy", { top: Math.max(ofElement("clientHeight", box), 100), behavior: "instant" });
      await pause(FRAME_MS);
      if (ofElement("scrollTop", box) <= before) return;
    }
  };
  // Listeners and observers of the scroll position are called with the next frame, which a busy
  // machine paints late.
  const painted = () => new Promise((then) => {
    later(then, Math.max(Math.min(ask.moreMs, left()), 0));
    requestAnimationFrame(() => requestAnimationFrame(then));
  });

  // --- clicking ---
  const loaders = () => {
    if (!ask.loadMore) return [];
    return [document, ...shown.rootsOf(document)].flatMap((root) => [...shown.query(root, ask.loadMore)]);
  };
  const isShown = (one) => does(one, "checkVisibility", { visibilityProperty: true });
  const isOff = (one) => does(one, "matches", ":disabled, [aria-disabled=true]");
  const ready = () => loaders().filter((one) => isShown(one) && !isOff(one));
  const hasDisabled = () => loaders().some((one) => isShown(one) && isOff(one));
  const spent = new WeakSet(); // clicked without effect, as at the end of a list
  const loader = () => ready().find((one) => !spent.has(one));

  // The button, if any, whose click would send a form.
  const senderOf = (element) => {
    const control = does(element, "closest", "button, input");
    const isControl = control instanceof HTMLButtonElement || control instanceof HTMLInputElement;
    return isControl && control.form && ["submit", "image"].includes(control.type) ? control : null;
  };
  // The event alone: a script may handle it, but no browser sends the form for it.
  const submit = (button) => {
    const { form } = button;
    if (!ofNode("isConnected", form)) return;
    const isChecked = !does(form, "hasAttribute", "novalidate") && !does(button, "hasAttribute", "formnovalidate");
    if (isChecked && !Reflect.get(HTMLFormElement.prototype, "checkValidity", form).call(form)) return;
    does(form, "dispatchEvent", new SubmitEvent("submit", { bubbles: true, cancelable: true, submitter: button }));
  };
  // A click that no script handles must not open another page, nor send a form.
  const click = (element) => {
    const sent = new MouseEvent("click", { bubbles: true, cancelable: true, composed: true });
    const sender = senderOf(element);
    let isFree = false; // no script has cancelled what the browser does
    const stay = (event) => {
      if (event === sent) isFree = !event.defaultPrevented;
      event.preventDefault();
    };
    for (const kind of ["click", "submit"]) addEventListener(kind, stay);
    does(element, "scrollIntoView", { block: "center", behavior: "instant" });
    does(element, "dispatchEvent", sent);
    if (isFree && sender?.form) submit(sender);
    for (const kind of ["click", "submit"]) removeEventListener(kind, stay);
  };

  // Nor may one whose event does not arrive here, because a script stops it on its way.
  const stayHere = (event) => { if (event.sourceElement && event.cancelable) event.preventDefault(); };

  // --- requests that failed ---
  // Those of the page's scripts. An error like 404 may tell the end of a list; these tell that there
  // may be more. What another site does not tell is no failure.
  const MAY_HAVE_MORE = new Set([403, 408, 429]);
  const failed = new Set(); // addresses that were not answered since
  let answered = 0;
  const note = ({ name: address, initiatorType, responseStatus: status }) => {
    if (initiatorType !== "fetch" && initiatorType !== "xmlhttprequest") return;
    answered += 1;
    // A script that cancels a request, as one for each scroll, repeats it with other arguments.
    const name = address.replace(/[?#].*/s, "");
    const isLost = status === 0 && name.startsWith(`${location.origin}/`); // without an answer
    if (isLost || status >= 500 || MAY_HAVE_MORE.has(status)) failed.add(name);
    else failed.delete(name);
  };
  const watchRequests = () => {
    const requests = new PerformanceObserver((list) => list.getEntries().forEach(note));
    requests.observe({ type: "resource" });
    return requests;
  };

  // --- growth ---
  const lettersOf = (node) => ofNode("textContent", node).length;
  const isElement = (node) => ofNode("nodeType", node) === 1;
  const numberIn = (node) =>
    (isElement(node) ? does(node, "getElementsByTagName", "*") : shown.query(node, "*")).length;
  const sum = (nodes, measured) => nodes.reduce((total, node) => total + measured(node), 0);
  // Without the elements that load more and their labels: "Loading…" is no row.
  const sizes = (root) => {
    const labels = loaders();
    const parts = [root, ...shown.rootsOf(document)];
    return {
      height: Math.max(...scrollBoxes().map((box) => ofElement("scrollHeight", box))),
      number: sum(parts, numberIn) - sum(labels, (one) => 1 + Math.min(numberIn(one), LABEL.elements)),
      letters: ask.loadMore
        ? sum(parts, lettersOf) - sum(labels, (one) => Math.min(lettersOf(one), LABEL.letters)) : 0,
    };
  };
  class Growth {
    constructor() {
      [this.tallest, this.most, this.letters, this.longest] = [0, 0, 0, 0];
      this.has("step");
    }

    // A change of the text counts after a click only: a clock changes it, too. If the page is looked
    // at again after the click, it has to be as long as no clock's.
    has(since) {
      const root = page("documentElement");
      if (!root) return false; // a script removed it
      const { height, number, letters } = sizes(root);
      const says = since === "click" ? letters !== this.letters : letters > this.longest + WORDS;
      const has = height > this.tallest + LINE || number > this.most || (since !== "step" && says);
      this.tallest = Math.max(this.tallest, height);
      this.most = Math.max(this.most, number);
      this.letters = letters;
      this.longest = Math.max(this.longest, letters);
      return has;
    }
  }

  // --- waiting for what comes later than the page is at rest ---
  const timers = () => {
    const told = rest.tell("");
    const all = told === null ? [] : [told, ...told.inner];
    return {
      due: all.some(({ due }) => due !== null && due < ask.moreMs),
      again: all.some(({ again }) => again),
    };
  };
  // Look again while `goesOn`, for `moreMs` of a page that does nothing. A look that waits for the
  // page itself counts as half of that at most.
  const lookAgain = async (first, goesOn) => {
    let last = first;
    for (let spent = 0; spent < ask.moreMs && last.settled && left() > 0 && goesOn();) {
      const began = performance.now();
      await pause(LOOK_MS);
      last = await rest.atRest();
      spent += Math.min(performance.now() - began, ask.moreMs / 2);
    }
    return last;
  };

  // The loads of one page: each step scrolls, or clicks one element, or both.
  class Loads {
    constructor(first) {
      this.last = first; // how the page came to rest
      this.count = 0;
      this.button = undefined; // that the last step clicked
      this.tries = 0; // clicks without effect since the page has grown
      this.byItself = 0; // steps in a row after which the page grew later, without a request
      this.growth = new Growth();
    }

    // A script may disable or remove the element to click for a moment.
    async next() {
      if (ask.loadMore && !ask.scroll) {
        const mayReturn = () => hasDisabled() || (this.button && timers().due);
        this.last = await lookAgain(this.last, () => !loader() && mayReturn());
        this.growth.has("step"); // what came meanwhile belongs to the step before
      }
      return loader();
    }

    isPending() {
      const { due, again } = timers();
      // No timer shows messages, but each match without effect cannot be waited for.
      return due || again || hasDisabled() || (this.button && this.tries === 0);
    }

    // Whether the page has grown by the last step.
    async hasGrown() {
      const before = answered;
      this.last = await rest.atRest();
      let grew = this.growth.has(this.button ? "click" : "step");
      const atOnce = grew;
      const look = () => { grew ||= this.growth.has(this.button ? "look" : "step"); };
      this.last = await lookAgain(this.last, () => {
        look();
        return !grew && this.isPending();
      });
      look();
      this.byItself = atOnce || !grew || answered > before ? 0 : this.byItself + 1;
      return grew;
    }

    // Whether there is another element to click after one without effect. A script may replace such
    // elements by new ones, so they are counted, too.
    goesOn() {
      if (this.button) {
        spent.add(this.button);
        this.tries += 1;
      }
      return Boolean(loader()) && this.tries < ready().length;
    }

    async step() {
      if (this.button) click(this.button);
      if (ask.scroll && page("documentElement")) {
        for (const box of scrollBoxes()) await scrollThrough(box);
        await painted();
      }
      const grew = await this.hasGrown();
      this.count += grew;
      if (grew) this.tries = 0;
      return grew || (this.last.settled && this.goesOn());
    }

    // Returns whether the page may have more.
    async run() {
      for (;;) {
        this.button = await this.next();
        if (!this.last.settled) return true;
        if (!this.button && !ask.scroll) return false;
        if (this.count >= ask.maxLoads || this.tries >= MOST_TRIES || isTooLarge()) return true;
        if (this.byItself >= MOST_BY_ITSELF) return true;
        if (!await this.step()) return !this.last.settled;
      }
    }
  }

  const grow = async (first) => {
    const requests = watchRequests();
    const { navigation } = window;
    if (ask.loadMore) navigation?.addEventListener("navigate", stayHere);
    const all = new Loads(first);
    const isCut = await all.run();
    navigation?.removeEventListener("navigate", stayHere);
    requests.takeRecords().forEach(note);
    requests.disconnect();
    return { ...all.last, loads: all.count, loadsCut: isCut || failed.size > 0 };
  };

  return { grow };
})
