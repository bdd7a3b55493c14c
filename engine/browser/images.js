// Runs after `pending.js` in every document of a browser that loads no images. Chromium defers them
// there for ever, without an event, so that a page which waits for one would never show the rest of
// its content. Here they seem to have loaded: their elements get `load`, are complete and have a size.
(() => {
  // A page may declare classes of these names.
  const { Document, Element, Event, EventTarget, HTMLElement, HTMLImageElement, Node, Promise, Proxy, Reflect } = window;
  const { apply, get } = Reflect;
  const { addEventListener, dispatchEvent } = EventTarget.prototype;
  const { getAttribute, querySelector, querySelectorAll } = Element.prototype;
  const { parseInt } = window;
  const later = window.setTimeout.bind(window);
  const images = HTMLImageElement.prototype;
  const MOST = 1000; // events in a document
  // Events of one image, and of images each of which the handler of the one before begins. Later
  // ones, as of a camera's picture, come after a pause in which the page may come to rest.
  const OFTEN = 3;
  const DEEP = 100;
  const PAUSE_MS = 1500;
  // Without attributes: pages remove pictures that are too small, and count pixels.
  const SIZES = { width: 800, height: 600 };

  const known = new WeakMap(); // images with an address
  const due = new Set();
  let isSet = false;
  let count = 0;
  let depth = 0; // of the image whose handlers run
  const attribute = (image, name) => apply(getAttribute, image, [name]);
  const parentOf = Object.getOwnPropertyDescriptor(Node.prototype, "parentElement").get;
  const hasSource = (image) => {
    const parent = apply(parentOf, image, []);
    return parent !== null && apply(querySelector, parent, [":scope:is(picture) > source[srcset]"]) !== null;
  };
  const hasAddress = (image) => Boolean(attribute(image, "src") || attribute(image, "srcset") || hasSource(image));
  const end = (image) => {
    due.delete(image);
    if (!hasAddress(image)) return;
    const one = known.get(image);
    one.isLoaded = true;
    for (const resolve of one.waiting.splice(0)) resolve();
    const outer = depth;
    depth = one.depth;
    apply(dispatchEvent, image, [new Event("load")]);
    depth = outer;
  };

  // Images do not load before the scripts of the markup have run, which may wait for them. Later
  // the document may be opened again, and never be closed.
  let isParsed = false;
  // A page may clear all timers.
  const { port1, port2 } = new MessageChannel();
  const post = port2.postMessage.bind(port2);
  port1.onmessage = () => {
    isSet = false;
    for (const image of [...due]) if (!known.get(image).pauses) end(image);
  };
  const endSoon = () => {
    if (isSet || !isParsed || !due.size) return;
    isSet = true;
    post(0);
  };
  const onParsed = () => {
    isParsed = true;
    endSoon();
  };
  // Again after `document.open`, which removes all listeners.
  const listen = () => {
    if (get(Document.prototype, "readyState", document) === "complete") onParsed();
    else apply(addEventListener, document, ["DOMContentLoaded", onParsed]);
  };
  listen();

  const begin = (image) => {
    if (!known.has(image)) known.set(image, { times: 0, waiting: [] });
    const one = known.get(image);
    one.isLoaded = hasAddress(image) && count >= MOST;
    if (!hasAddress(image) || one.isLoaded || due.has(image)) return;
    due.add(image);
    count += 1;
    one.times += 1;
    one.depth = depth + 1;
    one.pauses = one.times > OFTEN || one.depth > DEEP;
    if (one.pauses) later(() => end(image), PAUSE_MS);
    else endSoon();
  };
  // Images that are in no document are unknown until the page waits for them.
  const expect = (image) => {
    if (image instanceof HTMLImageElement && !known.has(image)) begin(image);
  };
  const isLoaded = (image) => known.get(image)?.isLoaded === true;

  const change = (name, key, made, owner = images) => {
    const own = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(images, name, { ...own, [key]: new Proxy(own[key], { apply: made }) });
  };
  for (const name of ["src", "srcset"]) {
    change(name, "set", (target, image, given) => {
      apply(target, image, given);
      begin(image);
    });
  }
  change("complete", "get", (target, image, given) => {
    expect(image);
    return apply(target, image, given) || isLoaded(image);
  });
  change("onload", "set", (target, image, given) => {
    apply(target, image, given);
    expect(image);
  }, HTMLElement.prototype);
  for (const [name, side] of [["naturalWidth", "width"], ["naturalHeight", "height"], ["width", "width"], ["height", "height"]]) {
    change(name, "get", (target, image, given) => {
      const size = apply(target, image, given);
      return size > 0 || !isLoaded(image) ? size : parseInt(attribute(image, side), 10) || SIZES[side];
    });
  }
  change("decode", "value", (target, image, given) => {
    if (!hasAddress(image)) return apply(target, image, given);
    expect(image);
    return new Promise((resolve) => {
      if (isLoaded(image)) resolve();
      else known.get(image).waiting.push(resolve);
    });
  });
  // The page may replace the method of all elements by one that calls this one.
  const cover = (owner, name, then) => {
    let inside = null;
    change(name, "value", (target, image, given) => {
      if (inside === image) return apply(target, image, given);
      const outer = inside;
      inside = image;
      try {
        apply(get(owner.prototype, name), image, given);
      } finally {
        inside = outer;
      }
      then(image, `${given[0]}`);
    }, owner.prototype);
  };
  cover(Element, "setAttribute", (image, name) => {
    const given = name.toLowerCase();
    if (image instanceof HTMLImageElement && (given === "src" || given === "srcset")) begin(image);
  });
  cover(EventTarget, "addEventListener", (image, name) => {
    if (name === "load") expect(image);
  });

  // Those of the markup, and of what scripts insert.
  const add = (node) => {
    if (!(node instanceof Element)) return;
    const found = node instanceof HTMLImageElement ? [node] : apply(querySelectorAll, node, ["img"]);
    for (const image of found) expect(image);
  };
  new MutationObserver((changes) => {
    if (!isParsed) listen();
    for (const { addedNodes } of changes) for (const node of addedNodes) add(node);
  }).observe(document, { subtree: true, childList: true });
})
