"""The desktop around the window: other starts, links, tray, notifications, sleep, its end."""
