"""Every preference with its default: a new one is one line here, its control is the settings'."""

from __future__ import annotations

DEFAULTS: dict[str, object] = {
    "general.language": "system",  # system, en, de; when a window is opened
    "appearance.theme": "system",  # system, light, dark
    "appearance.distinct": False,  # states without red and green
    "appearance.letters": 100,  # percent of the desktop's size
    "appearance.density": "normal",  # compact, normal, roomy: the rows of the list
    "shortcuts.keys": {},  # action -> its keys, where they are not the usual ones
    "engine.slots": 0,  # tasks at once; 0 is as many as suit this machine
    "engine.away_s": 60,  # so long a run waits for a folder that is away
    "browser.path": "",  # the program; empty: look for one
    "commands.allow_files": "",  # the folder whose files command tasks may upload; empty: none
    "retention.days": 30,  # what is offered to be cleared away: older than so many days …
    "retention.keep": 0,  # … but never the newest so many
    "retention.gigabytes": 0,  # … and what is over so many; 0 is no limit
    "force.reasons": [],  # the last reasons of a force, as they were kept
    "start.presets": [],  # requests kept by name
    "start.recent": [],  # the last that were started, without secrets
    "appearance.contrast": "system",  # system, more
    "desktop.tray": True,  # a sign in the tray, where the desktop has one
    "desktop.close_to_tray": False,  # closing the window hides it there
    "desktop.start_hidden": False,  # in the tray, without one minimised
    "desktop.quit_with_tasks": "ask",  # ask, keep (in the tray), cancel
    "desktop.keep_awake": True,  # the machine does not sleep while tasks run here
    "ledgers.beside": [],  # folders that are shown beside the window's own
    "export.format": "csv",  # the last one that was chosen
    "export.folder": "",  # the last one; empty: the documents
    "notify.failed": "popup",  # popup, list, none
    "notify.attention": "popup",
    "notify.completed": "list",
    "notify.cancelled": "none",
    "notify.while_active": False,  # pop-ups also while the window has the focus
    "notify.sound": False,
    "notify.quiet_from": "",  # HH:MM of local time; no pop-ups from then on …
    "notify.quiet_until": "",  # … until then
    "views.saved": [],  # what the list was narrowed to, by name
    "views.last": "",  # the key of the view that was chosen last
}
