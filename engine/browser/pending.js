// Put into every document before its own scripts run: knows which requests these have under way,
// whether the page is on its way to another one, and how many windows they wanted to open. While
// a page waits for an answer, no observer can tell it from one that is ready, so `take.js` asks
// here. Only requests younger than a second count: an answer that is held open on purpose never
// ends. The next page gets ten: what it leads to is what was asked for, not what is left behind.
((name) => {
  const begun = new Set();
  const track = () => {
    const request = { at: performance.now() };
    begun.add(request);
    return () => begun.delete(request);
  };
  const young = () => [...begun].some((request) => performance.now() - request.at < 1000);
  let leftAt = -Infinity;
  const leaving = () => performance.now() - leftAt < 10_000;
  const stays = () => { leftAt = -Infinity; };
  window.navigation?.addEventListener("navigate", (event) => {
    const { sameDocument, url } = event.destination;
    if (sameDocument || event.downloadRequest !== null || !/^https?:/.test(url)) return;
    leftAt = performance.now();
    // whether a listener of the page takes it over or calls it off is known after all were asked
    setTimeout(() => { if (event.defaultPrevented || event.signal.aborted) stays(); });
  });
  for (const end of ["navigatesuccess", "navigateerror", "currententrychange"]) {
    window.navigation?.addEventListener(end, stays);
  }

  window.fetch = new Proxy(window.fetch, {
    apply(target, self, given) {
      const done = track();
      const answer = Reflect.apply(target, self, given);
      // That is the head of the answer; its body, and what the page makes of it, come after.
      const soon = () => setTimeout(done, 80);
      answer.then(soon, soon);
      return answer;
    },
  });
  XMLHttpRequest.prototype.send = new Proxy(XMLHttpRequest.prototype.send, {
    apply(target, self, given) {
      self.addEventListener("loadend", track(), { once: true });
      return Reflect.apply(target, self, given);
    },
  });
  let windows = 0;
  window.open = new Proxy(window.open, {
    apply(target, self, given) {
      windows += 1;
      return Reflect.apply(target, self, given);
    },
  });
  document.addEventListener(`${name}?`, () => {
    if (young() || leaving()) document.dispatchEvent(new Event(name));
    if (windows) document.dispatchEvent(new CustomEvent(`${name}+`, { detail: windows }));
  });
})
