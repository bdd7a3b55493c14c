"""Files are uploaded from the folder that the operator allowed, and from nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from engine.browser.interact.command_uploads import UploadRefused, Uploads
from engine.kinds.commands.command_check import check
from engine.model.errors import InvalidArguments
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.conftest import Opening, do, failure, mistakes, results, task
from tests.commands.test_command_journeys import too_late

FORM = b"""<!doctype html><title>Form</title><input type=file id=one>
<label id=label>Several <input type=file id=several multiple hidden></label>
<button id=choose onclick="one.click()">Choose</button><button id=nothing>nothing</button>
<iframe srcdoc="<input type=file id=inner>"></iframe>
<pre id=log></pre><script>
onchange = async (event) => { for (const file of event.target.files)
  log.textContent += [event.target.id, file.name, file.type, await file.text()].join(" ") + "\\n" };
</script>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "allowed"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_text("first")
    (inside / "sub" / "b.json").write_text("{}")
    (tmp_path / "outside.txt").write_text("not for the site")
    return inside


async def test_uploads_reach_fields_and_choosers(opened: Opening, site: Site, folder: Path) -> None:
    site.answers["/form"] = Answer(FORM)
    async with opened(allow_files=folder) as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/form"),
            do("upload", selector="#one", files="a.txt"),
            do("wait_for", selector="#log", text="one a.txt text/plain first"),
            do("upload", selector="#label", files=["a.txt", "sub/b.json"]),
            do("wait_for", selector="#log", text="several b.json application/json {}"),
            do("upload", selector="#choose", files=["sub/b.json"]),
            do("wait_for", selector="#log", text="one b.json"),
            do("upload", selector="#inner", frame="iframe", files="a.txt"),
            do("evaluate", script="inner.files[0].name", frame="iframe"),
        )
        assert done[3] == {"files": ["a.txt", "sub/b.json"], "bytes": 7, "url": f"{site.url}/form"}
        assert done[8] == {"value": "a.txt"}
        goto = do("goto", url=f"{site.url}/form")
        said = await failure(booth, goto, do("upload", selector="#one", files=["a.txt"] * 2))
        assert said == ("EXECUTION_ERROR", "the field takes one file only")
        nothing = do("upload", selector="#nothing", files="a.txt")
        await too_late(booth, goto, nothing, "(it asked for no file)")


async def test_without_an_allowed_folder_nothing_is_uploaded(opened: Opening, site: Site) -> None:
    async with opened() as booth:
        with pytest.raises(InvalidArguments) as caught:
            await booth.start(do("goto", url=site.url), do("upload", selector="#a", files="a.txt"))
    assert mistakes(caught.value) == {"commands[1].args.files[0]": "not_allowed"}
    assert not site.log


def test_what_may_not_be_uploaded_is_found_before_anything_runs(folder: Path) -> None:
    os.symlink("../outside.txt", folder / "link")
    os.symlink("..", folder / "up")
    os.symlink("a.txt", folder / "within")
    os.mkfifo(folder / "pipe")
    names = ["within", "missing", "link", "up/outside.txt", "sub", "pipe"]
    with pytest.raises(InvalidArguments) as caught:
        check(task(do("upload", selector="#a", files=names)), uploads=Uploads(folder))
    path = "commands[0].args.files"
    assert mistakes(caught.value) == {
        f"{path}[1]": "no_file",
        f"{path}[2]": "not_allowed",
        f"{path}[3]": "not_allowed",
        f"{path}[4]": "no_file",
        f"{path}[5]": "no_file",
    }


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../outside.txt",
        "sub/../../outside.txt",
        "~/x",
        "C:\\x",
        "a\\..\\b",
        "a\nb",
        3,
    ],
)
def test_a_name_that_leads_elsewhere_is_a_mistake_of_its_own(name: Any) -> None:
    with pytest.raises(InvalidArguments) as caught:
        check(task(do("upload", selector="#a", files=name)))
    assert mistakes(caught.value) == {"commands[0].args.files": "invalid_value"}


def test_an_upload_follows_no_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = Uploads(folder)
    uploads.check("sub/b.json")
    place = uploads._place("sub/b.json")
    monkeypatch.setattr(uploads, "_place", lambda _: place)
    (folder / "sub").rename(folder / "before")
    os.symlink("../..", folder / "sub")
    (folder.parent.parent / "b.json").write_text("outside")
    with pytest.raises(UploadRefused):
        uploads.read("sub/b.json")
