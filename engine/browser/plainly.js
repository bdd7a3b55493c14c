// Convert a script's result of any type to JSON text of bounded size; runs in the page.
((most) => {
  const DEPTH = 8;
  const ITEMS = 1000;
  let room = most;
  const spend = (text) => {
    const kept = text.slice(0, Math.max(0, room));
    room -= kept.length + 4;
    return kept.toWellFormed();
  };
  const outline = (node) => {
    const id = node.id ? `#${node.id}` : "";
    const text = (node.textContent || "").replace(/\s+/g, " ").trim().slice(0, 80);
    return spend(node.nodeType === 1 ? `<${node.tagName.toLowerCase()}${id}> ${text}`.trim() : `${node.nodeName} ${text}`);
  };
  const NAMED = { bigint: (one) => `${one}n`, symbol: String, function: (one) => `function ${one.name}` };
  const simple = (one) => {
    if (one === null || one === undefined) return null;
    if (typeof one === "string") return spend(one);
    if (typeof one === "number") return Number.isFinite(one) ? one : String(one);
    if (typeof one === "boolean") return one;
    return spend(NAMED[typeof one](one));
  };
  const listOf = (one) => {
    if (Array.isArray(one) || ArrayBuffer.isView(one)) return [...one.subarray?.(0, ITEMS) ?? one.slice(0, ITEMS)];
    if (one instanceof Set || one instanceof NodeList || one instanceof HTMLCollection) return [...one].slice(0, ITEMS);
    return null;
  };
  const plain = (one, seen) => {
    if (one === null || typeof one !== "object") return simple(one);
    if (room <= 0) return "…";
    if (one instanceof Node) return outline(one);
    if (one instanceof Error) return spend(String(one));
    if (one instanceof Date) return spend(Number.isNaN(one.getTime()) ? "Invalid Date" : one.toISOString());
    if (one === window || one instanceof Promise) return spend(String(one));
    if (seen.includes(one)) return "[circular]";
    if (seen.length >= DEPTH) return "…";
    const deeper = [...seen, one];
    const list = listOf(one);
    if (list) return list.map((item) => plain(item, deeper));
    const entries = one instanceof Map ? [...one] : Object.entries(one);
    const kept = {};
    for (const [key, value] of entries.slice(0, ITEMS)) {
      if (room <= 0) break;
      kept[spend(String(key))] = plain(value, deeper);
    }
    return kept;
  };
  return (given) => JSON.stringify(plain(given, []));
})
