"""The page's style sheet; colours come as variables."""

STYLE = """\
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 3rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
p { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
section { margin-top: 2.25rem; padding-top: 1.25rem; border-top: 1px solid var(--rule); }
.summary { font-size: 1.15rem; }
.soft, .note, .more, caption { color: var(--soft); }
.note, .more { font-size: .875rem; }
.scroll { overflow-x: auto; margin: 1rem 0; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid var(--joined); outline-offset: 2px; }
figure svg { display: block; width: 100%; min-width: 40rem; max-width: 72rem; height: auto; color: var(--ink); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; min-width: 60%; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--rule);
  white-space: nowrap; font-weight: normal; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
.right { text-align: right; }
.right + :not(.right) { padding-left: .5rem; }
.wide { white-space: normal; min-width: 14rem; }
.name { white-space: normal; min-width: 8rem; max-width: 22rem; overflow-wrap: anywhere; }
.when { font-variant-numeric: tabular-nums; }
.verdict { display: inline-block; min-width: 5.2em; padding: 0 .4em; margin-right: .3em; border: 1px solid var(--soft);
  border-radius: .25em; font-size: .8em; font-weight: 600; text-align: center; }
.STOPPED, .STALLED { background: var(--session); border-color: var(--session); color: #000; }
.REWOUND, .LAGGING { background: var(--left); border-color: var(--left); color: #000; }
.OK { border-color: var(--subscription); }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .95em; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; }
  figure svg { min-width: 0; }
  figure, tr, .verdict { break-inside: avoid; }
  h2, caption { break-after: avoid; }
  table, .note, .more { font-size: 7.5pt; }
  th, td { padding-right: .5rem; }
  .wide, .name { min-width: 6rem; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
