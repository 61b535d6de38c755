"""A headless Chromium, driven through its DevTools protocol: pages are opened, keys pressed, pictures taken."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
KEYS = {
    "Enter": ("\r", 13),
    "Escape": ("", 27),
    "ArrowLeft": ("", 37),
    "ArrowUp": ("", 38),
    "ArrowRight": ("", 39),
    "ArrowDown": ("", 40),
}
PATIENCE = 30.0


def chromium() -> str | None:
    """The program; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser without a past; ended at the end."""
    import aiohttp  # optional: without it one can still ask whether there is a browser

    program = chromium()
    if program is None:
        raise LookupError("there is no Chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as client:
                yield Browser(client, port)
        finally:
            process.terminate()
            await process.wait()


async def _port(path: Path) -> int:
    """Where it listens, which it writes into a file once it does."""
    async with asyncio.timeout(PATIENCE):
        while not (path.exists() and path.read_text(encoding="ascii").strip()):
            await asyncio.sleep(0.1)
    return int(path.read_text(encoding="ascii").split()[0])


class Browser:
    """A browser that runs."""

    def __init__(self, client: aiohttp.ClientSession, port: int) -> None:
        """Reach it at a port."""
        self._client, self._port = client, port

    @contextlib.asynccontextmanager
    async def page(self, url: str, size: tuple[int, int] = (1280, 800)) -> AsyncIterator[Page]:
        """A page that is opened at an address, in a window of so many pixels."""
        async with self._client.put(f"http://127.0.0.1:{self._port}/json/new?about:blank") as answer:
            target = await answer.json()
        async with self._client.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            try:
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.ask(f"{domain}.enable")
                await page.resize(size)
                await page.ask("Page.navigate", url=url)
                yield page
            finally:
                page.close()


class Page:
    """A page that is open.

    Attributes:
        shown: What its terminal was sent, with the sequences of the terminal.
        requests: The addresses that it asked for.
        failed: The status and address of what was refused or not there.
        said: What its console says is wrong.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Listen to a page."""
        self.shown = b""
        self.requests: list[str] = []
        self.failed: list[tuple[int, str]] = []
        self.said: list[str] = []
        self._socket, self._numbers = socket, itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    def close(self) -> None:
        """Listen no more."""
        self._reading.cancel()

    async def ask(self, method: str, **given: Any) -> dict[str, Any]:
        """What a method of the protocol answers."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": given})
        return await asyncio.wait_for(answer, PATIENCE)

    async def run(self, script: str) -> Any:
        """The value of an expression in the page; what is promised is waited for."""
        answer = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    async def press(self, *keys: str) -> None:
        """Press keys: characters, or names such as ArrowDown."""
        for key in keys:
            text, code = KEYS[key] if key in KEYS else (key, ord(key.upper()) if key.isalnum() or key == " " else 0)
            named: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code}
            await self.ask("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
            await self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    async def resize(self, size: tuple[int, int]) -> None:
        """Give the window so many pixels."""
        width, height = size
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def until(self, words: bytes, since: int = 0) -> None:
        """Wait until the terminal was sent something, after so many bytes.

        Raises:
            TimeoutError: It was not.
        """
        await self.until_true(lambda: words in self.shown[since:])

    async def until_true(self, holds: Any) -> None:
        """Wait until something holds.

        Raises:
            TimeoutError: It never did.
        """
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(0.05)

    async def until_says(self, words: str) -> None:
        """Wait until the page itself says something."""
        async with asyncio.timeout(PATIENCE):
            while words not in (await self.run("document.getElementById('said')?.innerText ?? ''")):
                await asyncio.sleep(0.1)

    async def picture(self) -> bytes:
        """The page as a PNG."""
        return base64.b64decode((await self.ask("Page.captureScreenshot", format="png"))["data"])

    async def _read(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                waiting = self._answers.pop(told["id"])
                if not waiting.done():
                    waiting.set_result(told.get("result", {"result": told.get("error")}))
            else:
                self._take(told["method"], told["params"])

    def _take(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.webSocketFrameReceived" and about["response"]["opcode"] == 2:
            self.shown += base64.b64decode(about["response"]["payloadData"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Network.webSocketCreated":
            self.requests.append(about["url"])
        elif event == "Network.responseReceived" and about["response"]["status"] >= 400:
            self.failed.append((about["response"]["status"], about["response"]["url"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.said.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif event == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"]))
