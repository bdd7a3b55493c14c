"""A small stand-in for the npm package of the consent rules: own script, own rules, same protocol.

Its rules are `[selector of the manager], [selector of the banner], [selector of the button]`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any, Final

from engine.browser.chromium import consent_rules
from engine.browser.chromium.consent_rules import PACKAGE, RULES, SCRIPT, ConsentRules
from engine.sample.site import Answer, Request

VERSION: Final = "0.0.1"
STAND_IN: Final = """
(() => {
  const pending = new Map();
  let optOut = () => {};
  console.log("a line of the script");
  const send = (message) => window.autoconsentSendMessage({ url: location.href, ...message });
  const snippets = { IS_READY: () => window.manager !== "blocked" };
  const evaluate = (name) => new Promise((resolve) => {
    const id = `${Math.random()}`;
    pending.set(id, resolve);
    send({ type: "eval", id, code: `(${snippets[name].toString()})()`, snippetId: name });
  });
  const look = async (rules, config, round) => {
    for (const [, cmp, cosmetic, , , , [manager], [banner], [button]] of rules) {
      if (!document.querySelector(manager)) continue;
      send({ type: "cmpDetected", cmp });
      while (!document.querySelector(banner)) await new Promise((go) => setTimeout(go, 20));
      if (config.autoAction) return;
      optOut = async () => {
        const result = await evaluate("IS_READY");
        if (result && cosmetic !== 1) send({ type: "report", state: { clicks: 1 } });
        if (result) document.querySelector(button).click();
        send({ type: "optOutResult", cmp, result, scheduleSelfTest: false });
        if (result) send({ type: "autoconsentDone", cmp, isCosmetic: cosmetic === 1 });
      };
      send({ type: "popupFound", cmp });
      return;
    }
    if (round) setTimeout(() => look(rules, config, round - 1), 50);
  };
  window.autoconsentReceiveMessage = async (message) => {
    if (message.type === "optOut") await optOut();
    if (message.type === "evalResp") pending.get(message.id)(message.result);
    if (message.type !== "initResp") return;
    const start = () => look(message.rules.compact.r, message.config, 20);
    document.readyState === "loading" ? addEventListener("DOMContentLoaded", start) : start();
  };
  send({ type: "init" });
  send({ type: "report", state: {} });
})();
"""


def rule(name: str, manager: str, banner: str, button: str, **more: Any) -> list[Any]:
    cosmetic, pattern = more.get("cosmetic", 2), more.get("pattern", "")
    frames = more.get("frames", 22)
    return [1, name, cosmetic, pattern, frames, [], [manager], [banner], [button], [], {}]


LIST: Final = {
    "v": 1,
    "s": [],
    "r": [
        rule("elsewhere", "body", "body", "body", pattern="^https://elsewhere\\.test/"),
        rule("stand-in", "#manager", "#banner", "#reject"),
        rule("stand-in-frame", "#framed", "#framed", "#reject", frames=1),
    ],
}


FILES: Final = {SCRIPT: STAND_IN.encode(), RULES: json.dumps(LIST).encode()}
DIGESTS: Final = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


def download_answer(request: Request) -> Answer:
    """Answer as the server of the download, at `/npm`, with the files of the stand-in."""
    name = request.path.removeprefix(f"/npm/{PACKAGE}@{consent_rules.VERSION}/")
    return Answer(FILES[name]) if name in FILES else Answer(b"", 404)


def stand_in() -> ConsentRules:
    return ConsentRules(VERSION, STAND_IN, json.dumps(LIST))


def package(path: Path, name: str = PACKAGE, version: str = VERSION, **changed: bytes) -> Path:
    """Write the package as a file of npm; `changed` replaces contents by the last part of names."""
    files = {
        "package.json": json.dumps({"name": name, "version": version}).encode(),
        **FILES,
    }
    with tarfile.open(path, "w:gz") as archive:
        for file, data in files.items():
            key = file.rpartition("/")[2].partition(".")[0].replace("-", "_")
            content = changed.get(key, data)
            info = tarfile.TarInfo(f"package/{file}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def missing() -> str:
    """Return why the real package is not tested; empty if it is there."""
    given = os.environ.get("CONSENT_PACKAGE", "")
    if not given:
        return "CONSENT_PACKAGE names no file of the npm package @duckduckgo/autoconsent"
    return "" if Path(given).is_file() else f"CONSENT_PACKAGE: there is no file {given}"
