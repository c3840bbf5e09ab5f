"""Checks a built site, `python docs/links.py build/docs`: links lead somewhere, nothing is loaded from elsewhere."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img", "script", "iframe", "source", "video", "object", "embed"}  # as soon as a page is shown


class Page(HTMLParser):
    """The names that a page can be entered by, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {name for key in ("id", "name") if (name := given.get(key))}
        target = given.get("href") or given.get("src")
        if target:
            loaded = tag in LOADED or (tag == "link" and "stylesheet" in (given.get("rel") or ""))
            (self.loads if loaded else self.links).add(target)


def faults(site: Path) -> list[str]:
    """What is wrong in the site's pages."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site)
        found += [f"{here}: loads {target}" for target in page.loads if urlsplit(target).netloc]
        for target in sorted(page.links | page.loads):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                found.append(f"{here}: {target}: no such file")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].names:
                found.append(f"{here}: {target}: no such place on that page")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    wrong = faults(site)
    print("\n".join(wrong) or f"{len(list(site.rglob('*.html')))} pages: every link leads somewhere")
    sys.exit(bool(wrong))
