"""The building blocks of a report: one HTML file that needs nothing else, on a phone and on paper.

Everything that comes from data is escaped here, in one place: `Html` is text that is already safe, and
every other text is made safe when it is set into a page.
"""

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | int | float | None

_CSS = """\
:root { color-scheme: light; --ink: #1a1a1a; --soft: #595959; --line: #d9d9d9; --good: #00603f;
  --bad: #a11212; --open: #595959; --ground: #f4f5f7; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem 1rem 3rem; max-width: 46rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 .25rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.25rem 0 .5rem; padding-top: .6rem;
  border-top: 2px solid var(--ink); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: .75rem 0; }
.scroll:focus-visible { outline: 3px solid #0072b2; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; line-height: 1.35; }
th, td { padding: .45rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
thead th { background: var(--ground); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.words { min-width: 9rem; overflow-wrap: anywhere; }
.line { display: block; min-width: 24rem; margin-bottom: .2rem; }
code, pre { font: .8125rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre { margin: .4rem 0; padding: .5rem .7rem; overflow-x: auto; background: var(--ground);
  border-radius: 6px; }
.verdict { font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
figure { margin: 1rem 0 1.75rem; }
figure svg { display: block; width: 100%; max-width: 34rem; height: auto; }
figcaption { font-size: .875rem; line-height: 1.4; margin-top: .4rem; }
figcaption b { display: block; }
.beside { display: grid; gap: 0 1.5rem; }
@media (min-width: 60rem) {
  .beside { grid-template-columns: 1fr 1fr; width: 76rem; max-width: 94vw; margin-left: 50%;
    transform: translateX(-50%); }
}
.case { border-left: 3px solid var(--bad); padding-left: .8rem; margin: 1rem 0; }
@media print {
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, h3 { break-after: avoid; }
  figure, .case, tr { break-inside: avoid; }
  figure svg { max-width: 11.5cm; }
  .scroll { overflow: visible; border: 0; }
  table, table code { font-size: 7pt; }
  th, td { padding: .18rem .22rem; }
  thead { display: table-header-group; }
  thead th, .verdict { white-space: normal; }
  td.words { min-width: 28mm; }
  .line { min-width: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
}
"""


def safe(content: Content) -> Html:
    """Content as HTML; nothing stays empty."""
    if isinstance(content, Html):
        return content
    if content is None:
        return Html("&ndash;")
    return Html(escape(str(content), quote=True))


def join(parts: Iterable[str], between: str = "\n") -> Html:
    """Several pieces of HTML as one; plain text among them is made safe."""
    return Html(between.join(safe(part) for part in parts))


def element(tag: str, *parts: Content, kind: str = "") -> Html:
    """An element with content, of a style class."""
    attributes = f' class="{escape(kind, quote=True)}"' if kind else ""
    return Html(f"<{tag}{attributes}>{''.join(map(safe, parts))}</{tag}>")


def breakable(name: str) -> Html:
    """A dotted name that may be broken between its words."""
    return Html(safe(name).replace(".", ".<wbr>").replace("_", "_<wbr>"))


def section(title: str, *parts: Html) -> Html:
    """A section under a heading; nothing at all if it would be empty."""
    held = [part for part in parts if part]
    return join([Html("<section>"), element("h2", title), *held, Html("</section>")]) if held else Html("")


def table(
    label: str, head: Sequence[str], rows: Iterable[Sequence[Content]], words: Sequence[str] = ()
) -> Html:
    """A table in a box of its own, which scrolls if the screen is narrow; numbers stand to the right.

    A column is one of numbers if everything in it is; columns named in `words` hold sentences, and are wide.
    """
    held = [list(row) for row in rows]
    numeric = [all(_is_number(row[place]) for row in held) for place in range(len(head))]
    kinds = [
        "number" if number else ("words" if name in words else "")
        for name, number in zip(head, numeric, strict=True)
    ]
    cells = [element("th", name, kind=kind) for name, kind in zip(head, kinds, strict=True)]
    lines = [element("tr", join(cells, ""))]
    body = [
        element("tr", *(element("td", cell, kind=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in held
    ]
    whole = f"<table><thead>{''.join(lines)}</thead><tbody>\n" + "\n".join(body) + "\n</tbody></table>"
    named = escape(label, quote=True)
    return Html(f'<div class="scroll" tabindex="0" role="region" aria-label="{named}">{whole}</div>')


def _is_number(cell: Content) -> bool:
    """Whether it is a number, with or without its unit; what is already HTML has a style of its own."""
    if isinstance(cell, str):
        return not isinstance(cell, Html) and cell[:1].isdigit() and len(cell) < 16
    return True


def page(title: str, lead: Html, sections: Iterable[Html]) -> str:
    """The whole file."""
    body = join([element("h1", title), lead, *(section for section in sections if section)])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>\n{_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )
