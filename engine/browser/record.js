// Tells of what the operator does with this document. Only what the browser itself says came
// from a person counts (isTrusted), and a field's value only once a person has touched the
// field: scripts of the page can fire events, too.
function record(tell, describe, roleOf, maxText) {
  const KEYS = new Set(["Enter", "Escape", "Tab", "Backspace", "Delete", "F1", "F2", "F3", "F4",
    "F6", "F7", "F8", "F9", "F10"]);
  const ARROWS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End",
    "PageUp", "PageDown"]);
  const EDITING = new Set(["a", "c", "v", "x", "y", "z"]);
  const BROWSERS_OWN = new Set(["r", "t", "n", "w", "l", "+", "-", "0"]);
  const TEXTLESS = new Set(["button", "submit", "reset", "image", "checkbox", "radio", "file",
    "hidden"]);
  const ACTIONABLE = "a[href],area[href],button,input,select,textarea,label,summary,option," +
    "[role=button],[role=link],[role=tab],[role=menuitem],[role=menuitemcheckbox]," +
    "[role=menuitemradio],[role=option],[role=checkbox],[role=radio],[role=switch]," +
    "[role=treeitem],[contenteditable=''],[contenteditable=true]";
  const SCROLL_MS = 150, INTENT_MS = 600, LABEL_MS = 60;
  const ANY_SECRET = /^(cc-|one-time-code|current-password|new-password)/;

  const touched = new WeakSet();  // fields that a person has really put a hand on
  const secret = new WeakSet();  // what was a password field once stays one
  const positions = new WeakMap();
  let intent = -1e9, scrolled = null, scrollTimer = 0;
  let pressed = null, label = null, clicked = null, typing = null;

  function say(kind, told) {
    if (kind !== "type") typing = null;
    tell({ kind, ...told });
  }

  function editable(element) {
    if (!element || element.nodeType !== Node.ELEMENT_NODE) return null;
    if (element.localName === "textarea") return element;
    if (element.localName === "input") return TEXTLESS.has(element.type) ? null : element;
    let top = null;
    for (let at = element; at?.isContentEditable; at = at.parentElement) top = at;
    return top;
  }

  function isSecret(element) {
    if (element.type === "password") secret.add(element);
    const asked = (element.getAttribute("autocomplete") || "").trim().toLowerCase();
    return secret.has(element) || asked.split(/\s+/).some((word) => ANY_SECRET.test(word)) ||
      !["none", ""].includes(getComputedStyle(element).webkitTextSecurity ?? "none");
  }

  const target = (event) => event.composedPath()[0];
  const elementAt = (node) => (node?.nodeType === Node.ELEMENT_NODE ? node : node?.parentElement);

  function actionable(element) {
    return element.closest(ACTIONABLE) ?? element;
  }

  function touch(event) {
    if (!event.isTrusted) return;
    for (const node of event.composedPath()) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      touched.add(node);
      const control = node.localName === "label" ? node.control : null;
      if (control) touched.add(control);
      if (control?.type === "password") secret.add(control);
      if (node.type === "password") secret.add(node);
    }
  }

  function onPress(event) {
    touch(event);
    const hit = elementAt(target(event));
    pressed = null;
    if (event.isTrusted && hit && onScrollBar(event, hit)) intent = event.timeStamp;
  }

  function onScrollBar(event, hit) {
    const down = hit.scrollHeight > hit.clientHeight && event.offsetX > hit.clientWidth;
    const across = hit.scrollWidth > hit.clientWidth && event.offsetY > hit.clientHeight;
    return hit.clientWidth > 0 && (down || across);
  }

  function onClick(event) {
    if (!event.isTrusted) return;
    const hit = elementAt(target(event));
    if (!hit || hit === document.documentElement || hit === document.body) return;
    const element = actionable(hit);
    if (fromLabel(event, element) || fromKey(event, element)) return;
    clicked = element;
    if (["checkbox", "radio"].includes(element.type) || element.localName === "option") return;
    if (element.localName === "select" || element.type === "file") return;
    if (element.localName === "label") {
      label = { element, control: element.control, at: event.timeStamp };
      if (["checkbox", "radio", "file"].includes(element.control?.type)) return;
    }
    const button = ["left", "middle", "right"][event.button] ?? "left";
    flush();
    say("click", { target: describe(element), button, count: Math.min(event.detail || 1, 3) });
  }

  // A click on a label makes the browser click its field, too: that is one click of a person.
  function fromLabel(event, element) {
    if (!label || label.control !== element || event.timeStamp - label.at > LABEL_MS) return false;
    clicked = element;
    return true;
  }

  // Enter in a field clicks the form's button; the key is what the person did.
  function fromKey(event, element) {
    return event.detail === 0 && event.pointerId === -1 && pressed !== null && pressed !== element;
  }

  function onOtherClick(event) {
    if (event.button === 0 || !event.isTrusted) return;
    onClick(event);
  }

  function onInput(event) {
    const element = editable(elementAt(target(event)));
    if (!event.isTrusted || !element || !touched.has(element)) return;
    const value = "value" in element ? element.value : element.innerText;
    flush();
    // Described once, not with every letter; and before the page answers to what was typed.
    if (typing?.element !== element) typing = { element, target: describe(element) };
    say("type", {
      target: typing.target, secret: isSecret(element),
      text: value.slice(0, maxText), cut: value.length > maxText,
    });
  }

  function onChange(event) {
    const element = elementAt(target(event));
    if (!event.isTrusted || !element || !touched.has(element)) return;
    if (["checkbox", "radio"].includes(element.type)) onCheck(element);
    if (element.localName === "select") {
      const values = [...element.selectedOptions].slice(0, 50).map((one) => one.value.slice(0, 500));
      flush();
      say("select", { target: describe(element), secret: isSecret(element), values });
    }
    if (element.type === "file") {
      flush();
      say("upload", { target: describe(element), count: element.files.length });
    }
  }

  function onCheck(element) {
    if (clicked !== element && pressed !== element) return;  // a script did it
    const box = element.getBoundingClientRect();
    const hidden = !box.width || !box.height || getComputedStyle(element).visibility !== "visible" ||
      getComputedStyle(element).opacity === "0";
    const shown = hidden ? (label?.control === element ? label.element : element.labels?.[0]) : null;
    flush();
    say("check", { target: describe(shown ?? element), on: element.checked });
  }

  function keyName(event) {
    const held = [["Control", event.ctrlKey], ["Alt", event.altKey], ["Meta", event.metaKey],
      ["Shift", event.shiftKey && event.key.length > 1]];
    const key = event.key === " " ? "Space" : event.key;
    return [...held.filter(([, down]) => down).map(([name]) => name), key].join("+");
  }

  function onKey(event) {
    touch(event);
    if (!event.isTrusted || event.isComposing) return;
    const element = elementAt(target(event));
    if ((ARROWS.has(event.key) || event.key === " ") && !editable(element)) intent = event.timeStamp;
    pressed = event.key === "Enter" || event.key === " " ? element : null;
    if (!element || !matters(event, element)) return;
    const told = { target: element === document.body ? null : describe(element), key: keyName(event) };
    if (event.key === "Enter" && !event.ctrlKey && isMultiline(element)) {
      // There it is text, unless the page makes something else of it.
      setTimeout(() => { if (event.defaultPrevented) { flush(); say("key", told); } }, 0);
      return;
    }
    flush();
    say("key", told);
  }

  const isMultiline = (element) => element.localName === "textarea" || element.isContentEditable;

  function matters(event, element) {
    const held = event.ctrlKey || event.metaKey || event.altKey;
    const field = editable(element);
    const key = event.key;
    if (held && key.length === 1) {
      const low = key.toLowerCase();
      return !event.altKey && !BROWSERS_OWN.has(low) && !(EDITING.has(low) && (field || low === "c"));
    }
    if (ARROWS.has(key)) return !held && isWidget(element);
    if (key === "Backspace" || key === "Delete") return !field;
    if (key === "Enter") return !isPressable(element);
    return KEYS.has(key);
  }

  // There the key becomes a click (or opens a list), and that is what is told.
  function isPressable(element) {
    const role = roleOf(element);
    return element.localName === "summary" || element.localName === "select" ||
      (["button", "link"].includes(role) && !element.hasAttribute("role"));
  }

  function isWidget(element) {
    if (["select", "textarea"].includes(element.localName)) return false;
    if (["radio", "checkbox", "range", "number", "date", "time"].includes(element.type)) return false;
    return element.hasAttribute("role") || element.hasAttribute("aria-autocomplete") ||
      element.hasAttribute("aria-haspopup") || element.hasAttribute("list");
  }

  function onScroll(event) {
    const node = event.target === document ? document.scrollingElement : event.target;
    if (!node) return;
    const before = positions.get(node) ?? { x: 0, y: 0 };
    positions.set(node, { x: node.scrollLeft, y: node.scrollTop });
    if (!scrolled && event.timeStamp - intent > INTENT_MS) return;
    if (scrolled && scrolled.node !== node) flush();
    intent = event.timeStamp;  // a smooth scroll goes on after the hand has left the wheel
    scrolled ??= { node, whole: event.target === document, ...before };
    clearTimeout(scrollTimer);
    scrollTimer = setTimeout(flush, SCROLL_MS);
  }

  function flush() {
    if (!scrolled) return;
    const { node, whole, x, y } = scrolled;
    scrolled = null;
    clearTimeout(scrollTimer);
    const dx = Math.round(node.scrollLeft - x), dy = Math.round(node.scrollTop - y);
    if (dx || dy) say("scroll", { target: whole ? null : describe(node), dx, dy });
  }

  function onNavigate(event) {
    if (window !== window.top) return;
    if (event.navigationType === "traverse") say("traverse", { byPerson: event.userInitiated });
  }

  // By these a replay will know that it has come to this page.
  function onReady() {
    if (window !== window.top || !location.protocol.startsWith("http")) return;
    const signs = [...document.querySelectorAll("h1,h2")].slice(0, 4);
    signs.push(...[...document.querySelectorAll("[data-testid],form,main,nav")].slice(0, 4));
    say("ready", { signs: signs.filter((one) => one.checkVisibility()).map(describe) });
  }

  const wheel = (event) => { if (event.isTrusted) intent = event.timeStamp; };
  const HANDLERS = { pointerdown: onPress, keydown: onKey, click: onClick, auxclick: onOtherClick,
    input: onInput, change: onChange, scroll: onScroll, wheel, touchmove: wheel, paste: touch,
    drop: touch, compositionstart: touch, pagehide: flush };

  function arm() {
    for (const [name, handler] of Object.entries(HANDLERS)) {
      window.addEventListener(name, handler, { capture: true, passive: true });
    }
    window.navigation?.addEventListener("navigate", onNavigate);
  }

  arm();
  // document.open() takes all listeners away; a new root element tells that it happened.
  new MutationObserver(arm).observe(document, { childList: true });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", onReady);
  else onReady();
}
