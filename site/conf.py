# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx for the documentation site; `make site` builds it.

The sources are the Markdown files of the repository where they are, so that the
same links work on GitHub and on the site. docs/README.md is the table of contents:
each section becomes a part of the navigation, and each page that it links to
becomes a page of the site.
"""

import os
import pathlib
import re
import shutil

from docutils import nodes

ROOT = pathlib.Path(__file__).parent.parent
HOME, CONTENTS = "README", "docs/README"
# Where links to files that are not pages lead, such as https://github.com/OWNER/NAME/blob/main.
REPOSITORY = os.environ.get("REPOSITORY", "").rstrip("/")

LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def relative(page, target):
    """Returns the path of a link's target from the root of the repository."""
    return os.path.normpath(os.path.join(os.path.dirname(page), target))


def contents():
    """Returns the pages of each section of the table of contents with their titles, in its order."""
    sections, seen = {}, {HOME, CONTENTS}
    text = (ROOT / (CONTENTS + ".md")).read_text()
    for section in text.split("\n## ")[1:]:
        pages = {}
        for link in LINK.finditer(section):
            page = relative(CONTENTS, link[3]).removesuffix(".md")
            if link[3].endswith(".md") and not link[4] and page not in seen:
                seen.add(page)
                pages[page] = link[2][0].upper() + link[2][1:]
        sections[section.splitlines()[0]] = pages
    return sections


def parent(page):
    """Returns the README of the folder of a page, if the README is in the navigation too."""
    readme = os.path.dirname(page) + "/README"
    return readme if page != readme and readme in PAGES and readme != CONTENTS else None


def toctree(pages, caption=""):
    """Returns the directive that lists pages in the navigation."""
    options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return "\n".join(["", "", "```{toctree}", *options, "", *(f"{title} </{page}>" for page, title in pages.items()), "```", ""])


SECTIONS = contents()
PAGES = {page: title for pages in SECTIONS.values() for page, title in pages.items()}


def navigation(page):
    """Returns what the navigation shows below a page."""
    if page == HOME:
        out = toctree({CONTENTS: "All documents"})
        for caption, pages in SECTIONS.items():
            out += toctree({p: title for p, title in pages.items() if not parent(p)}, caption)
        return out
    below = {p: title for p, title in PAGES.items() if parent(p) == page}
    return toctree(below) if below else ""


def read_source(app, page, source):
    """Leads links to files that are not pages to the repository, and adds the navigation."""

    def lead(link):
        image, text, target, heading = link[1], link[2], link[3], link[4] or ""
        if image or ":" in target:
            return link[0]
        path = relative(page, target)
        if path.removesuffix(".md") in app.env.found_docs:
            return link[0]
        return f"[{text}]({REPOSITORY}/{path}{heading})" if REPOSITORY else text

    source[0] = LINK.sub(lead, source[0]) + navigation(page)


def draw_diagrams(app, document):
    """Leaves Mermaid diagrams to the script in the browser."""
    for block in document.findall(nodes.literal_block):
        if block.get("language") == "mermaid":
            text = block.astext().replace("&", "&amp;").replace("<", "&lt;")
            block.replace_self(nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html"))


def finish(app, error):
    """Makes the README the first page."""
    if not error:
        shutil.copy(pathlib.Path(app.outdir) / (HOME + ".html"), pathlib.Path(app.outdir) / "index.html")


def setup(app):
    app.connect("source-read", read_source)
    app.connect("doctree-read", draw_diagrams)
    app.connect("build-finished", finish)


project = html_title = "Karpenter (independent)"
root_doc = HOME
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
include_patterns = [page + ".md" for page in (HOME, CONTENTS, *sorted(PAGES))]
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_static_path = ["static", "../bin/mermaid"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = html_show_sphinx = False
