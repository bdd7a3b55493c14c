"""Real applications and documentation, served locally, and their reference by Playwright."""
