// Convert a script's result of any type to JSON text of bounded size, after a line which says "cut" if
// a part was left out; runs in the page, which may have replaced `JSON.stringify`.
((most) => {
  const DEPTH = 8;
  const ITEMS = 1000;
  let room = most;
  let isCut = false;
  const cuts = (when) => {
    isCut ||= when;
    return when;
  };
  const spend = (text) => {
    const kept = text.slice(0, Math.max(0, room));
    cuts(kept.length < text.length);
    room -= kept.length + 4;
    return kept.toWellFormed();
  };

  // Pages define classes of their own called Node or Map, fields of a form shadow its properties,
  // and the objects of a frame have other classes: getters are taken from the document's prototypes,
  // and kinds are known by their tags.
  const getter = (object, name) => {
    for (let one = object; one; one = Object.getPrototypeOf(one)) {
      const { get } = Object.getOwnPropertyDescriptor(one, name) ?? {};
      if (get) return (of) => get.call(of);
    }
    return () => undefined;
  };
  const nodeType = getter(document, "nodeType");
  const nodeName = getter(document, "nodeName");
  const textContent = getter(document, "textContent");
  const idOf = getter(document.documentElement, "id");
  const kindOf = (one) => ({}).toString.call(one).slice(8, -1);
  const isNode = (one) => {
    try {
      return nodeType(one) > 0;
    } catch {
      return false; // the getter takes nodes only
    }
  };

  const outline = (node) => {
    const text = (textContent(node) || "").replace(/\s+/g, " ").trim().slice(0, 80);
    if (nodeType(node) !== 1) return spend(`${nodeName(node)} ${text}`);
    const id = idOf(node) ? `#${idOf(node)}` : "";
    return spend(`<${nodeName(node).toLowerCase()}${id}> ${text}`.trim());
  };
  const NAMED = { bigint: (one) => `${one}n`, symbol: String, function: (one) => `function ${one.name}` };
  const simple = (one) => {
    if (one === null || one === undefined) return null;
    if (typeof one === "string") return spend(one);
    if (typeof one === "number") return Number.isFinite(one) ? one : String(one);
    if (typeof one === "boolean") return one;
    return spend(NAMED[typeof one](one));
  };

  const dated = (one) => (Number.isNaN(one.getTime()) ? "Invalid Date" : one.toISOString());
  const pairs = (one) => [...one].map(([name, value]) => `${name}: ${value}`).join("\n");
  const TEXTS = {
    Date: dated, Headers: pairs, FormData: pairs, URLSearchParams: String, URL: String, RegExp: String,
    Error: String, DOMException: String, Promise: String, Window: String,
  };
  const LISTS = /^(Set|(Radio)?NodeList|HTML\w*Collection)$/;
  // One item more than is kept, which shows that the list goes on.
  const startOf = (one, kind) => {
    if (Array.isArray(one)) return one.slice(0, ITEMS + 1);
    if (kind === "ArrayBuffer") return [...new Uint8Array(one).subarray(0, ITEMS + 1)];
    if (kind === "DataView") return [...new Uint8Array(one.buffer, one.byteOffset, one.byteLength).subarray(0, ITEMS + 1)];
    if (ArrayBuffer.isView(one)) return [...one.subarray(0, ITEMS + 1)];
    return LISTS.test(kind) ? [...one].slice(0, ITEMS + 1) : null;
  };
  const listOf = (one, kind) => {
    const list = startOf(one, kind);
    // An array of a class may be its own slice, and belongs to the page.
    return list !== null && cuts(list.length > ITEMS) ? list.slice(0, ITEMS) : list;
  };

  // Without prototypes, because JSON.stringify calls a toJSON that a page gives to all objects.
  const bare = (one) => Object.setPrototypeOf(one, null);
  const valueOf = (one, name, seen) => {
    try {
      return plain(one[name], seen);
    } catch {
      return spend("[unreadable]"); // a getter or a proxy threw
    }
  };
  const fieldsOf = (entries, convert) => {
    const kept = bare({});
    cuts(entries.length > ITEMS);
    for (const [key, value] of entries.slice(0, ITEMS)) {
      if (cuts(room <= 0)) break;
      kept[spend(String(key))] = convert(value);
    }
    return kept;
  };
  const plain = (one, seen) => {
    const kind = kindOf(one);
    const isObject = one !== null && (typeof one === "object" || kind === "HTMLAllCollection");
    if (!isObject) return simple(one);
    if (cuts(room <= 0)) return "…";
    if (isNode(one)) return outline(one);
    if (Object.hasOwn(TEXTS, kind)) return spend(TEXTS[kind](one));
    if (seen.includes(one)) return "[circular]";
    if (cuts(seen.length >= DEPTH)) return "…";
    const deeper = [...seen, one];
    const list = listOf(one, kind);
    if (list) return bare(list.map((item, at) => valueOf(list, at, deeper)));
    if (kind === "Map") return fieldsOf([...one], (value) => valueOf([value], 0, deeper));
    return fieldsOf(Object.keys(one).map((key) => [key, key]), (key) => valueOf(one, key, deeper));
  };
  return (given) => {
    const text = JSON.stringify(valueOf([given], 0, []));
    return `${isCut ? "cut" : ""}\n${text ?? null}`;
  };
})
