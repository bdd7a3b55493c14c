// Scroll the page, or the box in the middle of the window if the page itself cannot scroll.
([direction, amount]) => {
  const across = direction === "left" || direction === "right";
  const sign = direction === "up" || direction === "left" ? -1 : 1;
  const far = sign * (amount || (across ? window.innerWidth : window.innerHeight));
  const root = document.scrollingElement || document.documentElement;
  const moves = (box) => {
    const way = across ? getComputedStyle(box).overflowX : getComputedStyle(box).overflowY;
    const room = across ? box.scrollWidth - box.clientWidth : box.scrollHeight - box.clientHeight;
    return room > 0 && (box === root ? way !== "hidden" : way === "auto" || way === "scroll");
  };
  // A walker goes up without `parentElement`, which a field of a form may shadow.
  const walker = document.createTreeWalker(root, 1);
  let box = document.elementFromPoint(window.innerWidth / 2, window.innerHeight / 2);
  if (moves(root)) box = root;
  while (box && !moves(box)) {
    walker.currentNode = box;
    box = walker.parentNode();
  }
  const target = box || root;
  target.scrollBy({ left: across ? far : 0, top: across ? 0 : far, behavior: "instant" });
  return { x: Math.round(target.scrollLeft), y: Math.round(target.scrollTop) };
}
