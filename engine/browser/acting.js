// Make an element ready for an action, and perform actions without mouse or key. See `elements.js`.
((el, settle, later, held) => {
  // Wait for the next frame; whether one was painted in time, since a busy machine may be late.
  const frameTurn = () => new Promise((resolve) => {
    later(() => resolve(false), 60);
    requestAnimationFrame(() => resolve(true));
  });

  const frameOf = (element) => element.ownerDocument.defaultView.frameElement;
  // The corner of a frame's content, and its scale: it may be zoomed or transformed, and has
  // borders and padding around it.
  const contentOf = (frame) => {
    const box = frame.getBoundingClientRect();
    const style = getComputedStyle(frame);
    const [across, down] = [box.width / frame.offsetWidth || 1, box.height / frame.offsetHeight || 1];
    const left = box.left + (frame.clientLeft + parseFloat(style.paddingLeft)) * across;
    const top = box.top + (frame.clientTop + parseFloat(style.paddingTop)) * down;
    return [left, top, across, down];
  };

  // Corner and scale do not describe the content of a frame that is rotated, skewed or mirrored.
  const SKEWS = ["m12", "m13", "m14", "m21", "m23", "m24", "m31", "m32"];
  const isTurned = (element) => {
    const { transform, rotate, scale } = getComputedStyle(element);
    if (rotate !== "none" || scale.includes("-")) return true;
    if (transform === "none") return false;
    const matrix = new DOMMatrix(transform);
    return matrix.m11 < 0 || matrix.m22 < 0 || SKEWS.some((name) => Math.abs(matrix[name]) > 1e-6);
  };
  const isInTurnedFrame = (element) => {
    for (let frame = frameOf(element); frame; frame = frameOf(frame)) {
      for (let one = frame; one; one = el.aboveOf(one)) if (isTurned(one)) return true;
    }
    return false;
  };

  // Convert a box of the element's document to the coordinates of the whole page's view.
  const placed = (element, box) => {
    let [x, y, width, height] = [box.left, box.top, box.width, box.height];
    for (let frame = frameOf(element); frame; frame = frameOf(frame)) {
      const [left, top, across, down] = contentOf(frame);
      [x, y, width, height] = [left + x * across, top + y * down, width * across, height * down];
    }
    return [x, y, width, height];
  };

  const hit = (x, y) => {
    let root = document;
    let found = null;
    for (let turn = 0; turn < 50; turn += 1) {
      const next = root.elementFromPoint(x, y);
      if (!next || next === found) return found;
      found = next;
      const inside = el.isFrame(found) ? el.inner(found) : null;
      if (inside) {
        const [left, top, across, down] = contentOf(found);
        [x, y] = [(x - left) / across, (y - top) / down];
        root = inside;
      } else if (el.shadowRoot(found)) {
        root = el.shadowRoot(found);
      } else {
        return found;
      }
    }
    return found;
  };

  const within = (outer, node) => {
    for (let one = node; one; one = el.parentOf(one)) if (one === outer) return true;
    return false;
  };
  const answers = (target, found) => {
    if (!found || within(target, found)) return Boolean(found);
    for (let one = found; one; one = el.parentOf(one)) {
      if (el.isElement(one) && el.tagOf(one) === "LABEL" && one.control === target) return true;
    }
    return false;
  };

  // A custom check box is often an invisible one next to a visible label.
  const stand = (target) => {
    const usable = (one) => one && el.seen(one) && one.getClientRects().length > 0
      && one.getBoundingClientRect().width > 0 && one.getBoundingClientRect().height > 0;
    if (usable(target) && getComputedStyle(target).opacity !== "0") return target;
    const first = (one) => {
      if (usable(one)) return one;
      if (!el.isBoxless(one)) return null;
      for (const child of el.childrenOf(one)) {
        const found = el.isElement(child) ? first(child) : null;
        if (found) return found;
      }
      return null;
    };
    return el.labelsOf(target).find(usable) ?? first(target);
  };

  const spots = (element) => {
    const boxes = [...element.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
    return boxes.slice(0, 3).map((box) => placed(element, box))
      .map(([x, y, width, height]) => [x + width / 2, y + height / 2]);
  };
  const inView = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

  const coverOf = (x, y) => {
    const cover = hit(x, y);
    if (!cover) return "";
    const role = el.roleOf(cover) || el.tagOf(cover).toLowerCase();
    return `${role} ${el.nameOf(cover, el.roleOf(cover) || "text")}`.trim().slice(0, 120).toWellFormed();
  };

  const bring = (element) => element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });

  const look = (target, ask) => {
    const place = stand(target);
    if (!place) return { problem: "hidden" };
    if (ask.enabled && el.isOff(target)) return { problem: "disabled" };
    if (ask.editable && el.isFixed(target)) return { problem: "read-only" };
    if (ask.hit && isInTurnedFrame(place)) return { problem: "in a rotated, skewed or mirrored frame" };
    const [first] = spots(place);
    if (!first || !inView(first)) bring(place);
    const open = spots(place).filter(inView);
    if (!open.length) return { problem: "out of reach" };
    const spot = ask.hit ? open.find(([x, y]) => answers(target, hit(x, y)) || answers(place, hit(x, y))) : open[0];
    if (!spot) return { problem: "covered", by: coverOf(...open[0]) };
    return { x: spot[0], y: spot[1], box: placed(place, place.getBoundingClientRect()) };
  };

  const told = (target) => el.describe(target, el.roleOf(target) || "text", el.numberOf(target));

  // A pending animation keeps its element still until the next frame is painted, and one that has
  // just begun until the frame after it.
  const begins = (animation) => animation.pending;
  const goesOn = (animation) => animation.playState === "running";
  // Some move in steps, and two frames on a busy machine may show the same: one that ends in time
  // is awaited, unless it only changes how the element looks.
  const LOOKS = /^(offset|computedOffset|easing|composite)$|color|opacity|shadow|filter|visibility/i;
  const movesUntil = (end) => (animation) => {
    const timing = animation.effect?.getComputedTiming();
    if (!goesOn(animation) || !(timing?.endTime - timing?.localTime <= end - performance.now())) return false;
    return animation.effect.getKeyframes().some((frame) => Object.keys(frame).some((name) => !LOOKS.test(name)));
  };
  const animated = (target, how) => {
    for (let one = target; one; one = el.aboveOf(one)) {
      if (one.getAnimations().some(how)) return true;
    }
    return false;
  };

  // Nothing moves between two frames: only a page that paints none at all counts as at rest, and
  // not while an animation is pending, which a busy machine paints much later.
  const UNPAINTED_MS = 1000;
  const unpainted = (target, since) =>
    performance.now() - since > UNPAINTED_MS && !animated(target, goesOn);

  // Wait until the element can be acted on in its place: shown, at rest, reachable.
  const point = async (ask) => {
    const until = performance.now() + ask.limitMs;
    let before = "";
    let wasCalm = false;
    let painted = false;
    let paintedAt = performance.now();
    for (;;) {
      const target = el.elementOf(ask.ref);
      if (!target) return { stale: true };
      const found = look(target, ask);
      const now = JSON.stringify(found);
      const late = performance.now() >= until;
      const calm = !animated(target, begins) && !animated(target, movesUntil(until));
      const rests = painted ? calm && wasCalm : unpainted(target, paintedAt);
      const ready = !found.problem && now === before && (late || rests);
      if (ready || late) {
        if (!ready && !found.problem) found.problem = "moving";
        // No second window may open, so such a link opens in the same tab.
        const link = ready && el.closest(target, "a[target], area[target]");
        if (link && ask.hit) link.target = "_self";
        return { ...found, item: told(target), tag: el.tagOf(target) };
      }
      before = now;
      wasCalm = calm;
      painted = await frameTurn();
      if (painted) paintedAt = performance.now();
    }
  };

  const describe = (ask) => {
    const target = el.elementOf(ask.ref);
    return target ? { item: told(target) } : { stale: true };
  };

  const KEYED = new Set(["text", "search", "url", "tel", "email", "password", "number"]);
  const selectAll = (target) => {
    if (target.select) return target.select();
    const range = target.ownerDocument.createRange();
    range.selectNodeContents(target);
    const selection = target.ownerDocument.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  const moveToEnd = (target) => {
    const tag = el.tagOf(target);
    if (tag === "INPUT" || tag === "TEXTAREA") {
      if (target.type !== "number" && target.type !== "email") {
        target.setSelectionRange(target.value.length, target.value.length);
      }
      return;
    }
    selectAll(target);
    target.ownerDocument.getSelection().collapseToEnd();
  };

  // Put the caret at the position of input; report an element that takes no keys.
  const edit = (ask) => {
    const target = el.elementOf(ask.ref);
    if (!target) return { stale: true };
    const tag = el.tagOf(target);
    const field = tag === "TEXTAREA" || target.isContentEditable || (tag === "INPUT" && KEYED.has(target.type));
    target.focus();
    if (field) ask.append ? moveToEnd(target) : selectAll(target);
    const set = tag === "INPUT" && ["date", "time", "month", "week", "datetime-local", "range",
      "color"].includes(target.type);
    const value = target.isContentEditable ? target.innerText : String(target.value ?? "");
    const empty = target.isContentEditable ? !target.innerText.trim() : target.value === "";
    return { how: field ? "keys" : set ? "set" : "no", empty, value, oneLine: tag === "INPUT" };
  };

  const holds = (ask) => {
    const target = el.elementOf(ask.ref);
    return target ? held(target) : { stale: true };
  };

  const announce = (target) => {
    target.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    target.dispatchEvent(new Event("change", { bubbles: true }));
  };

  // Fields with a picker: the order of their parts depends on the user's language.
  const set = (ask) => {
    const target = el.elementOf(ask.ref);
    if (!target) return { stale: true };
    const before = target.value;
    target.value = ask.value;
    const range = target.type === "range" && Number(target.value) !== Number(ask.value);
    if (range || (target.type !== "range" && target.value !== ask.value.toLowerCase() && target.value !== ask.value)) {
      target.value = before;
      return { refused: true };
    }
    announce(target);
    return {};
  };

  const choose = (ask) => {
    const target = el.elementOf(ask.ref);
    if (!target) return { stale: true };
    if (el.tagOf(target) !== "SELECT") return { how: "no" };
    const options = [...target.options];
    const plain = (text) => el.level(text, 500).toLowerCase();
    const same = [
      (one) => el.level(one.label, 500) === el.level(ask.option, 500),
      (one) => one.value === ask.option,
      (one) => plain(one.label) === plain(ask.option),
    ];
    const found = same.map((rule) => options.filter(rule)).find((some) => some.length) || [];
    if (found.length !== 1 || found[0].disabled || found[0].parentNode.disabled) {
      const why = found.length === 1 ? "disabled" : found.length ? "ambiguous" : "missing";
      return { why, options: options.slice(0, 50).map((one) => el.level(one.label, 100)) };
    }
    target.focus();
    const changed = !found[0].selected;
    found[0].selected = true;
    if (changed) announce(target);
    return { chosen: el.level(found[0].label, 100) };
  };

  const chosen = (ask) => {
    const target = el.elementOf(ask.ref);
    if (!target) return { stale: true };
    const now = [...target.selectedOptions].map((one) => el.level(one.label, 100));
    return { kept: now.includes(ask.label), now: now.slice(0, 50) };
  };

  const focus = (ask) => {
    const target = el.elementOf(ask.ref);
    if (!target) return { stale: true };
    target.focus();
    return { ok: el.focused() === target };
  };

  const scrolls = (one) => one.scrollHeight > one.clientHeight + 1
    && /auto|scroll|overlay/.test(getComputedStyle(one).overflowY);
  // The page itself, or its largest scrollable part if the page does not scroll.
  const scroller = () => {
    const page = document.scrollingElement || document.documentElement;
    if (page.scrollHeight > page.clientHeight + 1) return page;
    const area = (one) => one.clientWidth * one.clientHeight;
    const parts = [...document.querySelectorAll("div, main, section, ul, article")].filter(scrolls);
    return parts.sort((one, other) => area(other) - area(one))[0] || page;
  };
  const scroll = (ask) => {
    const part = scroller();
    const step = ask.pixels || Math.round(part.clientHeight * 0.9);
    const top = { up: part.scrollTop - step, down: part.scrollTop + step, top: 0, bottom: part.scrollHeight }[ask.to];
    part.scrollTo({ top, behavior: "instant" });
    return { y: Math.round(part.scrollTop), most: Math.max(0, part.scrollHeight - part.clientHeight) };
  };

  // Ready: loaded and at rest by the rule of `settle.js`, or the awaited selector matches.
  const LOOK_MS = 50;
  const settled = async (ask) => {
    const until = performance.now() + ask.limitMs;
    const left = () => until - performance.now();
    const there = () => ask.waitFor && document.querySelector(ask.waitFor);
    while (!there() && (ask.waitFor || document.readyState !== "complete")) {
      if (left() <= 0) return { settled: false, held: [], written: false };
      await new Promise((then) => { later(then, Math.min(LOOK_MS, Math.max(left(), 1))); });
    }
    if (ask.waitFor) return { settled: true, held: [], written: false };
    const rest = settle(ask, left, later);
    const found = await rest.atRest();
    const popups = rest.tell("")?.popups ?? [];
    rest.tell("seen"); // later changes are new
    return { ...found, popups: popups.slice(0, MOST_POPUPS).map(address) };
  };

  // A page that replaces built-ins can tell anything.
  const MOST_POPUPS = 5;
  const address = (said) => (typeof said === "string" && URL.canParse(said) ? new URL(said).href : "");

  // No event tells a page that its navigation ended without a document.
  const stays = (ask) => {
    const event = new CustomEvent(`${ask.pending}?`, { detail: "stays" });
    EventTarget.prototype.dispatchEvent.call(document, event);
    return {};
  };

  return { point, describe, edit, holds, set, choose, chosen, focus, scroll, stays, settle: settled };
})
