"""A real browser without a window: Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
POLL_S = 0.05
# The terminal of textual-serve keeps itself to itself and draws on a canvas: note it when it is made.
FIND_TERMINAL = """Object.defineProperty(Object.prototype, "terminal", {configurable: true, set(value) {
  Object.defineProperty(this, "terminal", {value, writable: true, configurable: true, enumerable: true});
  if (value && value.buffer) window.foundTerminal = value;
}});"""
READ_TERMINAL = """(() => {
  const found = window.foundTerminal;
  if (!found) return "";
  const lines = [];
  for (let y = 0; y < found.rows; y++) lines.push(found.buffer.active.getLine(y).translateToString(true));
  return lines.join("\\n");
})()"""


@contextmanager
def chromium(profile: Path, width: int = 1200, height: int = 800) -> Iterator[str]:
    """The address of the DevTools of a new browser; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no chromium or google-chrome on the PATH")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0"]
    # No look-ups of its own, so that a test sees every host that a page asks for.
    options += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += [f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
    with subprocess.Popen([found, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as browser:
        assert browser.stderr is not None
        try:
            for line in browser.stderr:
                if listening := re.search(r"DevTools listening on (ws://\S+)", line):
                    yield listening[1]
                    return
            pytest.fail("Chromium ended before its DevTools listened")
        finally:
            browser.kill()


class Page:
    """A tab. `asked` are the addresses that it has requested."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self._socket, self._session = socket, session
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.asked: list[str] = []

    async def open(self, url: str) -> int:
        """The HTTP status of the page."""
        await self.call("Page.navigate", url=url)
        status = 'performance.getEntriesByType("navigation")[0]?.responseStatus'
        loaded = f'location.href !== "about:blank" && document.readyState === "complete" && {status}'
        return int(await self.eventually(lambda: self.value(loaded), "the page"))

    async def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def screen(self, condition: Callable[[str], object], what: str, within_s: float = 30.0) -> str:
        """The first text on the terminal of the page for which the condition holds."""

        async def found() -> str:
            text = str(await self.value(READ_TERMINAL))
            return text if condition(text) else ""

        try:
            return str(await self.eventually(found, what, within_s))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.value(READ_TERMINAL)}") from None

    async def press(self, key: str) -> None:
        """Press a key: a character, or one of JavaScript's names for keys."""
        code = {"Enter": 13, "Escape": 27}.get(key, 0)
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def picture(self) -> bytes:
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])

    async def eventually(self, find: Callable[[], Any], what: str, within_s: float = 30.0) -> Any:
        try:
            async with asyncio.timeout(within_s):
                while not (found := await find()):
                    await asyncio.sleep(POLL_S)
                return found
        except TimeoutError:
            raise AssertionError(f"timed out waiting for {what}") from None

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(
            {
                "id": number,
                "method": method,
                "params": parameters,
                **({"sessionId": self._session} if self._session else {}),
            }
        )
        return await self._answers[number]

    async def listen(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if said.get("method") in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                found = said["params"]
                self.asked.append(str(found["request"]["url"] if "request" in found else found["url"]))
            elif "id" in said:
                assert "error" not in said, said
                self._answers.pop(said["id"]).set_result(said["result"])


@asynccontextmanager
async def tab(devtools: str) -> AsyncIterator[Page]:
    """A new tab of this browser, closed at the end of the block."""
    async with aiohttp.ClientSession() as client, client.ws_connect(devtools, max_msg_size=0) as socket:
        page = Page(socket, "")
        listening = asyncio.create_task(page.listen())
        try:
            target = (await page.call("Target.createTarget", url="about:blank"))["targetId"]
            page._session = (await page.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
            await page.call("Network.enable")
            await page.call("Page.enable")
            await page.call("Page.addScriptToEvaluateOnNewDocument", source=FIND_TERMINAL)
            yield page
            page._session = ""
            await page.call("Target.closeTarget", targetId=target)
        finally:
            listening.cancel()
