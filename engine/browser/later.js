// Runs inside the page, in an isolated world: call `then` in `ms` milliseconds.
(then, ms) => {
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    then();
  };
  // A page that clears all timers, whatever their numbers, would clear those of this world too.
  scheduler.postTask(end, { delay: Math.max(ms, 0) });
  if (origin !== "null") return;
  // In a sandbox without scripts no task runs and no event arrives; only frames are painted.
  const at = performance.now() + ms;
  const look = () => {
    if (performance.now() >= at) end();
    else if (!isOver) requestAnimationFrame(look);
  };
  look();
}
