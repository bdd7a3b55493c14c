// Runs in every document before its own scripts: tracks pending requests and timers, the initial
// use of storage, the text when the markup was parsed, pending navigation, and windows that the
// page tried to open. No observer can tell a page that waits for a response from one that is at
// rest, so `settle.js` reads these values. They are only reported here, not judged. It also limits
// what a page writes to its console.
((name) => {
  // A page may declare classes of these names.
  const { EventTarget, Document, DocumentFragment, Element, Request, Storage } = window;
  const { Array, Math, Proxy, Reflect, Set } = window;
  const { apply, get } = Reflect;
  const { addEventListener, dispatchEvent } = EventTarget.prototype; // before the page replaces them
  const { parse, stringify } = JSON;
  const withoutToJson = function withoutToJson(key) { return this[key]; }; // a page may define `toJSON`
  const { scheduler } = window;
  const { postTask } = scheduler;
  // A page that clears all timers does not clear tasks.
  const later = (then, ms = 0) => apply(postTask, scheduler, [then, { __proto__: null, delay: ms }]);
  const now = performance.now.bind(performance);
  const [Url, Told, Weak] = [window.URL, window.CustomEvent, window.WeakRef];
  const textOf = Object.getOwnPropertyDescriptor(Node.prototype, "textContent").get;
  const within = (type, node, key, ...given) => apply(get(type.prototype, key), node, given);
  const MOST = 1000; // entries of each kind

  // --- requests: fetch, XMLHttpRequest, and scripts added by scripts ---
  const begun = new Set();
  const outliving = new Set(); // requests to the page's own host that continue when it is left
  const answered = new Set(); // requests answered once: only their first response counts
  let endedAt = -Infinity;
  let seenAt = -Infinity; // when the page was at rest before
  let newsAt = -Infinity;
  const withoutQuery = (address) => address.replace(/[?#].*/s, "");
  const plain = (address) => { // of what is no address: itself
    try { return new Url(address, document.baseURI).href.replace(/#.*/s, ""); } catch { return `${address}`; }
  };
  const track = (kind, method, address, body) => {
    const given = typeof body === "string" ? body.slice(0, 2000) : "";
    const request = { at: now(), kind, method, address: `${address}`, given, isOn: () => true };
    request.url = plain(address);
    if (begun.size < MOST) begun.add(request);
    request.end = () => {
      if (!begun.delete(request)) return;
      const at = now();
      if (request.askedAt === undefined) endedAt = at;
      if (kind === "frame") return; // what its document asks for counts by itself
      const name = `${method} ${withoutQuery(request.address)} ${given.slice(0, 300)}`;
      if (answered.has(name) || answered.size >= MOST) return;
      answered.add(name);
      newsAt = at;
    };
    return request;
  };

  // The response's head settles the promise; its body is complete when the browser measures it. The
  // page's reaction follows a little later.
  const SOON_MS = 80;
  const soon = (request) => {
    request.isComplete = true; // and has no connection any more
    later(request.end, SOON_MS);
  };
  const measured = (entry) => {
    for (const request of outliving) {
      if (entry.startTime < request.at - 5 || request.address !== plain(entry.name)) continue;
      outliving.delete(request);
      return;
    }
    for (const request of begun) {
      const known = request.kind === "fetch" && !request.whole && entry.startTime >= request.at - 5;
      if (!known || request.url !== plain(entry.name)) continue;
      request.whole = true;
      if (request.answered) soon(request);
      return;
    }
  };
  new PerformanceObserver((list) => {
    if (begun.size || outliving.size) list.getEntries().forEach(measured);
  }).observe({ type: "resource" });
  const outlive = (address) => {
    const request = { at: now(), address: plain(address) };
    const isOwn = new Url(request.address).host === location.host;
    if (isOwn && outliving.size < MOST) outliving.add(request);
  };
  const begin = ([asked, options]) => {
    const one = asked instanceof Request ? asked : null;
    if (options?.keepalive ?? one?.keepalive) { // its response does not matter
      outlive(one ? one.url : asked);
      return null;
    }
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
          if (request.whole || !/^https?:/.test(request.url)) soon(request);
        };
        answer.then(come, () => soon(request));
      }
      return answer;
    },
  });

  Navigator.prototype.sendBeacon = new Proxy(Navigator.prototype.sendBeacon, {
    apply(target, self, given) {
      const sent = apply(target, self, given);
      if (sent) {
        try { outlive(given[0]); } catch { /* it was sent, which is all that its page knows */ }
      }
      return sent;
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

  // The load event covers scripts in the markup; one set by `innerHTML` never runs.
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

  // --- of what only the engine knows, it informs this script: requests that wait for a connection,
  // and documents of frames, which may send the page its data ---
  const detailOf = Object.getOwnPropertyDescriptor(Told.prototype, "detail").get;
  const queued = ({ at, isQueued, sentAt }, until) => (isQueued ? until : sentAt ?? at) - at;
  const wait = (request, isQueued) => {
    if (isQueued === (request.isQueued ?? false)) return;
    request.isQueued = isQueued;
    request.sentAt = now();
  };
  const framed = new Map(); // by the engine's name for the request
  const follow = (frames) => {
    const names = new Set(frames.map(([one]) => one));
    for (const [one, request] of framed) {
      if (names.has(one)) continue;
      framed.delete(one);
      const isCovered = loadedAt === -Infinity || request.at < loadedAt; // by the load event
      if (isCovered) begun.delete(request);
      else soon(request);
    }
    for (const [one, address, isQueued] of frames) {
      if (!framed.has(one)) framed.set(one, track("frame", "GET", address));
      wait(framed.get(one), isQueued);
    }
  };
  const byThemselves = new Set(["worker", "frame"]);
  const onInformed = (event) => {
    const told = parse(apply(detailOf, event, []));
    for (const [address, count] of told.queued) {
      const same = [...begun].filter((one) => one.url === address && !byThemselves.has(one.kind));
      same.forEach((request, place) => wait(request, place >= same.length - count)); // the newest ones
    }
    if (told.frames) follow(told.frames);
  };

  // --- style sheets: those that did not come, which nothing in the document tells ---
  const { HTMLLinkElement } = window;
  const hrefOfLink = Object.getOwnPropertyDescriptor(HTMLLinkElement.prototype, "href").get;
  const failed = new Set();
  const onError = ({ target }) => {
    if (target instanceof HTMLLinkElement && failed.size < MOST) failed.add(apply(hrefOfLink, target, []));
  };

  // --- workers: their requests are invisible here, so their messages count instead ---
  const workers = new WeakMap(); // each with its address and its last message
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
        const answered = () => { // a request made in the handler counts by itself
          const known = workers.get(worker);
          if (known.request) soon(known.request);
          known.request = null;
        };
        for (const end of ["message", "messageerror", "error"]) {
          within(EventTarget, worker, "addEventListener", end, answered);
        }
        expect(worker, "START"); // it may post a message unasked
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

  // A shared one answers through its port.
  if (typeof window.SharedWorker === "function") {
    window.SharedWorker = new Proxy(window.SharedWorker, {
      construct(target, given, made) {
        const worker = Reflect.construct(target, given, made);
        const request = track("worker", "START", given[0]);
        const answered = () => soon(request);
        apply(addEventListener, worker, ["error", answered]);
        for (const end of ["message", "messageerror"]) apply(addEventListener, worker.port, [end, answered]);
        return worker;
      },
    });
  }

  // --- IndexedDB: pages read their data there, in steps that no timer shows ---
  const MOST_USES = 100;
  const uses = new Set();
  let usedAt = -Infinity; // end of the last use
  const use = (target, events) => {
    if (uses.size >= MOST_USES) return;
    const one = {};
    const end = () => { if (uses.delete(one)) usedAt = now(); };
    for (const event of events) listen(target, event, end);
    uses.add(one);
  };
  const { IDBFactory, IDBDatabase } = window; // missing where storage is off
  if (typeof IDBFactory === "function" && typeof IDBDatabase === "function") {
    for (const [owner, key, events] of [
      [IDBFactory, "open", ["success", "error", "blocked"]],
      [IDBFactory, "deleteDatabase", ["success", "error", "blocked"]],
      [IDBDatabase, "transaction", ["complete", "abort"]],
    ]) {
      owner.prototype[key] = new Proxy(owner.prototype[key], {
        apply(target, self, given) {
          const answer = apply(target, self, given);
          try { use(answer, events); } catch { /* the page replaced what listens */ }
          return answer;
        },
      });
    }
  }

  // --- web sockets and event streams: the first message may bring the page's text, and so may the
  // first one after the page sent something: many protocols begin with a greeting ---
  const expectFirst = (target, kind, address, ends) => {
    const request = track(kind, "START", address);
    request.isComplete = true; // they are counted below
    const then = () => soon(request);
    for (const end of ends) apply(addEventListener, target, [end, then, { __proto__: null, once: true }]);
    return request;
  };
  if (typeof window.WebSocket === "function") {
    const { WebSocket } = window;
    const OPEN = 1;
    const stateOf = Object.getOwnPropertyDescriptor(WebSocket.prototype, "readyState").get;
    const sockets = new WeakMap(); // each with its last request, and when it was first asked
    const expectNext = (known, method) => {
      const request = track("socket", method, known.address);
      request.isComplete = true;
      if (method === "ASK") { // pages may do so without end, as to confirm each message
        if (known.askedAt <= seenAt) known.askedAt = request.at;
        request.askedAt = known.askedAt;
      }
      known.request = request;
    };
    const answered = ({ currentTarget: socket }) => {
      const { request } = sockets.get(socket);
      if (request.isAnswered) return;
      request.isAnswered = true;
      soon(request);
    };
    window.WebSocket = new Proxy(WebSocket, {
      construct(target, given, made) {
        const socket = Reflect.construct(target, given, made);
        const known = { address: `${given[0]}`, askedAt: -Infinity };
        sockets.set(socket, known);
        expectNext(known, "START");
        for (const end of ["message", "error", "close"]) apply(addEventListener, socket, [end, answered]);
        return socket;
      },
    });
    WebSocket.prototype.send = new Proxy(WebSocket.prototype.send, {
      apply(target, self, given) {
        const sent = apply(target, self, given);
        const known = sockets.get(self);
        if (known?.request.isAnswered && apply(stateOf, self, []) === OPEN) expectNext(known, "ASK");
        return sent;
      },
    });
  }

  // --- event streams: each holds a connection until it is closed ---
  const streams = [];
  const CLOSED = 2;
  const { EventSource } = window; // the page may replace it
  const stateOf = Object.getOwnPropertyDescriptor(EventSource.prototype, "readyState").get;
  const expecting = new WeakMap(); // the request of each stream
  const isStreaming = (known) => {
    const stream = known.deref();
    return stream !== undefined && apply(stateOf, stream, []) !== CLOSED;
  };
  window.EventSource = new Proxy(EventSource, {
    construct(target, given, made) {
      const stream = Reflect.construct(target, given, made);
      const known = new Weak(stream);
      const request = expectFirst(stream, "stream", given[0], ["message", "error"]);
      request.isOn = () => isStreaming(known); // no event tells that the page closed it
      expecting.set(stream, request);
      if (streams.length < MOST) streams.push(known);
      return stream;
    },
  });
  // Messages may have names.
  EventSource.prototype.addEventListener = new Proxy(addEventListener, {
    apply(target, self, given) {
      const answer = apply(target, self, given);
      const request = expecting.get(self);
      if (request) apply(target, self, [given[0], () => soon(request), { __proto__: null, once: true }]);
      return answer;
    },
  });

  // --- console: nobody reads it here, and without end it would hold up the driver of all pages ---
  const MOST_LINES = 1000;
  let lines = 0;
  for (const [level, write] of Object.entries(console)) {
    if (typeof write !== "function" || level === "context" || level === "createTask") continue;
    console[level] = new Proxy(write, {
      apply(target, self, given) {
        lines += 1;
        return lines > MOST_LINES ? undefined : apply(target, self, given);
      },
    });
  }

  // --- timers and their due times; a busy machine calls them much later ---
  const timers = new Map(); // Infinity for those that come again
  const texts = new Map(); // those of scripts in texts, whose call is not seen
  const idle = new Set();
  const MOST_SET = 20; // timers that are told one by one
  const LATE_MS = 50; // after its due time, a text counts as run
  const number = (ms) => (typeof ms === "number" ? ms : 0);
  let newest = 0; // number of the last timer, each of which has a higher one
  let newestSeen = Infinity; // until the first "seen": who sends none does not ask for these
  // Keep a call of `target` in `pending` until its function is called.
  const once = (pending, keep) => (target, self, given) => {
    const [then, ...more] = given;
    if (typeof then !== "function") {
      const id = apply(target, self, given);
      if (pending === timers && texts.size < MOST) texts.set(newest = id, now() + number(more[0]));
      return id;
    }
    if (pending.size >= MOST) return apply(target, self, given);
    let id = null;
    const told = new Proxy(then, {
      apply(own, owner, values) {
        pending.delete(id);
        return apply(own, owner, values);
      },
    });
    id = apply(target, self, [told, ...more]);
    keep(id, now() + number(more[0]));
    return id;
  };
  const again = (target, self, given) => {
    const id = apply(target, self, given);
    if (timers.size < MOST) timers.set(id, Infinity);
    return id;
  };
  const ended = (target, self, given) => {
    timers.delete(given[0]);
    texts.delete(given[0]);
    return apply(target, self, given);
  };
  const watched = {
    setTimeout: once(timers, (id, at) => timers.set(newest = id, at)),
    setInterval: again,
    requestIdleCallback: once(idle, (id) => idle.add(id)),
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
  // The delay in ms of the next one-time timer; null without any.
  const nextDue = (at) => {
    for (const [id, then] of texts) if (then < at - LATE_MS) texts.delete(id);
    const next = Math.min(...timers.values(), ...texts.values(), idle.size ? at : Infinity);
    return next < Infinity ? Math.max(0, next - at) : null;
  };
  const SOON_DUE_MS = 2_000;
  const dueSoon = (at) => [...timers.values(), ...texts.values()]
    .filter((then) => then - at < SOON_DUE_MS)
    .slice(0, MOST_SET)
    .map((then) => Math.max(0, then - at));
  // The delays of those that were set after the last "seen".
  const dueNew = (at) => [...timers, ...texts]
    .filter(([id, then]) => id > newestSeen && then < Infinity)
    .slice(0, MOST_SET)
    .map(([, then]) => Math.max(0, then - at));
  const comesAgain = () => [...timers.values()].includes(Infinity);

  // --- navigation ---
  let leftAt = -Infinity;
  let movedAt = -Infinity; // within its document, to another address
  const stays = () => { leftAt = -Infinity; };
  window.navigation?.addEventListener("navigate", (event) => {
    const { sameDocument, url } = event.destination;
    if (sameDocument || event.downloadRequest !== null || !/^https?:/.test(url)) return;
    leftAt = now();
    // known only after all listeners ran, whether one handles or cancels it
    later(() => { if (event.defaultPrevented || event.signal.aborted) stays(); });
  });
  for (const end of ["navigatesuccess", "navigateerror", "currententrychange"]) {
    window.navigation?.addEventListener(end, stays);
  }
  const routeOf = (url) => (url ?? "").replace(/#(?![/!]).*/s, "");
  window.navigation?.addEventListener("currententrychange", ({ from, navigationType }) => {
    if (navigationType && routeOf(from?.url) !== routeOf(location.href)) movedAt = now();
  });
  // Windows are not opened; the last addresses are kept for who clicked.
  const MOST_OPENED = 5;
  let windows = 0;
  const opening = [];
  const notes = (address) => {
    let href = "";
    try { href = new Url(address, document.baseURI).href; } catch { return href; }
    opening.push(href);
    if (opening.length > MOST_OPENED) opening.shift();
    return href;
  };
  const popups = []; // addresses of those that are no frame or window of the page itself
  const isPopup = (opened) => !opened || (opened.top === opened && opened !== window.top);
  window.open = new Proxy(window.open, {
    apply(target, self, given) {
      windows += 1;
      const href = given.length ? notes(given[0]) : "";
      const opened = apply(target, self, given);
      if (isPopup(opened) && popups.length < MOST_OPENED) popups.push(given[0] ? href : "");
      return opened;
    },
  });
  const { HTMLAnchorElement: Anchor } = window;
  const ofAnchor = (name) => Object.getOwnPropertyDescriptor(Anchor.prototype, name).get;
  const [hrefOf, targetOf] = [ofAnchor("href"), ofAnchor("target")];
  HTMLElement.prototype.click = new Proxy(HTMLElement.prototype.click, {
    apply(target, self, given) {
      if (self instanceof Anchor && !/^(?:|_self|_top|_parent)$/i.test(apply(targetOf, self, []))) {
        notes(apply(hrefOf, self, []));
      }
      return apply(target, self, given);
    },
  });

  // --- use of the page's storage before its first access; earlier pages filled it ---
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
      const storage = apply(target, self, given); // throws without storage
      if (!known) {
        known = true;
        try { stored = Math.max(stored, size(storage)); } catch { /* then nobody can write */ }
      }
      return storage;
    };
    Object.defineProperty(window, one, { ...rest, get: new Proxy(open, { apply: opened }) });
  }

  // --- the page's text: number of characters, without white space, scripts and styles ---
  const roots = [];
  let shadowAt = -Infinity; // time of the last change in a shadow root
  const shadows = new MutationObserver(() => { shadowAt = now(); });
  // A closed root hides its content from the page's other scripts, not from a reader. It is opened
  // for the engine's own world, and looks closed in this one.
  const closed = new WeakSet();
  const isClosed = (root) => within(WeakSet, closed, "has", root);
  const asOpen = ([init, ...more]) =>
    (init?.mode === "closed" ? [{ __proto__: init, mode: "open" }, ...more] : [init, ...more]);
  for (const [type, key, shown] of [
    [Element, "shadowRoot", (root) => (isClosed(root) ? null : root)],
    [ShadowRoot, "mode", (mode, root) => (isClosed(root) ? "closed" : mode)],
  ]) {
    const { get: read, ...rest } = Object.getOwnPropertyDescriptor(type.prototype, key);
    const look = (target, self) => shown(apply(target, self, []), self);
    Object.defineProperty(type.prototype, key, { ...rest, get: new Proxy(read, { apply: look }) });
  }
  Element.prototype.attachShadow = new Proxy(Element.prototype.attachShadow, {
    apply(target, self, given) {
      const wanted = given.length ? asOpen(given) : given;
      const root = apply(target, self, wanted);
      if (wanted.length && wanted[0] !== given[0]) within(WeakSet, closed, "add", root);
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
  // In all, and without those in shadow roots.
  const lettersSaid = () => {
    const body = get(Document.prototype, "body", document);
    if (!body) return { said: 0, light: 0 };
    const light = lettersOf(Element, body);
    let said = light;
    for (const known of roots) {
      const root = known.deref();
      if (root && apply(isConnected, root, [])) said += lettersOf(DocumentFragment, root);
    }
    return { said, light };
  };
  let first = 0; // text size after the markup, before its deferred scripts
  let loadedAt = -Infinity;
  const read = () => { try { first = lettersSaid().said; } catch { first = 0; } };
  const state = () => get(Document.prototype, "readyState", document);
  const onReadyState = () => { if (state() === "interactive") read(); };
  const onLoad = () => { loadedAt = now(); };

  // React's server sends sections of a page late, and its function shows each one by a timer.
  const showsSections = () => {
    try { return typeof window.$RC === "function"; } catch { return false; }
  };

  const tell = (ask) => {
    const at = now();
    const open = [...begun].filter((request) => request.isOn()).map((request) => {
      const { kind, method, given } = request;
      const told = { age: at - request.at, queued: queued(request, at), kind, method };
      told.since = at - (request.askedAt ?? request.at); // of the first one of a series
      if (told.since < 1000) return told;
      return { ...told, address: request.url, given };
    });
    const ago = { ended: endedAt, news: newsAt, left: leftAt, moved: movedAt, shadow: shadowAt, used: usedAt };
    for (const key in ago) ago[key] = ago[key] === -Infinity ? null : at - ago[key];
    const age = at - Math.max(loadedAt, 0);
    const connected = [...begun].filter((request) => request.isOn() && !request.isComplete);
    return { open, ago, age, due: nextDue(at), soon: dueSoon(at), set: newest > newestSeen ? dueNew(at) : [], again: comesAgain(), using: uses.size > 0, windows, opening, popups, failed: [...failed], stored, sections: showsSections(), seen: newestSeen < Infinity, outliving: outliving.size, connections: connected.length + streams.filter(isStreaming).length, first, ...(ask ? lettersSaid() : { said: null }) };
  };
  const answer = (event) => {
    const detail = apply(detailOf, event, []);
    if (detail === "seen") { // later changes are new
      movedAt = -Infinity;
      seenAt = now();
      newestSeen = newest;
      opening.length = 0;
      popups.length = 0;
      return read();
    }
    if (detail === "stays") return stays(); // a download, or an answer without a document
    let told = "";
    try { told = stringify(tell(detail === "said"), withoutToJson); } catch { /* it then counts as still */ }
    apply(dispatchEvent, document, [new Told(name, { detail: told })]);
  };
  // Again after `document.open`, which removes all listeners.
  const addListeners = () => {
    apply(addEventListener, document, [`${name}?`, answer]);
    apply(addEventListener, document, [`${name}>`, onInformed]);
    apply(addEventListener, document, ["readystatechange", onReadyState]);
    apply(addEventListener, window, ["load", onLoad, { capture: true, once: true }]);
    apply(addEventListener, window, ["error", onError, true]);
  };
  addListeners();
  new MutationObserver(addListeners).observe(document, { childList: true });
})
