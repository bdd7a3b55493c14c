// Runs after `pending.js` in every document of a browser that loads no images. Chromium defers them
// there for ever, without an event, so that a page which waits for one would never show the rest of
// its content. Here they seem to have loaded: their elements get `load`, are complete and have a size.
(() => {
  // A page may declare classes of these names.
  const { Document, Element, Event, EventTarget, HTMLImageElement, Promise, Proxy, Reflect } = window;
  const { apply, get } = Reflect;
  const { dispatchEvent } = EventTarget.prototype;
  const { getAttribute, querySelectorAll, setAttribute } = Element.prototype;
  const { parseInt } = window;
  const later = window.setTimeout.bind(window);
  const images = HTMLImageElement.prototype;
  const MOST = 1000; // events in a document
  const OFTEN = 3; // events of one image; later ones, as of a camera's picture, come after a pause
  const PAUSE_MS = 250;
  const LOOK_MS = 20;

  const known = new WeakMap(); // images with an address
  const due = new Set();
  let isSet = false;
  let count = 0;
  const attribute = (image, name) => apply(getAttribute, image, [name]);
  const hasAddress = (image) => Boolean(attribute(image, "src") || attribute(image, "srcset"));
  const end = (image) => {
    due.delete(image);
    if (!hasAddress(image)) return;
    known.get(image).isLoaded = true;
    apply(dispatchEvent, image, [new Event("load")]);
  };
  // Images do not load before the scripts of the markup have run, which may wait for them.
  const endAll = () => {
    if (get(Document.prototype, "readyState", document) === "loading") return later(endAll, LOOK_MS);
    isSet = false;
    for (const image of [...due]) if (known.get(image).times <= OFTEN) end(image);
  };
  const begin = (image) => {
    if (!known.has(image)) known.set(image, { times: 0 });
    const one = known.get(image);
    one.isLoaded = hasAddress(image) && count >= MOST;
    if (!hasAddress(image) || one.isLoaded || due.has(image)) return;
    due.add(image);
    count += 1;
    one.times += 1;
    if (one.times > OFTEN) {
      later(() => end(image), PAUSE_MS);
    } else if (!isSet) {
      isSet = true;
      later(endAll);
    }
  };

  const change = (name, key, made) => {
    const own = Object.getOwnPropertyDescriptor(images, name);
    Object.defineProperty(images, name, { ...own, [key]: new Proxy(own[key], { apply: made }) });
  };
  for (const name of ["src", "srcset"]) {
    change(name, "set", (target, image, given) => {
      apply(target, image, given);
      begin(image);
    });
  }
  change("complete", "get", (target, image, given) =>
    apply(target, image, given) || known.get(image)?.isLoaded === true);
  for (const [name, side] of [["naturalWidth", "width"], ["naturalHeight", "height"]]) {
    change(name, "get", (target, image, given) => {
      const size = apply(target, image, given);
      if (size > 0 || !known.get(image)?.isLoaded) return size;
      return parseInt(attribute(image, side), 10) || 1;
    });
  }
  change("decode", "value", (target, image, given) =>
    hasAddress(image) ? new Promise((resolve) => { later(resolve); }) : apply(target, image, given));

  // The page may replace the method of all elements by one that calls this one.
  let isInside = false;
  const set = (target, image, given) => {
    if (isInside) return apply(target, image, given);
    isInside = true;
    try {
      apply(get(Element.prototype, "setAttribute"), image, given);
    } finally {
      isInside = false;
    }
    if (image instanceof HTMLImageElement && /^src(?:set)?$/i.test(given[0])) begin(image);
  };
  const value = new Proxy(setAttribute, { apply: set });
  Object.defineProperty(images, "setAttribute", { configurable: true, enumerable: true, writable: true, value });

  // Those of the markup, and of what scripts insert.
  const add = (node) => {
    if (!(node instanceof Element)) return;
    const found = node instanceof HTMLImageElement ? [node] : apply(querySelectorAll, node, ["img"]);
    for (const image of found) if (!known.has(image)) begin(image);
  };
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) add(node);
  }).observe(document, { subtree: true, childList: true });
})
