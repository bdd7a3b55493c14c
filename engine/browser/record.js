// Report the operator's actions in this document. Only events that the browser marks as a person's
// (isTrusted) count, and a field's value only after a person has touched the field, because page
// scripts can dispatch events too. An element is described at pointer down or key down: later the
// page has reacted, and the element may look different.
function record(tell, { describe, roleOf, isGenerated }, hovers, maxText) {
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
  const DRAG_PX = 10, THIN = 6;
  const SCROLL_MS = 150, INTENT_MS = 600, LABEL_MS = 60, MOVED_PX = 6;
  const ANY_SECRET = /^(cc-|one-time-code|current-password|new-password)/;

  const touched = new WeakSet();  // fields that a person has used
  const secret = new WeakSet();  // a password field stays one
  const positions = new WeakMap();
  let intent = -1e9, scrolled = null, scrollTimer = 0;
  let pressed = null, label = null, clicked = null, typing = null, released = null;
  let held = null;  // pointer-down target: the element, its description then, the position
  let draggedAt = -1e9;
  let choosing = null;  // a clicked list or file field, whose choice follows later
  let keyed = null;  // the focus at the last key down, and its description then

  // The fields of a form shadow its own properties.
  const parentOf = (node) => Reflect.get(Node.prototype, "parentElement", node);
  const matches = (element, css) => Element.prototype.matches.call(element, css);
  const closest = (element, css) => Element.prototype.closest.call(element, css);

  function say(kind, told) {
    if (kind !== "type") typing = null;
    tell({ kind, ...told });
  }

  function editable(element) {
    if (!element || element.nodeType !== Node.ELEMENT_NODE) return null;
    if (element.localName === "textarea") return element;
    if (element.localName === "input") return TEXTLESS.has(element.type) ? null : element;
    let top = null;
    for (let at = element; at?.isContentEditable; at = parentOf(at)) top = at;
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
    return closest(element, ACTIONABLE) ?? element;
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
    endRelease(); // a busy page gets the next press before the timer
    const hit = elementAt(target(event));
    pressed = held = keyed = choosing = null;
    if (!event.isTrusted || !hit) return;
    if (onScrollBar(event, hit)) intent = event.timeStamp;
    else if (!isWholePage(hit)) held = { ...described(hit), x: event.clientX, y: event.clientY };
    if (held) held.box = held.element.getBoundingClientRect();
    if (held && event.pointerType === "mouse") {
      held.over = hovers.needed(held.element).map(describe);
      held.unread = held.over.length ? [] : [...hovers.unread];
    }
    hovers.acted();
  }

  const isWholePage = (hit) => hit === document.documentElement || hit === document.body;

  function described(hit) {
    const element = actionable(hit);
    const control = element.localName === "label" ? element.control : null;
    const shown = control && isBox(control) && isShown(control) ? control : element;
    const name = describe(element);
    return { element, name, control, controlName: shown === element ? name : describe(shown) };
  }

  const isBox = (element) => ["checkbox", "radio"].includes(element.type);

  function isShown(element) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    return box.width > 0 && box.height > 0 && style.visibility === "visible" && style.opacity !== "0";
  }

  // Elements visible only on hover: a replay moves the mouse there first.
  function sayHovers(mine) {
    for (const name of mine?.over ?? []) say("hover", { target: name });
    if (mine?.unread?.length) say("unread", { values: mine.unread.slice(0, 20) });
    if (mine) mine.over = mine.unread = [];
  }

  // Some pages react to the press by removing or covering the clicked element, and then the browser
  // fires neither click nor change event.
  function onRelease(event) {
    const mine = held;
    if (!event.isTrusted || !mine || isDrag(event) || isMoved(event)) return;
    released = () => {
      const box = [mine.control, mine.element].find((one) => one && isBox(one));
      if (held !== mine || (box && box.isConnected)) return;
      if (mine.element.localName === "select" || matches(mine.element, ":disabled")) return;
      held = null;
      clicked = mine.element;
      flush();
      sayHovers(mine);
      if (box) say("check", { target: mine.controlName, on: box.checked });
      else say("click", { target: mine.name, button: buttonOf(event), count: 1 });
    };
    setTimeout(endRelease, 0);
  }

  function endRelease() {
    const end = released;
    released = null;
    end?.();
  }

  // Dragged if it has moved, or was released over another element. A tremor on a button makes a
  // click, and selecting letters is no drag.
  function isDrag(event) {
    const { element, box, x, y } = held;
    const isField = editable(element) || ["input", "select"].includes(element.localName);
    if (event.button !== 0 || isField || Math.hypot(event.clientX - x, event.clientY - y) < DRAG_PX) {
      return false;
    }
    const now = element.getBoundingClientRect();
    const hasMoved = Math.hypot(now.x - box.x, now.y - box.y) >= DRAG_PX;
    if (!hasMoved && !getSelection().isCollapsed) return false;
    if (!hasMoved && matches(element, ACTIONABLE) && element.contains(elementAt(target(event)))) return false;
    sayDrag(event, dropPlace(event));
    return true;
  }

  // The element below; null if pixels count, as on the track of a slider or on a map.
  function dropPlace(event) {
    const own = held.element;
    if (matches(own, "[role=slider],[aria-valuenow]")) return null;
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    const found = under.find((one) => !own.contains(one) && !one.contains(own));
    const box = found?.getBoundingClientRect();
    const isTrack = box && !found.textContent.trim() &&
      Math.max(box.width, box.height) > THIN * Math.min(box.width, box.height);
    return found && !isTrack ? found : null;
  }

  function sayDrag(event, onto) {
    const mine = held;
    held = null;
    draggedAt = event.timeStamp;
    flush();
    sayHovers(mine);
    say("drag", { target: mine.name, onto: onto && describe(onto),
      dx: Math.round(event.clientX - mine.x), dy: Math.round(event.clientY - mine.y) });
  }

  // A drag by the browser itself has no release event.
  function onDrop(event) {
    touch(event);
    const onto = elementAt(target(event));
    if (!event.isTrusted || !onto) return;
    if (!held || !closest(held.element, "[draggable=true],a,img")) return onFiles(event, onto);
    sayDrag(event, held.element.contains(onto) ? null : onto);
  }

  // A file field has an event of its own.
  function onFiles(event, onto) {
    const files = [...event.dataTransfer?.files ?? []];
    if (!files.length || onto.type === "file") return;
    flush();
    say("drop", { target: describe(onto), count: files.length,
      values: files.slice(0, 50).map((one) => one.name.slice(0, 300)) });
  }

  const isMoved = (event) => Math.hypot(event.clientX - held.x, event.clientY - held.y) > MOVED_PX;
  const buttonOf = (event) => ["left", "middle", "right"][event.button] ?? "left";

  function onScrollBar(event, hit) {
    const down = hit.scrollHeight > hit.clientHeight && event.offsetX > hit.clientWidth;
    const across = hit.scrollWidth > hit.clientWidth && event.offsetY > hit.clientHeight;
    return hit.clientWidth > 0 && (down || across);
  }

  function onClick(event) {
    if (!event.isTrusted || event.timeStamp - draggedAt < LABEL_MS) return;
    const hit = elementAt(target(event));
    if (!hit || (isWholePage(hit) && !held)) return;
    const mine = event.detail > 0 || event.type === "auxclick" ? takeHeld(actionable(hit)) : null;
    if (!mine && isWholePage(hit)) return;
    const element = mine?.element ?? actionable(hit);
    if (fromLabel(event, element) || fromKey(event, element)) return;
    clicked = element;
    if (isBox(element) || element.localName === "option") return;
    if (element.localName === "select" || element.type === "file") {
      choosing = mine;
      return;
    }
    if (element.localName === "label") {
      const control = mine ? mine.control : element.control;
      label = { element, control, at: event.timeStamp, name: mine?.controlName };
      if (mine && control?.type === "file") choosing = { ...mine, element: control, name: describe(control) };
      if (["checkbox", "radio", "file"].includes(control?.type)) return;
    }
    const name = mine?.name ?? (keyed?.element === element ? keyed.name : describe(element));
    flush();
    if (event.detail < 2) sayHovers(mine);
    say("click", { target: name, button: buttonOf(event), count: Math.min(event.detail || 1, 3),
      atEnd: isAtEnd(element) });
  }

  // The click after the press: on the same element, unless the page removed it.
  function takeHeld(element) {
    const mine = held;
    if (!mine || (mine.element !== element && mine.element.isConnected)) return null;
    if (![mine.control, mine.element].some((one) => one && isBox(one))) held = null;
    return mine;  // a check box keeps it until its change event
  }

  // The caret position after a click in an editor: a replay clicks the middle.
  function isAtEnd(element) {
    const field = editable(element), caret = getSelection();
    if (!field?.isContentEditable || !caret.isCollapsed || !field.contains(caret.focusNode)) return false;
    const rest = document.createRange();
    rest.selectNodeContents(field);
    rest.setStart(caret.focusNode, caret.focusOffset);
    return !rest.toString().trim();
  }

  // A click on a label makes the browser click its field too: that is one click by a person.
  function fromLabel(event, element) {
    if (!label || label.control !== element || event.timeStamp - label.at > LABEL_MS) return false;
    clicked = element;
    return true;
  }

  // Enter in a field clicks the form's button; the recorded action is the key.
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
    if (!("value" in element)) {
      if (event.inputType === "insertText" && event.data !== owed) write(element, event.data ?? "");
      owed = null;
      return;
    }
    flush();
    // Described once instead of at every letter, and before the page reacts to the text.
    if (typing?.element !== element) typing = { element, target: nameOfField(element) };
    const text = element.value;
    tellTyped(text, false);
  }

  function nameOfField(element) {
    return keyed?.element === element ? keyed.name : describe(element);
  }

  function tellTyped(text, append) {
    const { element, target } = typing;
    say("type", { target, secret: isSecret(element), append,
      text: text.slice(0, maxText), cut: text.length > maxText });
  }

  // An editor's script makes its content from keys: the keys are recorded, not the content.
  let owed = null;  // a letter already reported by its key; the next event repeats it

  function write(element, text) {
    if (!text) return;
    flush();
    if (typing?.element !== element) typing = { element, target: nameOfField(element), text: "" };
    typing.text += text.replace(/\r\n?/g, "\n");
    tellTyped(typing.text, true);
  }

  function unwrite() {
    const signs = [...(typing?.text ?? "")];
    if (!signs.length) return false;
    typing.text = signs.slice(0, -1).join("");
    tellTyped(typing.text, true);
    return true;
  }

  function onEditorText(event) {
    const element = editable(elementAt(target(event)));
    if (!event.isTrusted || !element?.isContentEditable || !touched.has(element)) return;
    if (event.type === "compositionend") write(element, event.data ?? "");
    else write(element, event.clipboardData?.getData("text/plain") ?? "");
  }

  function onPaste(event) {
    touch(event);
    onEditorText(event);
  }

  function onEditorKey(event, field) {
    const isHeld = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
    owed = null;
    if (event.key.length === 1 && !isHeld) {
      write(field, event.key);
      owed = event.key;
    } else if (event.key === "Enter" && !isHeld && !event.shiftKey) {
      write(field, "\n");
    } else if (event.key !== "Backspace" || isHeld || typing?.element !== field || !unwrite()) {
      if (!isEditorKey(event, isHeld)) return;
      flush();
      say("key", { target: keyed.name, key: keyName(event) });
    }
  }

  // Pasted text is reported as typed; copying changes nothing.
  function isEditorKey(event, isHeld) {
    if (event.key.length > 1) return KEYS.has(event.key) || ARROWS.has(event.key);
    const low = event.key.toLowerCase();
    return isHeld && !BROWSERS_OWN.has(low) && low !== "c" && low !== "v";
  }

  function onChange(event) {
    const element = elementAt(target(event));
    // Only a person can choose files; the field itself is often hidden behind a button.
    if (!event.isTrusted || !element || !(touched.has(element) || element.type === "file")) return;
    if (isBox(element)) onCheck(element);
    if (element.localName === "select") {
      const values = [...element.selectedOptions].slice(0, 50).map(optionValue);
      flush();
      sayHovers(chosenBy(element));
      say("select", { target: nameBefore(element), secret: isSecret(element), values });
    }
    if (element.type === "file") {
      flush();
      sayHovers(chosenBy(element));
      const values = [...element.files].slice(0, 50).map((one) => one.name.slice(0, 300));
      say("upload", { target: nameBefore(element), count: element.files.length, values,
        opened: clicked !== element });
    }
  }

  // A generated value differs the next time, so the option's label is used.
  function optionValue(option) {
    const isWords = option.label && (!option.value || isGenerated(option.value));
    return (isWords ? option.label : option.value).slice(0, 500);
  }

  const chosenBy = (element) => [held, choosing].find((one) => one?.element === element);

  function nameBefore(element) {
    return [held, choosing, keyed].find((one) => one?.element === element)?.name ?? describe(element);
  }

  function onCheck(element) {
    if (clicked !== element && pressed !== element) return;  // made by a script
    const name = (label?.control === element && label.name) || nameBefore(element);
    const mine = held;
    held = null;
    flush();
    sayHovers(mine);
    say("check", { target: name, on: element.checked });
  }

  function keyName(event) {
    const held = [["Control", event.ctrlKey], ["Alt", event.altKey], ["Meta", event.metaKey],
      ["Shift", event.shiftKey && event.key.length > 1]];
    const key = event.key === " " ? "Space" : event.key;
    return [...held.filter(([, down]) => down).map(([name]) => name), key].join("+");
  }

  function onKey(event) {
    touch(event);
    hovers.acted();
    if (!event.isTrusted || event.isComposing) return;
    const element = elementAt(target(event));
    const field = editable(element);
    const focus = field ?? element;
    if (focus && (typing?.element !== focus || keyed?.element !== focus)) {
      keyed = { element: focus, name: isWholePage(focus) ? null : describe(focus) };
    }
    if ((ARROWS.has(event.key) || event.key === " ") && !field) intent = event.timeStamp;
    pressed = null;
    if (field?.isContentEditable) return onEditorKey(event, field);
    pressed = event.key === "Enter" || event.key === " " ? element : null;
    if (!element || !matters(event, element)) return;
    const told = { target: keyed.name, key: keyName(event) };
    if (event.key === "Enter" && !event.ctrlKey && element.localName === "textarea") {
      // There it is text, unless the page handles it differently.
      setTimeout(() => { if (event.defaultPrevented) { flush(); say("key", told); } }, 0);
      return;
    }
    flush();
    say("key", told);
  }

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

  // There the key becomes a click (or opens a list), which is reported instead.
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
    intent = event.timeStamp;  // a smooth scroll continues after the wheel stops
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

  // A replay recognises this page by these.
  function onReady() {
    if (window !== window.top || !location.protocol.startsWith("http")) return;
    const signs = [...document.querySelectorAll("h1,h2")].slice(0, 4);
    signs.push(...[...document.querySelectorAll("[data-testid],form,main,nav")].slice(0, 4));
    say("ready", { signs: signs.filter((one) => one.checkVisibility()).map(describe) });
  }

  const wheel = (event) => { if (event.isTrusted) intent = event.timeStamp; };
  const HANDLERS = { pointerover: hovers.entered, pointermove: hovers.moved,
    pointerdown: onPress, pointerup: onRelease, keydown: onKey, click: onClick,
    auxclick: onOtherClick, input: onInput, change: onChange, scroll: onScroll, wheel,
    touchmove: wheel, paste: onPaste, drop: onDrop, compositionstart: touch,
    compositionend: onEditorText, pagehide: flush };

  function arm() {
    for (const [name, handler] of Object.entries(HANDLERS)) {
      window.addEventListener(name, handler, { capture: true, passive: true });
    }
    window.navigation?.addEventListener("navigate", onNavigate);
  }

  arm();
  // document.open() removes all listeners; a new root element reveals it.
  new MutationObserver(arm).observe(document, { childList: true });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", onReady);
  else onReady();
}
