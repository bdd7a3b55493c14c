(() => {
  const page = document.getElementById("page");
  setTimeout(async () => {
    const answer = await fetch(page.dataset.api);
    const told = await answer.json();
    document.title = told.title;
    const make = (tag, text) => Object.assign(document.createElement(tag), {textContent: text});
    const list = document.createElement("ul");
    for (const link of told.links) {
      const anchor = make("a", link.text);
      anchor.href = link.href;
      list.appendChild(document.createElement("li")).appendChild(anchor);
    }
    page.replaceChildren(make("h1", told.title), ...told.paragraphs.map((text) => make("p", text)), list);
    document.querySelector("header a").setAttribute("href", told.home);
  }, Number(page.dataset.late));
})();
