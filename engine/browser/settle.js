// Runs inside the page, in an isolated world: wait until a page is at rest after its load event.
// `take.js` and agent tabs share this rule; `pending.js` supplies its data.
//
// A page whose text came with its markup is at rest when nothing changed for `settleMs`. One that
// scripts wrote, or whose address they changed, needs `RENDERED_MS` without new text or a first
// response. No page is at rest while a request of its own is pending that was sent less than
// `requestMs` ago, or waits for a connection, nor, for the same time, while it shows nothing and
// content may still arrive, nor, for a shorter one, while it uses IndexedDB, nor for `frameMs` while
// it has a new frame: the engine reports the request for a frame's document, but not at once. Nor,
// for `computesMs` in all, while its scripts compute, nor, for `revealMs` in all, before a timer is
// due, or an animation ends, that may show text which its markup hides.
((ask, left, later) => {
  const RENDERED_MS = 500;
  const STEPS_MS = 2_000; // for text written step by step, by one timer each
  const RESTLESS_MS = 3_000; // without more text, of a page that only changes attributes
  const FEW_LETTERS = 5; // a number that is counted up, or a clock, is no new text
  const REVEAL_MS = 500; // for a timer that may show hidden text; menus are hidden as well
  const HELD_MS = 1_000; // for requests known to be held open, or irrelevant ones
  const THIN = 200; // letters; a page with fewer may be a frame that waits for its content
  const LOOK_MS = 50;
  const SOON_MS = 10; // until the scripts of a page are at rest
  const QUIET_MS = 40; // after the last change, as of the scripts that wait for the load event
  const MOST = 5_000;
  const MOST_FRAMES = 50;
  const TELLING = new Set(["worker", "socket", "stream"]); // known by their messages only
  const NOT_TEXT = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT"]);
  const PICTURES = "img, svg, canvas, video, picture, object, embed, iframe, frame, input[type=image]";
  const BUSY = "[aria-busy=true], [role=progressbar]";

  const documentHas = (owner, name) => Reflect.get(Document.prototype, name, owner);
  const page = (name) => documentHas(document, name);
  const documentDoes = (owner, name, ...given) =>
    documentHas(owner, name).apply(owner, given);
  const pageDoes = (name, ...given) => documentDoes(document, name, ...given);

  // Read `pending.js`; null where it does not run, as in a sandbox without scripts.
  const tellOf = (owner, detail) => {
    let told = null;
    const hear = (event) => {
      try { told = JSON.parse(event.detail); } catch { told = null; }
    };
    documentDoes(owner, "addEventListener", ask.pending, hear, { once: true });
    documentDoes(owner, "dispatchEvent", new CustomEvent(`${ask.pending}?`, { detail }));
    documentDoes(owner, "removeEventListener", ask.pending, hear);
    return told;
  };
  // Visible frames of the page's own origin, whose text is part of the page's.
  const frames = () => {
    const owners = [document];
    for (const owner of owners) { // grows by nested frames
      for (const frame of documentDoes(owner, "querySelectorAll", "iframe, frame")) {
        // undefined for an element of that name in another namespace
        const inner = owners.length <= MOST_FRAMES && seen(frame) ? frame.contentDocument : null;
        if (inner) owners.push(inner);
      }
    }
    return owners.slice(1);
  };
  const tell = (detail) => {
    const told = tellOf(document, detail);
    if (detail === "seen") for (const owner of frames()) tellOf(owner, detail);
    if (told === null) return null;
    told.open.push(...openStyles(told));
    told.inner = [];
    for (const owner of frames()) {
      const inner = tellOf(owner, "");
      if (inner === null) continue;
      told.inner.push(inner);
      told.open.push(...inner.open);
      told.set.push(...inner.set);
      const ends = [told.ago.ended, inner.ago.ended].filter((ms) => ms !== null);
      told.ago.ended = ends.length ? Math.min(...ends) : null;
    }
    return told;
  };

  // The names of a form's fields shadow the form's own properties, in every world.
  const does = (element, name, ...given) =>
    Reflect.get(Element.prototype, name, element).apply(element, given);
  const property = (name) => Object.getOwnPropertyDescriptor(Element.prototype, name).get;
  const [tagOf, shadowOf] = [property("tagName"), property("shadowRoot")];
  const tag = (element) => tagOf.call(element);
  const seen = (element) => does(element, "checkVisibility", { visibilityProperty: true });
  const hasSize = (element) => {
    const { width, height } = does(element, "getBoundingClientRect");
    // an image may have no size before it has loaded; a tracking pixel declares that
    const unknown = tag(element) === "IMG" && !width && !height && !does(element, "hasAttribute", "width");
    return unknown || (width > 1 && height > 1);
  };
  const showsText = (root) => {
    const texts = pageDoes("createTreeWalker", root, NodeFilter.SHOW_TEXT);
    for (let count = 0; texts.nextNode() && count < MOST; count += 1) {
      const { data, parentElement } = texts.currentNode;
      if (!/\S/.test(data)) continue;
      if (!parentElement || (!NOT_TEXT.has(tag(parentElement)) && seen(parentElement))) return true;
    }
    return false;
  };
  const showsPicture = (root) => {
    for (const one of root.querySelectorAll(PICTURES)) if (seen(one) && hasSize(one)) return true;
    return false;
  };
  const showsBackground = (root) => {
    for (const one of [root, ...[...root.querySelectorAll("*")].slice(0, 200)]) {
      if (one instanceof Element && seen(one) && getComputedStyle(one).backgroundImage !== "none") return true;
    }
    return false;
  };
  const inShadows = (root) => [...root.querySelectorAll("*")].slice(0, MOST)
    .some((one) => shadowOf.call(one) !== null && shows(shadowOf.call(one)));
  const shows = (root) =>
    showsText(root) || showsPicture(root) || showsBackground(root) || inShadows(root);
  // Whether text or an image is visible.
  const showing = () => {
    const root = page("body") ?? page("documentElement");
    return root !== null && (!(root instanceof HTMLElement) || tag(root) === "FRAMESET" || shows(root));
  };

  // Whether a script may run, and whether a visible element tells that something is being done.
  const DATA = "[type]:not([type=''], [type=module], [type*=javascript i], [type*=ecmascript i])";
  const hasCode = (owner = document) => documentDoes(owner, "querySelector", `script:not(${DATA})`) !== null;
  const lettersIn = (owner) => tellOf(owner, "said")?.said ?? Infinity;
  const isBusy = () => {
    const found = pageDoes("querySelector", BUSY);
    return found !== null && seen(found) && does(found, "getAttribute", "aria-valuenow") !== "100";
  };

  // Letters that are displayed; Infinity where there is no body of HTML.
  const lettersShown = () => {
    const body = page("body");
    if (!(body instanceof HTMLElement)) return Infinity;
    return Reflect.get(HTMLElement.prototype, "innerText", body).replace(/\s+/g, "").length;
  };
  // Times until the animations and transitions of the document end that do so soon.
  const animations = () => pageDoes("getAnimations").slice(0, MOST)
    .filter(({ playState }) => playState === "running")
    .map((one) => Number(one.effect?.getComputedTiming().endTime) - Number(one.currentTime))
    .filter((ms) => ms > 0 && ms < ask.revealMs);
  const isMore = (before, after) =>
    Math.abs(after - before) > 20 + Math.max(before, after) / 10;

  const site = (host) => host.split(".").slice(-2).join(".");
  const isOwn = ({ address }) => {
    try {
      return site(new URL(address).hostname) === site(location.hostname);
    } catch {
      return true;
    }
  };
  const NEW_FRAMES = ":is(iframe, frame)[src]:not([loading=lazy i])";
  // Style sheets that scripts add: a loader of bundles shows its part of a page when they are there,
  // and they show or hide text. No event is heard here of those that were added before this script ran.
  const STYLES = 'link[rel~=stylesheet i][href]:not([href=""], [rel~=alternate i], [disabled])';
  const stylesOf = () => [...pageDoes("querySelectorAll", STYLES)].filter((one) => one instanceof HTMLLinkElement);
  const [earlierStyles, endedStyles] = [new WeakSet(page("readyState") === "complete" ? stylesOf() : []), new WeakSet()];
  const newStyles = new WeakMap(); // when they were found, and were there
  for (const end of ["load", "error"]) {
    pageDoes("addEventListener", end, ({ target }) => {
      if (target instanceof HTMLLinkElement) endedStyles.add(target);
    }, true);
  }
  const ofLink = (name, style) => Reflect.get(HTMLLinkElement.prototype, name, style);
  const isThere = (style, failed) => ofLink("sheet", style) !== null || failed.includes(ofLink("href", style))
    || performance.getEntriesByName(withoutHash(ofLink("href", style))).length > 0;
  const mayLoad = (style) => !endedStyles.has(style) && /^(?:text\/css)?$/i.test(ofLink("type", style))
    && /^https?:/.test(ofLink("href", style)) && URL.canParse(ofLink("href", style));
  const openStyles = ({ seen, failed }) => {
    const now = performance.now();
    const open = [];
    for (const style of stylesOf().filter(mayLoad)) {
      const known = newStyles.get(style) ?? { at: now, thereAt: null };
      if (isThere(style, failed)) known.thereAt ??= now;
      if (known.thereAt === now && !newStyles.has(style)) continue; // since long ago
      newStyles.set(style, known);
      const isOver = (known.thereAt !== null && now - known.thereAt > HELD_MS) // its event may be late
        || (seen && earlierStyles.has(style));
      const age = now - known.at;
      if (!isOver) open.push({ kind: "style", method: "GET", address: ofLink("href", style), age, since: age, queued: 0, given: "" });
    }
    return open;
  };
  const withoutHash = (address) => address.replace(/#.*/s, "");
  const isOwnDocument = (address, owner) => {
    try {
      const { protocol, href } = new URL(address, Reflect.get(Node.prototype, "baseURI", owner));
      // a browser loads no document into itself
      const isItself = withoutHash(href) === withoutHash(documentHas(owner, "URL"));
      return /^https?:$/.test(protocol) && !isItself && isOwn({ address: href });
    } catch {
      return false;
    }
  };
  // The name of a request across pages: its numbers and keys may differ.
  const shape = (text) => text.replace(/[\w-]*\d[\w-]*/g, "*");
  const sum = (text) => {
    let found = 0;
    for (let at = 0; at < text.length; at += 1) found = (Math.imul(found, 31) + text.charCodeAt(at)) | 0;
    return found;
  };
  const nameOf = ({ kind, method, address, given }) => {
    let url;
    try { url = new URL(address); } catch { return ""; }
    const asked = [...new Set(url.searchParams.keys())].sort().join("&");
    const path = `${url.origin}${shape(url.pathname.slice(0, 500))}`;
    return `${kind} ${method} ${path}?${asked} ${sum(shape(given))}`.slice(0, 500);
  };

  let firstAt = null; // when the page was first waited for
  let watchedAt = null;
  let grown = 0; // letters of the page when they were last more
  let grewAt = 0;
  let isUnfinished = false; // it may show a placeholder
  const newFrames = new WeakMap(); // without a document yet, and when they were found
  const atRest = () => new Promise((resolve, reject) => {
    const began = performance.now();
    let last = began;
    let said = null; // number of letters at the last count
    let saidAt = began; // time of their last change
    let rendered = ask.written === true;
    let dirty = true;
    let idle = false; // nothing happens in it, and only time is waited for
    let idleAt = 0;
    let restedAt = began; // when the page's scripts had nothing to do
    let asksForRest = false;
    let computedAt = began; // when no step of the page's scripts was due
    let asksForSteps = false;
    let asksForFrame = false;
    let drawnAt = 0;
    let computesAt = null; // since when nothing but such steps holds up the page
    let isOver = false;
    let wasIdle = false; // and went on by itself: it may do so again
    firstAt ??= began;
    watchedAt ??= began;
    grewAt ||= began;
    let light = 0; // letters outside of shadow roots at the last count
    let lettersBefore = null; // of those, displayed at the last look
    let revealsAt = 0; // when the next ones may be displayed
    let setUntil = null; // when the last timer is due that was set since the page was at rest before
    let partsTold = ""; // letters of the frames that may be the page
    let partsAt = -Infinity; // when they last changed
    let framedAt = null; // when a document of a frame was first waited for
    let framesQueued = 0; // for how long one of them waited for a connection
    // New frames without end hold no page up for longer than one.
    const framesAreOver = () => {
      framedAt ??= performance.now();
      return performance.now() - framedAt - framesQueued >= ask.requestMs;
    };
    // Whether a frame of this site has an address, but no document of it yet.
    const addsFrame = () => {
      let adds = false;
      for (const owner of [document, ...frames()]) {
        for (const frame of documentDoes(owner, "querySelectorAll", NEW_FRAMES)) {
          const inner = frame.contentDocument;
          if (!inner || documentHas(inner, "URL") !== "about:blank") continue;
          if (!isOwnDocument(does(frame, "getAttribute", "src"), owner)) continue;
          if (!newFrames.has(frame)) newFrames.set(frame, performance.now());
          adds ||= performance.now() - newFrames.get(frame) < ask.frameMs && !framesAreOver();
        }
      }
      return adds;
    };
    // A request or a timer may change the page, and a navigation replaces it.
    const goesOnLater = ({ due, again, connections, using, outliving, ago }) => again || using
      || connections > 0 || outliving > 0 || ago.left !== null || (due !== null && due <= ask.settleMs + ask.requestMs);
    // Scripts may compute in short steps, as frameworks do, between which nothing can be seen. A
    // task of low priority runs when no step is due, also between the frames of an animation. In a
    // hidden page it may take many seconds.
    const hasSteps = () => computedAt <= last && !page("hidden");
    const askForSteps = () => {
      if (asksForSteps || !hasSteps()) return;
      asksForSteps = true;
      scheduler.postTask(() => {
        asksForSteps = false;
        computedAt = performance.now();
      }, { priority: "background" });
    };
    // The browser calls back when it has nothing to do either.
    const askForRest = () => {
      if (asksForRest) return;
      asksForRest = true;
      requestIdleCallback(() => {
        asksForRest = false;
        restedAt = performance.now();
        const told = isOver ? null : tell("");
        if (told !== null) judge(told);
      });
    };
    const judge = (told) => {
      if (!ask.reportsIdle || wasIdle) return;
      const now = ![told, ...told.inner].some(goesOnLater) && !addsFrame() && !(idle && last > idleAt);
      if (now === idle) return;
      if (now && restedAt <= last) return askForRest();
      idle = now;
      if (idle) idleAt = performance.now();
      else wasIdle = true;
      ask.onIdle(idle ? "idle" : "again");
    };
    const touch = () => { last = performance.now(); dirty = true; };
    // Animations and clocks change elements without end. Once the text has not grown for a while, such
    // changes count no more; requests, timers and new text still do. Attributes and styles bring no
    // text by themselves, unless the page shows a placeholder.
    const watch = () => {
      const now = performance.now();
      if (now - watchedAt < RESTLESS_MS / 4) return;
      watchedAt = now;
      const told = tell("said");
      if (told === null) return;
      isUnfinished = isBusy() || lettersShown() < THIN;
      if (told.said <= grown + FEW_LETTERS && !isMore(grown, told.said)) return;
      grown = told.said;
      grewAt = now;
    };
    const isRestless = (records) => {
      const bringsText = isUnfinished || records.some(({ type }) => type !== "attributes");
      return performance.now() - grewAt > (bringsText ? ask.requestMs : RESTLESS_MS);
    };
    const dom = new MutationObserver((records) => {
      if (isRestless(records)) dirty = true;
      else touch();
    });
    dom.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const resources = new PerformanceObserver(() => {
      touch();
      if (last - firstAt < ask.requestMs) grewAt = last;
    });
    resources.observe({ type: "resource" });
    const end = (settled, held = [], written = false) => {
      isOver = true;
      dom.disconnect();
      resources.disconnect();
      if (idle) ask.onIdle("over");
      idle = false;
      resolve({ settled, held, written });
    };

    // Changes of the page's text since the last call.
    const listen = (told) => {
      if (told.said === null) return;
      if (said === null ? told.said !== told.first : told.said !== said) saidAt = last;
      [said, light] = [told.said, told.light];
      rendered ||= told.first === 0 && said > 0 || isMore(told.first, said);
    };
    // Time until text that the markup hides may have been shown, by a timer or an animation's end.
    // Only the timers count that there are at first, and after text was shown: a page may set one
    // after the other without end. Where hardly any text is shown, all of them count.
    const toReveal = ({ soon, sections }) => {
      const now = performance.now();
      const leftMs = firstAt + ask.revealMs - now;
      const ends = leftMs > 0 ? animations() : [];
      if (leftMs <= 0 || (!soon.length && !ends.length)) return revealsAt - now;
      const letters = lettersShown();
      const isNews = lettersBefore === null || letters > lettersBefore;
      if (isNews) revealsAt = 0;
      lettersBefore = letters;
      const isThin = letters < THIN && letters < light / 2;
      const isSome = isNews && (sections || letters < light - Math.max(20, light / 10));
      const within = isThin ? leftMs : isSome ? Math.min(REVEAL_MS, leftMs) : 0;
      const counted = (isThin ? [...soon, ...ends] : soon).filter((ms) => ms < within);
      if (counted.length) revealsAt = now + Math.max(...counted) + ask.settleMs;
      return revealsAt - now;
    };
    // Whether a frame is still to be drawn since hidden text was due: scripts show it in one, which a
    // busy machine draws late.
    const awaitsFrame = () => {
      const now = performance.now();
      if (!revealsAt || drawnAt > revealsAt || page("hidden")) return false;
      if (!asksForFrame) {
        asksForFrame = true;
        requestAnimationFrame(() => requestAnimationFrame(() => {
          asksForFrame = false;
          drawnAt = performance.now();
        }));
      }
      return now - revealsAt < ask.requestMs;
    };
    // Whether a page with text is complete without a message for which it may not have asked. That of
    // a socket need not answer what was sent, and a page may send without end.
    const needsNothing = ({ age, since, kind, method, ...request }) => {
      if (age < HELD_MS && since < STEPS_MS) return false;
      if (method === "START") return said >= THIN;
      return kind === "socket" && (said >= THIN || !isOwn(request));
    };
    // Whether frames with little text have scripts: they may be the page. Notes changes of their text.
    const partsRun = () => {
      const parts = frames().filter((one) => hasCode(one)).map(lettersIn).filter((letters) => letters < THIN);
      const now = performance.now();
      const told = parts.join();
      if (told !== partsTold && now - firstAt < ask.requestMs) [partsTold, partsAt] = [told, now];
      return parts.length > 0;
    };
    // Pending requests that are waited for, and those beyond their limit.
    const sorted = (told, isShowing, isWhole) => {
      const shown = isShowing && !pageDoes("querySelector", BUSY);
      const waited = [];
      const over = [];
      const silent = []; // they need not send anything: a page may be complete without them
      for (const request of told.open) {
        const beside = isWhole && (request.age >= HELD_MS && !isOwn(request));
        if (request.kind === "frame") {
          framesQueued = Math.max(framesQueued, request.queued);
          const isLate = request.age - request.queued >= ask.requestMs;
          if (framesAreOver() && !isLate) continue;
        }
        const known = shown && request.since >= HELD_MS && ask.held.includes(nameOf(request));
        if (beside || known) continue;
        const maySendNothing = TELLING.has(request.kind);
        if (maySendNothing && (isWhole || needsNothing(request))) continue;
        if (request.since - request.queued < ask.requestMs) waited.push(request);
        else (maySendNothing ? silent : over).push(request);
      }
      return { waited, over, silent };
    };
    // A request open that long while the text is stable is held open on purpose.
    const learnt = (over) => {
      const held = performance.now() - saidAt >= ask.requestMs / 2 && !pageDoes("querySelector", BUSY);
      return held ? over.filter(({ address }) => address).map(nameOf) : [];
    };

    const look = () => {
      if (left() <= 0) return end(false);
      watch();
      const wait = (ms) => later(guarded, Math.min(left(), Math.max(ms, 1)));
      const still = ask.settleMs - (performance.now() - last);
      askForSteps();
      if (still > 0 && (!ask.reportsIdle || wasIdle)) return wait(still);
      if (still > 0) {
        const early = QUIET_MS - (performance.now() - last);
        if (early > 0) return wait(Math.min(early, still));
        const now = tell("");
        if (now !== null) judge(now);
        return wait(idle ? still : Math.min(still, LOOK_MS));
      }
      const told = tell(dirty ? "said" : "");
      if (told === null) return end(true);
      dirty = false;
      const { ago } = told;
      const since = (ms) => (ms === null ? Infinity : ms);
      if (since(ago.shadow) + 5 < performance.now() - last) {
        last = performance.now() - ago.shadow;
        dirty = true;
        return wait(1);
      }
      listen(told);
      const isShowing = showing();
      const isWhole = isShowing && !rendered && said >= THIN;
      const { waited, over, silent } = sorted(told, isShowing, isWhole);
      const mayRead = told.age < (isWhole ? HELD_MS : ask.readMs);
      const reads = mayRead && [told, ...told.inner].some(({ using }) => using);
      const read = mayRead ? since(ago.used) : Infinity;
      const due = told.again ? 0 : told.due;
      const hopes = !isShowing && due !== null && due < ask.requestMs - told.age;
      if (waited.length || hopes || reads || addsFrame() || since(ago.left) < ask.requestMs) {
        judge(told);
        return wait(LOOK_MS);
      }
      const ended = Math.min(since(ago.ended), read);
      if (ended < ask.settleMs) {
        judge(told);
        return wait(ask.settleMs - ended);
      }
      const written = rendered || ago.moved !== null || (!isShowing && page("scripts").length > 0);
      // Little text, or an element that says so, is what a page shows until its content comes. If
      // such a page was at rest before, as before a click, only new text of it may be that, or what a
      // connection brings.
      const isNew = !told.seen || said !== told.first || told.connections > 0;
      const isRunning = said < THIN && (partsRun() || hasCode());
      const mayCome = (isRunning && isNew) || isBusy();
      const news = Math.min(performance.now() - Math.max(saidAt, partsAt), since(ago.news), since(ago.moved), read);
      const missing = Math.max(ask.settleMs, RENDERED_MS) - news;
      if ((written || mayCome) && missing > 0) {
        judge(told);
        return wait(missing);
      }
      if (hasSteps()) {
        computesAt ??= performance.now();
        if (performance.now() - computesAt < ask.computesMs) return wait(SOON_MS);
      }
      if (ask.ownTimers && told.seen) setUntil ??= performance.now() + Math.max(...told.set.filter((ms) => ms < RENDERED_MS));
      if (setUntil > performance.now()) return wait(LOOK_MS);
      // Those of a frame may be late: they are in another queue than this look.
      if (ask.ownTimers && told.set.includes(0) && setUntil + HELD_MS > performance.now()) return wait(SOON_MS);
      const goesOn = told.due !== null && told.due < RENDERED_MS;
      if (written && goesOn && performance.now() - saidAt < STEPS_MS) return wait(LOOK_MS);
      const hidden = toReveal(told);
      if (hidden > 0) return wait(Math.min(hidden, LOOK_MS));
      if (awaitsFrame()) return wait(SOON_MS);
      const hoped = !isShowing && due !== null && due < ask.requestMs;
      end(!over.length && !hoped, isShowing ? learnt([...over, ...silent]) : [], written);
    };
    const guarded = () => {
      try { look(); } catch (wrong) { reject(wrong); }
    };
    guarded();
  });

  return { atRest, tell, showing };
})
