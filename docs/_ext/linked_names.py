"""Links from code in sentences, such as `RankSVM`, to the page of what it names.

Names of metrics such as ndcg@10, which reStructuredText takes for addresses, are no links.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import marginrank
from marginrank import metrics, plots
from marginrank.cli.app import COMMANDS

OBJECTS = {name: f"marginrank.{name}" for name in marginrank.__all__ if name != "metrics"}
OBJECTS |= {f"metrics.{name}": f"marginrank.metrics.{name}" for name in metrics.__all__}
OBJECTS |= {name: f"marginrank.plots.{name}" for name in vars(plots) if name.startswith("plot_")}
FULL_NAMES = set(OBJECTS.values())


class UnlinkMetrics(SphinxTransform):
    """Make plain text of what was taken for the address of an e-mail."""

    default_priority = 700

    def apply(self, **kwargs):
        for link in [*self.document.findall(nodes.reference)]:
            if link.get("refuri", "").startswith("mailto:"):
                link.replace_self(link.children)


class LinkNames(SphinxTransform):
    """Link the first mention of a name in each section."""

    default_priority = 700

    def apply(self, **kwargs):
        linked = set()
        for literal in [*self.document.findall(nodes.literal)]:
            if isinstance(literal.parent, nodes.reference | addnodes.pending_xref | nodes.title):
                continue
            target = target_of(literal.astext())
            if target is None or f"/{self.env.docname}".endswith(target["reftarget"]):
                continue
            mention = (section_of(literal), target["reftarget"])
            if mention not in linked:
                linked.add(mention)
                link = addnodes.pending_xref("", refwarn=True, refexplicit=True, **target)
                link["refdoc"] = self.env.docname
                literal.replace_self(link)
                link += literal


def target_of(code):
    """Return where inline code leads to, or None."""
    name = code.removesuffix("()")
    if name in OBJECTS or name in FULL_NAMES:
        full = OBJECTS.get(name, name)
        return {"refdomain": "py", "reftype": "obj", "reftarget": full}
    if (found := re.match(r"marginrank ([\w-]+)", code)) and found[1] in COMMANDS:
        return page(f"/reference/commands/{found[1]}")
    if found := re.fullmatch(r"docs(/[\w/]+)\.md", code):
        return page(found[1])
    return None


def page(name):
    return {"refdomain": "std", "reftype": "doc", "reftarget": name}


def section_of(node):
    while node.parent is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node


def setup(app):
    app.add_transform(UnlinkMetrics)
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
