// Runs inside the page, in an isolated world: load more of a page at rest. It is scrolled through to
// its end, and an element that loads more is clicked, until it has not grown any further. `take.js`
// uses it; `settle.js` tells when the page is at rest again.
((ask, { left, later, rest, shown, isTooLarge }) => {
  const LOOK_MS = 100;
  const FRAME_MS = 32;
  const MOST_SCREENS = 200;
  const LINE = 16; // in pixels; less is no row
  const LABEL = { letters: 100, elements: 10 }; // at most, of an element that loads more
  const WORDS = 20; // letters; less may be a clock

  const ofNode = (name, node) => Reflect.get(Node.prototype, name, node);
  const page = (name) => Reflect.get(Document.prototype, name, document);
  const pageDoes = (name, ...given) => page(name).apply(document, given);
  const does = (element, name, ...given) =>
    Reflect.get(Element.prototype, name, element).apply(element, given);
  const sizeOf = (box, name) => Reflect.get(Element.prototype, name, box);
  const pause = (ms) => new Promise((then) => { later(then, Math.max(Math.min(ms, left()), 0)); });

  // --- scrolling ---
  const canScroll = (box) => sizeOf(box, "scrollHeight") > sizeOf(box, "clientHeight") + 1;
  const scrollBox = () => {
    const root = page("scrollingElement") ?? page("documentElement");
    if (canScroll(root)) return root;
    const scrolls = (box) => canScroll(box) && /auto|scroll/.test(getComputedStyle(box).overflowY);
    let box = pageDoes("elementFromPoint", innerWidth / 2, innerHeight / 2);
    while (box && !scrolls(box)) box = ofNode("parentElement", box);
    return box ?? root;
  };
  const scrollThrough = async (box) => {
    for (let screens = 0; screens < MOST_SCREENS && left() > 0; screens += 1) {
      const before = sizeOf(box, "scrollTop");
      does(box, "scrollBy", { top: Math.max(sizeOf(box, "clientHeight"), 100), behavior: "instant" });
      await pause(FRAME_MS);
      if (sizeOf(box, "scrollTop") <= before) return;
    }
  };
  // Listeners and observers of the scroll position are called with the next frame, which a busy
  // machine paints late.
  const painted = () => new Promise((then) => {
    later(then, Math.max(Math.min(ask.moreMs, left()), 0));
    requestAnimationFrame(() => requestAnimationFrame(then));
  });

  // --- clicking ---
  const loaders = () => (ask.loadMore ? [...pageDoes("querySelectorAll", ask.loadMore)] : []);
  const isShown = (one) => does(one, "checkVisibility", { visibilityProperty: true });
  const isOff = (one) => does(one, "matches", ":disabled, [aria-disabled=true]");
  const loader = () => loaders().find((one) => isShown(one) && !isOff(one));
  const hasDisabled = () => loaders().some((one) => isShown(one) && isOff(one));
  // A click that no script handles must not open another page.
  const stay = (event) => event.preventDefault();
  const click = (element) => {
    for (const kind of ["click", "submit"]) addEventListener(kind, stay, { once: true });
    does(element, "scrollIntoView", { block: "center", behavior: "instant" });
    does(element, "dispatchEvent", new MouseEvent("click", { bubbles: true, cancelable: true, composed: true }));
    for (const kind of ["click", "submit"]) removeEventListener(kind, stay);
  };

  // --- growth ---
  const lettersOf = (node) => ofNode("textContent", node).length;
  const numberIn = (element) => does(element, "getElementsByTagName", "*").length;
  const sum = (nodes, measured) => nodes.reduce((total, node) => total + measured(node), 0);
  // Without the elements that load more and their labels: "Loading…" is no row.
  const sizes = (root) => {
    const labels = loaders();
    return {
      height: sizeOf(scrollBox(), "scrollHeight"),
      number: numberIn(root) - sum(labels, (one) => 1 + Math.min(numberIn(one), LABEL.elements)),
      letters: ask.loadMore
        ? lettersOf(root) - sum(labels, (one) => Math.min(lettersOf(one), LABEL.letters)) : 0,
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

  const grow = async (first) => {
    const growth = new Growth();
    let [last, loads, clicked] = [first, 0, false];
    // The page after a step; whether it has grown by it.
    const outcome = async () => {
      last = await rest.atRest();
      let grew = growth.has(clicked ? "click" : "step");
      const isPending = () => {
        const { due, again } = timers();
        return due || again || clicked || hasDisabled();
      };
      last = await lookAgain(last, () => {
        grew ||= growth.has(clicked ? "look" : "step");
        return !grew && isPending();
      });
      return grew || growth.has(clicked ? "look" : "step");
    };
    // An element to click that a script has disabled or removed for a moment is waited for.
    const nextLoader = async () => {
      if (!ask.loadMore) return undefined;
      if (!ask.scroll) {
        last = await lookAgain(last, () => !loader() && (hasDisabled() || (clicked && timers().due)));
        growth.has("step"); // what came meanwhile belongs to the step before
      }
      return loader();
    };
    for (;;) {
      const button = await nextLoader();
      if (!last.settled) return { ...last, loads, loadsCut: true };
      if (!button && !ask.scroll) return { ...last, loads, loadsCut: false };
      if (loads >= ask.maxLoads || isTooLarge()) return { ...last, loads, loadsCut: true };
      clicked = Boolean(button);
      if (button) click(button);
      if (ask.scroll && page("documentElement")) {
        await scrollThrough(scrollBox());
        await painted();
      }
      const grew = await outcome();
      loads += grew;
      if (!last.settled || !grew) return { ...last, loads, loadsCut: !last.settled };
    }
  };

  return { grow };
})
