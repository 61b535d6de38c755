"""`serve` in a real browser: keys without a click, resizes, two visitors, a connection that is lost and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.append(str(Path(__file__).parents[2] / "screenshots"))

pytest.importorskip("textual_serve")
from browser import Browser, Page, browser, chromium
from served import free_port, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium"),
    pytest.mark.skipif(importlib.util.find_spec("textual_serve") is None, reason="the extra serve is not installed"),
]

POSITIONS = b"10000^"
"""Shown at the step of positions alone."""


@contextlib.asynccontextmanager
async def explored(opened: Browser, url: str) -> AsyncIterator[Page]:
    """A page that shows the explorer."""
    async with opened.page(url) as page:
        await page.until(b"sailor")
        await asyncio.sleep(0.5)
        yield page


@contextlib.asynccontextmanager
async def explored_once(environment: dict[str, str]) -> AsyncIterator[Page]:
    async with (
        served("--model", "question", environment=environment) as url,
        browser() as opened,
        explored(opened, url) as page,
    ):
        yield page


async def go_to_positions(page: Page) -> None:
    before = len(page.shown)
    await page.press(":", "4", "Enter")
    await page.until(POSITIONS, before)


class Line:
    """A line between page and server that can be cut."""

    def __init__(self, port: int) -> None:
        self.port, self.cut = port, False
        self.open: list[asyncio.StreamWriter] = []

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            writer.close()
            return
        there = await asyncio.open_connection("127.0.0.1", self.port)
        self.open += [writer, there[1]]
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    def break_off(self) -> None:
        self.cut = True
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()


async def test_the_page_takes_keys_at_once_follows_its_window_and_loads_nothing_from_elsewhere(environment):
    async with explored_once(environment) as page:
        assert await page.run("document.activeElement.className") == "xterm-helper-textarea"
        await go_to_positions(page)
        before = len(page.shown)
        await page.resize((900, 500))
        await page.until(b"where", before)
        hosts = {urlsplit(each).netloc for each in page.requests if not each.startswith("data:")}
        assert hosts == {await page.run("window.location.host")}
        assert (page.failed, page.said) == ([], [])


async def test_two_visitors_explore_each_for_themselves(environment):
    async with (
        served("--model", "question", environment=environment) as url,
        browser() as opened,
        explored(opened, url) as one,
        explored(opened, url) as other,
    ):
        await go_to_positions(one)
        await asyncio.sleep(0.5)
        assert POSITIONS not in other.shown
        before = len(one.shown)
        await go_to_positions(other)
        assert one.shown[before:].count(POSITIONS) == 0


async def test_a_connection_that_was_lost_comes_back_to_the_same_session(environment):
    async with served("--model", "question", environment=environment) as url, browser() as opened:
        line = Line(urlsplit(url).port or 0)
        async with await asyncio.start_server(line.take, "127.0.0.1", 0) as between:
            port = between.sockets[0].getsockname()[1]
            async with explored(opened, url.replace(str(line.port), str(port))) as page:
                await go_to_positions(page)
                line.break_off()
                await page.until_says("the connection is lost")
                before, line.cut = len(page.shown), False
                await page.until_says("the session goes on")
                await page.until(POSITIONS, before)
                line.break_off()


async def test_a_server_that_was_started_anew_begins_a_new_session_and_says_so(environment):
    port, options = free_port(), ("--model", "question", "--no-token")
    async with browser() as opened, contextlib.AsyncExitStack() as stack:
        async with served(*options, environment=environment, port=port) as url:
            page = await stack.enter_async_context(explored(opened, url))
            await go_to_positions(page)
        await page.until_says("the connection is lost")
        before = len(page.shown)
        async with served(*options, environment=environment, port=port):
            await page.until_says("a new one has begun")
            await page.until(b"sailor", before)


async def test_without_a_folder_an_export_is_a_download(environment, tmp_path):
    async with explored_once(environment) as page:
        await page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        await go_to_positions(page)
        await page.press("m", "x")
        await page.until(b"decides")
        await page.press("Enter")
        await page.until_true(lambda: [*tmp_path.glob("*.csv")])
        assert next(tmp_path.glob("*.csv")).read_text(encoding="utf-8").count("\n") == 10


async def test_a_session_that_is_left_can_be_begun_again(environment):
    async with explored_once(environment) as page:
        await page.press("q")
        await page.until_says("the session has ended")
        before = len(page.shown)
        await page.press("Enter")
        await page.until(b"sailor", before)


async def test_a_second_address_looks_on_in_the_size_of_the_first_and_can_do_nothing(environment):
    async with served("--model", "question", "--watch", environment=environment) as urls, browser() as opened:
        first, second = urls.split()
        async with explored(opened, first) as leads, opened.page(second, (700, 500)) as looks:
            await looks.until(b"sailor")
            await looks.press(":", "4", "Enter")  # nothing happens
            await asyncio.sleep(1)
            assert POSITIONS not in looks.shown
            before = len(looks.shown)
            await go_to_positions(leads)
            await looks.until(POSITIONS, before)
