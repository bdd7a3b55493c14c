"""Files that were chosen in a recording: kept by name, and uploaded again from a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.kinds.recording.recording_export import command_task
from tests.recording.test_recording_export import exported, replayed, state_of
from tests.recording.trap_pages import served

PAGE = """<h1>Uploads</h1><label>Files <input type="file" multiple></label>
<button>Attach</button><p id="said"></p>
<script>
const tell = async (field) => {
  for (const file of field.files) {
    document.querySelector("#said").textContent += ` ${file.name}=${await file.text()};`;
  }
};
document.querySelector("input").onchange = (event) => tell(event.target);
document.querySelector("button").onclick = () => {
  const field = document.createElement("input");
  field.type = "file";
  field.hidden = true;
  field.onchange = () => tell(field);
  document.body.append(field);
  field.click();
};
</script>"""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served({"uploads": PAGE}) as url:
        yield url


async def test_replays_upload_the_named_files(recording: Any, pages: str, tmp_path: Path) -> None:
    folder = tmp_path / "for uploads"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name.upper())
    async with recording(f"{pages}/uploads", allow_files=folder) as running:
        operator = running.operator
        for opener, names in (("input", ("a.txt", "b.txt")), ("button", ("c.txt",))):
            async with operator.page.expect_file_chooser() as opening:
                await operator.click(opener)
            await (await opening.value).set_files([folder / name for name in names])
        await operator.recorded("upload", 2)
        await operator.page.locator("text=c.txt=C.TXT").wait_for()
        wanted = await state_of(operator.page)
        assert "a.txt=A.TXT; b.txt=B.TXT; c.txt=C.TXT" in json.dumps(wanted)
        await running.stop()
        assert "for uploads" not in json.dumps(running.result())
        task = exported(running, tmp_path)
        assert [one["args"]["action"] for one in task["commands"]] == ["goto", "upload", "upload"]
        assert task["metadata"]["uploads"]["files"] == ["a.txt", "b.txt", "c.txt"]
        assert await replayed(running, task) == wanted
        assert "--allow-files" in task["metadata"]["uploads"]["needs"]


@pytest.mark.parametrize(
    ("files", "count"),
    [([], 0), (["[redacted].txt"], 1), (["a"], 2), (["../a"], 1), (["a"] * 21, 21)],
)
def test_exports_omit_files_without_a_usable_name(files: list[str], count: int) -> None:
    upload = {"n": 2, "type": "upload", "selector": "#a", "files": files, "count": count}
    task = command_task({}, [{"n": 1, "type": "click", "selector": "#b", "url": ""}, upload])
    assert task is not None
    assert [one["action"] for one in task["metadata"]["notReplayed"]] == [2]
