// Runs inside the page, in a world of its own: waits until the page is ready, then hands over
// what a reader would see. The page's scripts can neither see nor replace anything in here.
(async (ask) => {
  const started = performance.now();
  const left = () => ask.limitMs - (performance.now() - started);

  // Ready: the load event has fired and neither DOM nor resources changed for `settleMs`.
  // Before the load event nothing is observed: a parser's thousands of changes would all be told.
  const loaded = () => new Promise((resolve) => {
    if (document.readyState === "complete") return resolve(true);
    const limit = setTimeout(() => resolve(false), Math.max(left(), 0));
    addEventListener("load", () => { clearTimeout(limit); resolve(true); }, { once: true });
  });

  // Does a request of the page's scripts wait for its answer? (asked of `pending.js`)
  const pending = () => {
    let told = false;
    const hear = () => { told = true; };
    document.addEventListener(ask.pending, hear, { once: true });
    document.dispatchEvent(new Event(`${ask.pending}?`));
    document.removeEventListener(ask.pending, hear);
    return told;
  };

  const quiet = () => new Promise((resolve) => {
    let last = performance.now();
    const touch = () => { last = performance.now(); };
    const dom = new MutationObserver(touch);
    dom.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const resources = new PerformanceObserver(touch);
    resources.observe({ type: "resource" });
    const end = (settled) => {
      dom.disconnect();
      resources.disconnect();
      resolve(settled);
    };
    const look = () => {
      if (left() <= 0) return end(false);
      let rest = ask.settleMs - (performance.now() - last);
      if (rest <= 0) {
        if (!pending()) return end(true);
        touch();
        rest = ask.settleMs;
      }
      setTimeout(look, Math.min(left(), Math.max(rest, 1)));
    };
    look();
  });

  const there = () => new Promise((resolve) => {
    const end = (found) => { dom.disconnect(); clearTimeout(limit); resolve(found); };
    const look = () => { if (document.querySelector(ask.waitFor)) end(true); };
    const dom = new MutationObserver(look);
    dom.observe(document, { subtree: true, childList: true, attributes: true });
    const limit = setTimeout(() => end(false), Math.max(left(), 0));
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

  const links = () => {
    const found = new Set();
    for (const anchor of document.querySelectorAll("a[href], area[href]")) {
      if (found.size >= ask.maxLinks) break;
      const address = web(typeof anchor.href === "string" ? anchor.href : "");
      if (address && address.length <= 8192) found.add(address);
    }
    return [...found];
  };

  // What is over the limit is cut off before it costs a layout, a copy and a transport.
  const cut = () => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let length = 0;
    for (let count = 1; texts.nextNode(); count += 1) {
      const text = texts.currentNode;
      if (LEFT_OUT.has(text.parentNode.tagName)) continue;
      const room = ask.maxText - length;
      length += text.length;
      if (length <= ask.maxText && count <= ask.maxTexts) continue;
      text.data = text.data.slice(0, room);
      const rest = document.createRange();
      rest.setStartAfter(text);
      rest.setEndAfter(document.body.lastChild);
      rest.deleteContents();
      return true;
    }
    return false;
  };

  const LEFT_OUT = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "IFRAME", "OBJECT"]);

  const hidden = (element) =>
    !element.checkVisibility() && getComputedStyle(element).display !== "contents";

  const keepDescription = (head) => {
    for (const child of [...head.children]) {
      if (!child.matches('meta[name="description" i]')) child.remove();
    }
  };

  // The clone's elements stand in the same order as the live ones, so the two lists run together.
  const visible = () => {
    const root = document.documentElement;
    const copy = root.cloneNode(true);
    const live = root.getElementsByTagName("*");
    const twins = copy.querySelectorAll("*");
    for (let at = 0; at < twins.length; at += 1) {
      const element = live[at];
      if (element.tagName === "HEAD") {
        at += element.getElementsByTagName("*").length;
        keepDescription(twins[at - element.getElementsByTagName("*").length]);
      } else if (LEFT_OUT.has(element.tagName) || hidden(element)) {
        at += element.getElementsByTagName("*").length;
        twins[at - element.getElementsByTagName("*").length].remove();
      } else if (element.tagName === "A" && element.hasAttribute("href")) {
        twins[at].setAttribute("href", web(element.href));
      } else if (element.tagName === "IMG" && element.hasAttribute("src")) {
        twins[at].setAttribute("src", web(element.src));
      }
    }
    return copy.outerHTML;
  };

  const settled = await (ask.waitFor ? there() : loaded().then((yes) => yes && quiet()));
  const [timing] = performance.getEntriesByType("navigation");
  const found = links();
  const wasCut = document.body ? cut() : false;
  const text = document.body ? document.body.innerText : "";
  const html = document.documentElement ? visible() : "";
  return {
    url: location.href,
    title: document.title.slice(0, 4096).toWellFormed(),
    html: html.slice(0, ask.maxHtml).toWellFormed(),
    text: text.slice(0, ask.maxText).toWellFormed(),
    truncated: wasCut || html.length > ask.maxHtml || text.length > ask.maxText,
    links: found,
    settled,
    contentType: document.contentType,
    status: timing ? timing.responseStatus : 0,
    bytes: timing ? timing.decodedBodySize : 0,
    responseMs: timing ? timing.responseStart : 0,
    renderMs: timing ? performance.now() - timing.responseStart : 0,
  };
})
