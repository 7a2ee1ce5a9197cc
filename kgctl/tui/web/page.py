"""The page around the terminal, which textual-serve draws. Everything comes from the server itself, fonts included."""

from __future__ import annotations

from string import Template

_PAGE = Template("""<!DOCTYPE html>
<html lang="en" data-theme="$theme">
  <head>
    <meta charset="utf-8">
    <title>$title</title>
    <link rel="icon" href="data:,">
    <link rel="preload" href="static/fonts/RobotoMono-VariableFont_wght.ttf" as="font" type="font/ttf" crossorigin>
    <link rel="stylesheet" href="static/css/xterm.css">
    <link rel="stylesheet" href="page.css">
    <script src="page.js"></script>
    <script src="static/js/textual.js"></script>
  </head>
  <body>
    <main id="terminal" class="textual-terminal" data-session-websocket-url="$websocket" data-font-size="$font_size"></main>
    <div id="notice" role="status"><p>Opening the dashboard ...</p><button type="button" hidden>Open again</button></div>
  </body>
</html>
""")

STYLE = """@font-face {
  font-family: "Roboto Mono";
  src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
  font-weight: 100 700;
}
:root { --page: #14181c; --ink: #d7dce0; --line: #8a9ba8; }
:root[data-theme="light"] { --page: #fbfbf9; --ink: #1d2429; --line: #5b6770; }
:root[data-theme="contrast"] { --page: #000000; --ink: #ffffff; --line: #ffffff; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px "Roboto Mono", monospace; }
.textual-terminal { position: fixed; inset: 0; overflow: hidden; }
.xterm .xterm-viewport { background-color: var(--page) !important; overflow: hidden; }
#notice {
  position: fixed; top: 40%; left: 50%; transform: translate(-50%, -50%); z-index: 20; max-width: 80vw;
  padding: 1em 2em; border: 1px solid var(--line); background: var(--page); text-align: center; overflow-wrap: anywhere;
}
#notice button { font: inherit; padding: .4em 1.5em; color: inherit; background: none; border: 1px solid var(--line); }
#notice button:not([hidden]) { display: inline-block; margin-bottom: 1em; }
body:not(.-first-byte) .textual-terminal { opacity: 0; }
body.-first-byte:not(.-lost) #notice { display: none; }
body.-lost .textual-terminal { opacity: .35; }
"""

SCRIPT = """"use strict";
// Runs before textual.js, which opens the only websocket of the page and does not say why it was closed.
(() => {
  const notice = (text, canReopen) => {
    document.body.classList.add("-lost");
    document.querySelector("#notice p").textContent = text;
    const button = document.querySelector("#notice button");
    button.hidden = !canReopen;
    if (canReopen) button.focus();
  };
  const reopen = () => window.location.reload();
  const retry = () => fetch("ping", {cache: "no-store"}).then(
    (answer) => answer.ok ? reopen() : notice("The server has been restarted. Open the address that it has printed.", false),
    () => window.setTimeout(retry, 2000));
  const Opened = window.WebSocket;
  window.WebSocket = class extends Opened {
    constructor(...given) {
      super(...given);
      this.addEventListener("open", () => document.querySelector(".xterm-helper-textarea").focus());
      this.addEventListener("close", (event) => {
        if (event.reason) notice(event.reason, true);
        else if (event.code === 1000) notice("The dashboard has ended.", true);
        else { notice("The connection is lost. Waiting for the server ...", false); retry(); }
      });
    }
  };
  window.addEventListener("load", () => document.querySelector("#notice button").addEventListener("click", reopen));
})();
"""


def page(title: str, websocket: str, theme: str, font_size: int) -> str:
    return _PAGE.substitute(title=title, websocket=websocket, theme=theme, font_size=font_size)
