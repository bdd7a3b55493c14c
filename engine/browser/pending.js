// Put into every document before its own scripts run: knows which requests these have under way,
// which timers, how full its storage was, what the page said when its markup was read, whether it is on its way to another
// one, and how many windows it wanted to open. While a page waits for an answer, no observer can
// tell it from one that is ready, so `settle.js` asks here. Nothing is judged here, only told.
((name) => {
  const { apply, get } = Reflect;
  const { stringify } = JSON;
  const later = window.setTimeout.bind(window);
  const now = performance.now.bind(performance);
  const [Url, Told, Weak] = [window.URL, window.CustomEvent, window.WeakRef];
  const textOf = Object.getOwnPropertyDescriptor(Node.prototype, "textContent").get;
  const within = (type, node, key, ...given) => apply(get(type.prototype, key), node, given);
  const MOST = 1000; // of what is remembered of each sort

  // --- requests: fetch, XMLHttpRequest, and scripts that a script asks for ---
  const begun = new Set();
  const answered = new Set(); // what was answered once: only the first answer of each is news
  let endedAt = -Infinity;
  let newsAt = -Infinity;
  const withoutQuery = (address) => address.replace(/[?#].*/s, "");
  const track = (kind, method, address, body) => {
    const given = typeof body === "string" ? body.slice(0, 2000) : "";
    const request = { at: now(), kind, method, address: `${address}`, given, isOn: () => true };
    if (begun.size < MOST) begun.add(request);
    request.end = () => {
      if (!begun.delete(request)) return;
      endedAt = now();
      const name = `${method} ${withoutQuery(request.address)} ${given.slice(0, 300)}`;
      if (answered.has(name) || answered.size >= MOST) return;
      answered.add(name);
      newsAt = endedAt;
    };
    return request;
  };

  // The answer's head settles the promise; its body has come when the browser measures it. What
  // the page makes of that comes a little later.
  const SOON_MS = 80;
  const soon = (request) => later(request.end, SOON_MS);
  const plain = (address) => new Url(address, document.baseURI).href.replace(/#.*/s, "");
  const measured = (entry) => {
    for (const request of begun) {
      const known = request.kind === "fetch" && !request.whole && entry.startTime >= request.at - 5;
      if (!known || plain(request.address) !== plain(entry.name)) continue;
      request.whole = true;
      if (request.answered) soon(request);
      return;
    }
  };
  new PerformanceObserver((list) => {
    if (begun.size) list.getEntries().forEach(measured);
  }).observe({ type: "resource" });
  const begin = ([asked, options]) => {
    const one = asked instanceof Request ? asked : null;
    if (options?.keepalive ?? one?.keepalive) return null; // sent for its own sake
    const method = options?.method ?? one?.method ?? "GET";
    const request = track("fetch", method, one ? one.url : asked, options?.body);
    const signal = options?.signal ?? one?.signal;
    if (signal) within(EventTarget, signal, "addEventListener", "abort", request.end);
    return request;
  };
  window.fetch = new Proxy(window.fetch, {
    apply(target, self, given) {
      let request = null;
      try { request = begin(given); } catch { /* what is no request fails by itself */ }
      const answer = apply(target, self, given);
      if (request) {
        const come = () => {
          request.answered = true;
          if (request.whole || !/^https?:/.test(plain(request.address))) soon(request);
        };
        answer.then(come, () => soon(request));
      }
      return answer;
    },
  });

  const opened = new WeakMap();
  const listen = (target, event, then) =>
    within(EventTarget, target, "addEventListener", event, then, { once: true });
  XMLHttpRequest.prototype.open = new Proxy(XMLHttpRequest.prototype.open, {
    apply(target, self, given) {
      const answer = apply(target, self, given);
      opened.set(self, given);
      return answer;
    },
  });
  XMLHttpRequest.prototype.send = new Proxy(XMLHttpRequest.prototype.send, {
    apply(target, self, given) {
      const [method, address] = opened.get(self) ?? [];
      if (method) listen(self, "loadend", track("xhr", method, address, given[0]).end);
      return apply(target, self, given);
    },
  });

  // Of those in the markup the load event tells; one that `innerHTML` makes never runs.
  const source = Object.getOwnPropertyDescriptor(HTMLScriptElement.prototype, "src");
  const isConnected = Object.getOwnPropertyDescriptor(Node.prototype, "isConnected").get;
  Object.defineProperty(HTMLScriptElement.prototype, "src", {
    ...source,
    set: new Proxy(source.set, {
      apply(target, self, given) {
        apply(target, self, given);
        const request = track("script", "GET", apply(source.get, self, []));
        request.isOn = () => apply(isConnected, self, []);
        for (const end of ["load", "error"]) listen(self, end, request.end);
      },
    }),
  });

  // --- workers: what they ask nobody sees from here, so that their answer stands for it ---
  const workers = new WeakMap(); // each with its address, and what it was asked last
  const expect = (worker, method) => {
    const known = workers.get(worker);
    if (!known) return;
    if (known.request) known.request.method = method;
    else known.request = track("worker", method, known.address);
  };
  if (typeof window.Worker === "function") {
    const { Worker, MessagePort } = window;
    window.Worker = new Proxy(Worker, {
      construct(target, given, made) {
        const worker = Reflect.construct(target, given, made);
        workers.set(worker, { address: `${given[0]}`, request: null });
        const answered = () => { // what the page asks for with the answer is a request of its own
          const known = workers.get(worker);
          if (known.request) soon(known.request);
          known.request = null;
        };
        for (const end of ["message", "messageerror", "error"]) {
          within(EventTarget, worker, "addEventListener", end, answered);
        }
        expect(worker, "START"); // it may tell something unasked
        return worker;
      },
    });
    Worker.prototype.postMessage = new Proxy(Worker.prototype.postMessage, {
      apply(target, self, given) {
        apply(target, self, given);
        const moved = given[1]?.transfer ?? given[1];
        // Through a port it answers elsewhere.
        const isPort = (one) => one instanceof MessagePort;
        if (!(Array.isArray(moved) && moved.some(isPort))) expect(self, "ASK");
      },
    });
    Worker.prototype.terminate = new Proxy(Worker.prototype.terminate, {
      apply(target, self, given) {
        workers.get(self)?.request?.end();
        return apply(target, self, given);
      },
    });
  }

  // --- timers: when each is due ---
  const timers = new Map();
  const due = (id, ms) => {
    const at = now();
    if (timers.size >= MOST) {
      for (const [old, then] of timers) if (then < at) timers.delete(old);
    }
    if (timers.size < MOST) timers.set(id, at + ms);
  };
  const lasting = (lasts) => (target, self, given) => {
    const id = apply(target, self, given);
    due(id, lasts(given[1]));
    return id;
  };
  const ended = (target, self, given) => {
    timers.delete(given[0]);
    return apply(target, self, given);
  };
  const idle = new Set(); // a busy machine may let these wait for long
  const idly = (target, self, [then, ...more]) => {
    if (typeof then !== "function" || idle.size >= MOST) return apply(target, self, [then, ...more]);
    let id = null;
    const told = new Proxy(then, {
      apply(own, owner, given) {
        idle.delete(id);
        return apply(own, owner, given);
      },
    });
    id = apply(target, self, [told, ...more]);
    idle.add(id);
    return id;
  };
  const number = (ms) => (typeof ms === "number" ? ms : 0);
  const watched = {
    setTimeout: lasting(number),
    setInterval: lasting(() => Infinity),
    requestIdleCallback: idly,
    clearTimeout: ended,
    clearInterval: ended,
    cancelIdleCallback(target, self, given) {
      idle.delete(given[0]);
      return apply(target, self, given);
    },
  };
  for (const [one, watch] of Object.entries(watched)) {
    window[one] = new Proxy(window[one], { apply: watch });
  }
  // In how many ms the next one is due that comes once; null without any.
  const nextDue = (at) => {
    let next = idle.size ? 0 : null;
    for (const then of timers.values()) {
      const left = then - at;
      if (left > -50 && left < Infinity && (next === null || left < next)) next = left;
    }
    return next;
  };
  const comesAgain = () => [...timers.values()].includes(Infinity);

  // --- where the page goes ---
  let leftAt = -Infinity;
  let movedAt = -Infinity; // within its document, to another address
  const stays = () => { leftAt = -Infinity; };
  window.navigation?.addEventListener("navigate", (event) => {
    const { sameDocument, url } = event.destination;
    if (sameDocument || event.downloadRequest !== null || !/^https?:/.test(url)) return;
    leftAt = now();
    // whether a listener of the page takes it over or calls it off is known after all were asked
    later(() => { if (event.defaultPrevented || event.signal.aborted) stays(); });
  });
  for (const end of ["navigatesuccess", "navigateerror", "currententrychange"]) {
    window.navigation?.addEventListener(end, stays);
  }
  const routeOf = (url) => (url ?? "").replace(/#(?![/!]).*/s, "");
  window.navigation?.addEventListener("currententrychange", ({ from, navigationType }) => {
    if (navigationType && routeOf(from?.url) !== routeOf(location.href)) movedAt = now();
  });
  let windows = 0;
  window.open = new Proxy(window.open, {
    apply(target, self, given) {
      windows += 1;
      return apply(target, self, given);
    },
  });

  // --- how full the page's storage was when it was first asked for; earlier pages filled it ---
  const MOST_KEYS = 10_000;
  let stored = 0;
  const size = (storage) => {
    const count = Math.min(storage.length, MOST_KEYS);
    let chars = storage.length > count ? Infinity : 0;
    for (let at = 0; at < count; at += 1) {
      const key = within(Storage, storage, "key", at);
      chars += key.length + within(Storage, storage, "getItem", key).length;
    }
    return chars;
  };
  for (const one of ["localStorage", "sessionStorage"]) {
    const { get: open, ...rest } = Object.getOwnPropertyDescriptor(window, one);
    let known = false;
    const opened = (target, self, given) => {
      const storage = apply(target, self, given); // throws where there is none
      if (!known) {
        known = true;
        try { stored = Math.max(stored, size(storage)); } catch { /* then nobody can write */ }
      }
      return storage;
    };
    Object.defineProperty(window, one, { ...rest, get: new Proxy(open, { apply: opened }) });
  }

  // --- what the page says: how many characters, without white space, scripts and styles ---
  const roots = [];
  let shadowAt = -Infinity; // when something changed where no observer of a document looks
  const shadows = new MutationObserver(() => { shadowAt = now(); });
  Element.prototype.attachShadow = new Proxy(Element.prototype.attachShadow, {
    apply(target, self, given) {
      const root = apply(target, self, given);
      if (roots.length < MOST) {
        roots.push(new Weak(root));
        shadows.observe(root, { subtree: true, childList: true, characterData: true });
      }
      return root;
    },
  });
  const letters = (node) => apply(textOf, node, []).replace(/\s+/g, "").length;
  const UNSEEN = "script, style, template, noscript";
  const lettersOf = (type, root) => {
    let length = letters(root);
    for (const one of within(type, root, "querySelectorAll", UNSEEN)) length -= letters(one);
    return length;
  };
  const lettersSaid = () => {
    const body = get(Document.prototype, "body", document);
    if (!body) return 0;
    let length = lettersOf(Element, body);
    for (const known of roots) {
      const root = known.deref();
      if (root && apply(isConnected, root, [])) length += lettersOf(DocumentFragment, root);
    }
    return length;
  };
  let first = 0; // when all of the markup was there and none of its deferred scripts had run
  let loadedAt = -Infinity;
  const read = () => { try { first = lettersSaid(); } catch { first = 0; } };
  const state = () => get(Document.prototype, "readyState", document);
  document.addEventListener("readystatechange", () => { if (state() === "interactive") read(); });
  window.addEventListener("load", () => { loadedAt = now(); }, { capture: true, once: true });

  const tell = (ask) => {
    const at = now();
    const open = [...begun].filter((request) => request.isOn()).map((request) => {
      const { kind, method, given } = request;
      const told = { age: at - request.at, kind, method };
      if (told.age < 1000) return told;
      return { ...told, address: plain(request.address), given };
    });
    const ago = { ended: endedAt, news: newsAt, left: leftAt, moved: movedAt, shadow: shadowAt };
    for (const key in ago) ago[key] = ago[key] === -Infinity ? null : at - ago[key];
    const age = at - Math.max(loadedAt, 0);
    return { open, ago, age, due: nextDue(at), again: comesAgain(), windows, stored, first, said: ask ? lettersSaid() : null };
  };
  const answer = (event) => {
    if (event.detail === "seen") { // what comes from now on is new
      movedAt = -Infinity;
      return read();
    }
    let told = "";
    try { told = stringify(tell(event.detail === "said")); } catch { /* it then counts as still */ }
    document.dispatchEvent(new Told(name, { detail: told }));
  };
  document.addEventListener(`${name}?`, answer);
})
