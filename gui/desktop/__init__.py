"""Desktop integration: launch requests, links, tray, notifications, keep-awake, quitting."""
