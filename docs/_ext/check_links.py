"""Check that every internal link of the built site leads to a file, and to a place in it.

    python docs/_ext/check_links.py build/site

Prints one line per broken link and exits with 1 if there is any.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places to which links can lead."""

    def __init__(self):
        super().__init__()
        self.links, self.places = [], {"", "top"}

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            elif name in {"id", "name"} and value:
                self.places.add(value)


@cache
def read(path):
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_broken(link, path):
    """Whether a link of the page at `path` leads to nothing on this site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return True
    return target.suffix == ".html" and unquote(parts.fragment) not in read(target).places


def main(site):
    """Check the pages of a site."""
    files = sorted(Path(site).resolve().rglob("*.html"))
    pages = [path for path in files if "_static" not in path.parts]  # templates of the theme
    links = [(path, link) for path in pages for link in read(path).links]
    broken = [(path, link) for path, link in links if is_broken(link, path)]
    for path, link in broken:
        print(f"{path}: {link} leads nowhere")
    print(f"{len(links)} links of {len(pages)} pages: {len(broken)} broken")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
