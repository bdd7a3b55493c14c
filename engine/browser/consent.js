// Connects the content script of autoconsent with the program. Runs in an isolated world, before
// that script: it answers the script's first message, and forwards what the program must know.
((binding, list, config) => {
  const send = globalThis[binding];
  const forwarded = new Set(["cmpDetected", "popupFound", "optOutResult", "autoconsentDone", "eval"]);
  const receive = (message) => globalThis.autoconsentReceiveMessage(message);
  const isTop = globalThis === globalThis.top;
  // The frames in which a rule runs: 0 no, 1 yes, 2 as usual (in the main frame only).
  const applies = ([, , , pattern, frames]) => {
    const runs = isTop ? Math.floor(frames / 10) % 10 !== 0 : frames % 10 === 1;
    if (!runs) return false;
    try {
      return !pattern || new RegExp(pattern).test(location.href);
    } catch {
      return false;
    }
  };
  const initialise = () => {
    const rules = JSON.parse(list);
    receive({
      type: "initResp",
      config,
      rules: { autoconsent: [], compact: { v: rules.v, s: rules.s, r: rules.r.filter(applies) } },
    });
  };
  let clicks = 0;
  globalThis.autoconsentSendMessage = async (message) => {
    if (message.type === "init") {
      queueMicrotask(initialise);
    } else if (forwarded.has(message.type)) {
      send(JSON.stringify(message));
    } else if (message.type === "report" && message.state?.clicks > clicks) {
      clicks = message.state.clicks;
      send(JSON.stringify({ type: "clicked" })); // before it clicks, which may end the document
    }
  };
})
