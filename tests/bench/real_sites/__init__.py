"""Real applications and documentation, served locally, and what plain Playwright sees of them."""
