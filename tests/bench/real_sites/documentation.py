"""Documentation packages of Debian, each served as a site of its own."""

from __future__ import annotations

from tests.bench.real_sites.packages import Missing, debian
from tests.bench.real_sites.server import Site

# The folder of the pages, the package, and what its scripts lie in.
_SCRIPTS = ("libjs-sphinxdoc", "libjs-jquery", "libjs-underscore")
PACKAGES = {
    "python": ("usr/share/doc/python3.11/html", "python3.11-doc", *_SCRIPTS),
    "django": ("usr/share/doc/python-django-doc/html", "python-django-doc", *_SCRIPTS),
    "apache": ("usr/share/doc/apache2-doc/manual", "apache2-doc"),
    "postgresql": ("usr/share/doc/postgresql-doc-15/html", "postgresql-doc-15"),
    "sqlite": ("usr/share/doc/sqlite3", "sqlite3-doc"),
    "git": ("usr/share/doc/git/html", "git-doc"),
    "policy": ("usr/share/doc/debian-policy/policy.html", "debian-policy", *_SCRIPTS),
    "ant": ("usr/share/doc/ant/manual", "ant-doc"),
}
START = {"apache": "en/index.html"}
ALL = ("python", "django", "apache", "postgresql", "sqlite", "git", "policy")


def site(name: str, failing: int = 0) -> Site:
    """The documentation as a site.

    Raises:
        Missing: its package cannot be had.
    """
    folder, *packages = PACKAGES[name]
    return Site(name, {"/": str(debian(folder, *packages))}, failing=failing)


def sites(names: tuple[str, ...]) -> list[Site]:
    """Those of `names` that can be had; what is missing is said.

    Raises:
        Missing: none of them can be had.
    """
    found = []
    for name in names:
        try:
            found.append(site(name))
        except Missing as why:
            print(f"{name}: skipped, because {why}")
    if not found:
        raise Missing("none of the documentation packages can be had")
    return found
