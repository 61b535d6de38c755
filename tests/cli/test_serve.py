"""`serve`: one session a visitor, within bounds, and nothing that was given is read by a shell."""

import asyncio
import contextlib
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from serving import needs_library, serving

from tui_transformer.cli.serve import Serve, explorer_command


@needs_library
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?width=120&height=40", "120x40"),
        ("?width=99999999&height=99999999", "400x150"),
        ("?width=-5&height=0", "20x6"),
        ("?width=x&height=", "80x24"),
        ("", "80x24"),
    ],
)
async def test_the_size_of_a_screen_is_bounded(query, wanted, tmp_path):
    async with serving(tmp_path) as (client, _), client.ws_connect(f"/ws{query}") as socket:
        assert (await socket.receive_bytes()).decode() == wanted


@needs_library
async def test_each_visitor_has_a_session_and_there_are_so_many(tmp_path):
    from aiohttp import WSServerHandshakeError

    async with serving(tmp_path, visitors=2) as (client, server):
        async with client.ws_connect("/ws") as one, client.ws_connect("/ws") as other:
            await one.receive_bytes()
            await other.receive_bytes()
            await one.send_json(["stdin", "of one"])
            await other.send_json(["stdin", "of the other"])
            assert (await one.receive_bytes()).decode() == "of one"
            assert (await other.receive_bytes()).decode() == "of the other"
            with pytest.raises(WSServerHandshakeError, match="503"):
                await client.ws_connect("/ws")
        for _ in range(100):
            if server.free == 2:
                break
            await asyncio.sleep(0.05)
        assert server.free == 2


@needs_library
async def test_another_page_cannot_steer_the_explorer(tmp_path):
    from aiohttp import WSServerHandshakeError

    async with serving(tmp_path) as (client, _):
        with pytest.raises(WSServerHandshakeError, match="403"):
            await client.ws_connect("/ws", origin="http://elsewhere.example")
        async with client.ws_connect("/ws", origin="http://127.0.0.1:8000") as socket:
            await socket.receive_bytes()


@needs_library
async def test_what_is_no_message_is_left_out(tmp_path):
    async with serving(tmp_path) as (client, _), client.ws_connect("/ws") as socket:
        await socket.receive_bytes()
        for text in (
            "",
            "[]",
            "{}",
            "3",
            "[3]",
            '["stdin"]',
            '["stdin", 3]',
            '["resize", {}]',
            '["what", 1]',
            "[" * 5000,
        ):
            await socket.send_str(text)
        await socket.send_bytes(b"\xff")
        await socket.send_json(["resize", {"width": 10**9, "height": 10**9}])
        assert '"width": 400, "height": 150' in (await socket.receive_bytes()).decode()
        await socket.send_json(["ping", "x"])
        assert await socket.receive_json() == ["pong", "x"]


@pytest.mark.parametrize("text", ["it's; touch pwned", "$(touch pwned)", "`touch pwned`", "--help", "a\nb && c", "\\"])
def test_what_is_given_comes_through_a_shell_as_it_is(text):
    command = explorer_command(Serve(text=(text,), model="question", cut=True, bias=False, tour="my lecture.toml"))
    assert command[:4] == [sys.executable, "-P", "-m", "tui_transformer"]
    assert f"--text={text}" in command
    assert {"--model=question", "--cut", "--no-bias", "--tour=my lecture.toml"} <= set(command)
    shown = subprocess.run(  # noqa: S602 - as the library does it
        shlex.join([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *command]),
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == ascii(command)


def test_the_command_is_one_that_the_explorer_takes():
    from typer.main import get_command

    from tui_transformer.cli.main import app

    command = explorer_command(
        Serve(text=("a", "b"), layers=2, scale_embedding=True, bracket=True, theme="tui-light", tour="question")
    )
    assert get_command(app).make_context("x", command[4:], resilient_parsing=True).params["layers"] == 2


def test_without_the_library_a_line_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "tui_transformer.cli.server", raising=False)
    ended = run("serve")
    assert ended.code == 1
    assert ended.err == "tui-transformer: serve needs the extra serve: pip install 'tui-transformer[serve]'\n"


@needs_library
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--port", "0"), "--port"),
        (("--port", "70000"), "--port"),
        (("--host", "no such host"), "choose another"),
        (("--url", "javascript:alert(1)"), "is not an address"),
        (("--theme", "nothing"), "no theme is called"),
        (("--visitors", "0"), "--visitors"),
        (("--files", "nowhere"), "no such folder"),
        (("--idle", "-1"), "--idle"),
        (("--idle", "nan"), "--idle"),
    ],
)
def test_what_cannot_be_served_is_said(run, arguments, says):
    ended = run("serve", *arguments)
    assert ended.code in (1, 2)
    assert says in ended.err


@needs_library
def test_a_port_that_is_taken_is_said(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = run("serve", "--port", str(taken.getsockname()[1]))
    assert ended.code == 1
    assert "choose another" in ended.err


@needs_library
@pytest.mark.slow
def test_the_explorer_itself_is_shown_to_a_visitor(environment):
    import aiohttp

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", "serve", "--model", "question", "--no-token", "--port", str(port)],
        env=environment,
    )
    try:
        until_served(f"http://127.0.0.1:{port}/")

        async def visit() -> bytes:
            seen = b""
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"http://127.0.0.1:{port}/ws?width=120&height=36") as socket,
            ):
                end = time.monotonic() + 120
                while b"Feed-forward" not in seen:
                    assert time.monotonic() < end
                    message = await socket.receive(timeout=120)
                    seen += message.data if isinstance(message.data, bytes) else b""
            return seen

        assert b"sailor" in asyncio.run(visit())
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def until_served(url: str) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:  # noqa: S310 - our own
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError(url)
