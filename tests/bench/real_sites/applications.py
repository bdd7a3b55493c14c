"""The real applications: each the files of its package and the smallest page that starts it."""

from __future__ import annotations

import json

from tests.bench.real_sites.packages import npm
from tests.bench.real_sites.server import Site

ITEMS = 40
_GRAPHIQL_SCHEMA = {"data": {"hello": "world"}}


def _page(body: str, head: str = "") -> str:
    start = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}</head>'
    return f"{start}<body>{body}</body></html>"


def _script(source: str) -> str:
    return f'<script src="{source}"></script>'


def _specification() -> str:
    return (npm("@scalar/galaxy") / "dist" / "latest.json").read_text("utf-8")


def _dist(name: str, folder: str = ".") -> str:
    return str(npm(name) / folder)


def swagger_ui() -> Site:
    start = "SwaggerUIBundle({url: '/api/openapi.json', dom_id: '#ui', docExpansion: 'full'})"
    page = _page(
        f'<div id="ui"></div>{_script("/dist/swagger-ui-bundle.js")}<script>{start}</script>',
        '<title>API</title><link rel="stylesheet" href="/dist/swagger-ui.css">',
    )
    files = {"/index.html": page, "/api/openapi.json": _specification()}
    return Site("swagger-ui", {"/dist/": _dist("swagger-ui-dist")}, files)


def redoc() -> Site:
    page = _page(
        f'<redoc spec-url="/api/openapi.json"></redoc>{_script("/dist/redoc.standalone.js")}'
    )
    files = {"/index.html": page, "/api/openapi.json": _specification()}
    return Site("redoc", {"/dist/": _dist("redoc", "bundles")}, files)


def scalar() -> Site:
    page = _page(
        '<script id="api-reference" data-url="/api/openapi.json"></script>'
        + _script("/dist/standalone.js")
    )
    files = {"/index.html": page, "/api/openapi.json": _specification()}
    return Site("scalar", {"/dist/": _dist("@scalar/api-reference", "dist/browser")}, files)


def rapidoc() -> Site:
    page = _page(
        '<rapi-doc spec-url="/api/openapi.json" render-style="read"></rapi-doc>',
        '<script type="module" src="/dist/rapidoc-min.js"></script>',
    )
    files = {"/index.html": page, "/api/openapi.json": _specification()}
    return Site("rapidoc", {"/dist/": _dist("rapidoc", "dist")}, files)


def elements() -> Site:
    """Stoplight Elements: React, routed by history."""
    page = _page(
        '<elements-api apiDescriptionUrl="/api/openapi.json" router="history"></elements-api>'
        + _script("/dist/web-components.min.js"),
        '<base href="/"><link rel="stylesheet" href="/dist/styles.min.css">',
    )
    files = {"/index.html": page, "/api/openapi.json": _specification()}
    dist = {"/dist/": _dist("@stoplight/elements")}
    return Site("elements", dist, files, fallback="/index.html")


def graphiql() -> Site:
    start = (
        "ReactDOM.createRoot(document.getElementById('ui')).render(React.createElement(GraphiQL,"
        " {fetcher: GraphiQL.createFetcher({url: '/api/graphql.json'})}))"
    )
    scripts = "".join(
        map(
            _script,
            (
                "/react/react.production.min.js",
                "/dom/react-dom.production.min.js",
                "/dist/graphiql.min.js",
            ),
        )
    )
    page = _page(
        f'<div id="ui" style="height: 90vh">Loading…</div>{scripts}<script>{start}</script>',
        '<link rel="stylesheet" href="/dist/graphiql.min.css">',
    )
    folders = {
        "/react/": _dist("react", "umd"),
        "/dom/": _dist("react-dom", "umd"),
        "/dist/": _dist("graphiql"),
    }
    files = {"/index.html": page, "/api/graphql.json": json.dumps(_GRAPHIQL_SCHEMA)}
    return Site("graphiql", folders, files)


def docsify(*, hashes: bool = False) -> Site:
    """Docsify over the documentation of fastify: by history, or by `#/` addresses."""
    mode = "hash" if hashes else "history"
    settings = {"basePath": "/docs/", "routerMode": mode, "loadSidebar": True, "name": "fastify"}
    settings |= {"homepage": "Reference/Index.md", "alias": {"/.*/_sidebar.md": "/_sidebar.md"}}
    docs = npm("fastify") / "docs"
    lists = [
        f"- [{page.stem}](/{page.relative_to(docs).with_suffix('').as_posix()})"
        for page in sorted(docs.rglob("*.md"))
    ]
    page = _page(
        f'<div id="app">Loading…</div><script>window.$docsify = {json.dumps(settings)}</script>'
        + _script("/dist/docsify.min.js"),
        '<base href="/"><link rel="stylesheet" href="/dist/themes/vue.css">',
    )
    files = {"/index.html": page, "/docs/_sidebar.md": "\n".join(lists)}
    folders = {"/dist/": _dist("docsify", "lib"), "/docs/": str(docs)}
    name = "docsify-hash" if hashes else "docsify"
    return Site(name, folders, files, fallback="" if hashes else "/index.html")


_VUE = """
const {createRouter, createWebHistory, createWebHashHistory, RouterView} = VueRouter;
const Home = () => import('/api/home.js'), Item = () => import('/api/item.js');
const history = HASHES ? createWebHashHistory() : createWebHistory();
const routes = [{path: '/', component: Home}, {path: '/items/:id', component: Item}];
Vue.createApp({components: {RouterView}, template: '<router-view :key="$route.path"/>'})
  .use(createRouter({history, routes})).mount('#app');
"""
# A chunk for each route, and a request that waits a little, as one does that is debounced.
_CHUNK = """
const path = (route) => PATH;
const ask = (view) => fetch(path(view.$route)).then((answer) => answer.json());
export default {
  data: () => ({found: null}),
  created() { setTimeout(async () => { this.found = await ask(this); }, 120); },
  template: `TEMPLATE`,
};
"""
_HOME = """<ul v-if="found"><li v-for="one in found">
  <router-link :to="'/items/' + one.id">{{ one.name }}</router-link></li></ul>"""
_ITEM = """<article v-if="found"><h1>{{ found.name }}</h1><p>{{ found.text }}</p>
  <router-link v-if="found.next" :to="'/items/' + found.next">Next</router-link></article>"""


def vue(*, hashes: bool = False) -> Site:
    """A list and its items, made with Vue and Vue Router; half of the items are in no list.

    Each route is a chunk, and asks for its data a moment after it was made.
    """
    files = {}
    for number in range(1, ITEMS + 1):
        item: dict[str, str | int] = {"name": f"Item {number}"}
        item |= {"text": f"What item {number} is about. " * 20}
        item |= {"next": number + 1} if number < ITEMS else {}
        files[f"/api/item-{number}.json"] = json.dumps(item)
    listed = [{"id": n, "name": f"Item {n}"} for n in range(1, ITEMS + 1, 2)]
    scripts = _script("/vue/vue.global.prod.js") + _script("/router/vue-router.global.prod.js")
    code = _VUE.replace("HASHES", "true" if hashes else "false")
    files["/api/items.json"] = json.dumps(listed)
    home = _CHUNK.replace("PATH", "'/api/items.json'").replace("TEMPLATE", _HOME)
    one = "`/api/item-${route.params.id}.json`"
    files["/api/home.js"] = home
    files["/api/item.js"] = _CHUNK.replace("PATH", one).replace("TEMPLATE", _ITEM)
    files["/index.html"] = _page(f'<div id="app"></div>{scripts}<script>{code}</script>')
    folders = {"/vue/": _dist("vue", "dist"), "/router/": _dist("vue-router", "dist")}
    name = "vue-hash" if hashes else "vue"
    return Site(name, folders, files, fallback="" if hashes else "/index.html")


def shoelace() -> Site:
    """Components whose text stands in shadow roots, beside slots and a root of the page's own."""
    cards = "".join(
        f'<sl-card><strong slot="header">Card {n}</strong>Text of card {n}'
        f'<sl-button slot="footer" href="/card-{n}.html">Open {n}</sl-button></sl-card>'
        for n in range(20)
    )
    own = """customElements.define('x-note', class extends HTMLElement {
      connectedCallback() {
        const number = this.getAttribute('number');
        this.attachShadow({mode: 'open'}).innerHTML =
          `<p>Note ${number} inside of a shadow root</p>
           <a href="/note-${number}.html">Read ${number}</a>`;
      }
    })"""
    notes = "".join(f'<x-note number="{n}"></x-note>' for n in range(20))
    page = _page(
        f"<h1>Components</h1>{cards}{notes}<script>{own}</script>",
        '<link rel="stylesheet" href="/dist/themes/light.css">'
        '<script type="module" src="/dist/shoelace.js"></script>',
    )
    return Site(
        "shoelace", {"/dist/": _dist("@shoelace-style/shoelace", "cdn")}, {"/index.html": page}
    )
