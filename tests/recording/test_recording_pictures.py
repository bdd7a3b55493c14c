"""The screenshots of a recording show no secrets of its actions."""

from __future__ import annotations

from typing import Any

from engine.sample.site import Answer

ECHO = Answer(
    b"<style>*{font:16px monospace}</style><input id=f><input id=p type=password>"
    b"<p id=echo>-</p><h1>Mirror</h1>"
    b"<script>onclick = () => { echo.textContent = f.value + p.value }</script>"
)


async def last_picture(recording: Any, site: Any, field: str, text: str, **args: Any) -> bytes:
    """The picture after `text` was typed and the page has written it down again."""
    site.answers["/echo"] = ECHO
    async with recording(f"{site.url}/echo", screenshots="each", **args) as running:
        await running.operator.type(field, text)
        await running.operator.click("h1")
        clicks = 2  # the field was clicked, too
        await running.operator.recorded("click", clicks)
        await running.stop()
        path = running.result()["actions"][-1]["screenshot"]
        return (running.folder / path).read_bytes()


async def test_screenshots_do_not_depend_on_typed_text(recording: Any, site: Any) -> None:
    one = await last_picture(recording, site, "#f", "Ada7ovelace")
    other = await last_picture(recording, site, "#f", "Zvo9acheqxy")
    kept = await last_picture(recording, site, "#f", "Zvo9acheqxy", keep_text=True)
    assert one == other
    assert kept != other


async def test_passwords_are_masked_with_keep_text(recording: Any, site: Any) -> None:
    one = await last_picture(recording, site, "#p", "Ada7ovelace", keep_text=True)
    other = await last_picture(recording, site, "#p", "Zvo9acheqxy", keep_text=True)
    assert one == other


async def test_network_requests_record_listed_hosts_only(home: Any, site: Any) -> None:
    from engine.model.config import Settings
    from engine.service.engine import Engine

    place = site.url.partition("//")[2]
    for allowed, state in (((), "FAILED"), ((place,), "COMPLETED")):
        settings = Settings(home=home, root=home / "tasks", route="mcp", allow_private=allowed)
        engine = Engine(settings, accepts=True)
        await engine.open()
        try:
            for kind, more in (
                ("recording", {"headless": True, "duration_ms": 1500, "screenshots": "none"}),
                ("crawl", {"max_pages": 1, "delay_ms": 0}),
                ("crawl", {"max_pages": 1, "delay_ms": 0, "engine": "static"}),
            ):
                record = await engine.requests.start(kind, {"url": f"{site.url}/static/1", **more})
                ended = await engine.tasks.wait(record.task_id)
                assert ended.status == state, (kind, ended.error)
        finally:
            await engine.close()
