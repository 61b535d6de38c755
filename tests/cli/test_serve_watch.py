"""`serve --watch`: one leads, many look on."""

from __future__ import annotations

import pytest
from serving import serving, until

WATCHED = {"token": "leads-" + "a" * 30, "looks_on": "looks-" + "b" * 30, "visitors": 2}


async def test_many_look_on_at_what_one_leads_and_can_do_nothing(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, server):
        from aiohttp import WSServerHandshakeError

        leads, looks = (f"token={WATCHED[name]}" for name in ("token", "looks_on"))
        assert "ws://" in (page := await (await client.get(f"/?{leads}")).text())
        assert "/ws" in page
        async with client.ws_connect(f"/look?{looks}") as early:
            async with client.ws_connect(f"/ws?{leads}&width=90&height=30") as one:
                assert await early.receive_json() == ["look", 90, 30]
                assert (await one.receive_bytes()) == (await early.receive_bytes()) == b"90x30"
                async with client.ws_connect(f"/look?{looks}") as late:
                    assert await late.receive_json() == ["look", 90, 30]
                    assert "redraw" in (await late.receive_bytes()).decode()
                    await late.send_json(["stdin", "of nobody"])
                    await late.send_json(["resize", {"width": 20, "height": 10}])
                    await late.send_str("no message")
                    await one.send_json(["stdin", "of who leads"])
                    assert (await late.receive_bytes()) == b"of who leads"
                    with pytest.raises(WSServerHandshakeError, match="503"):
                        await client.ws_connect(f"/look?{looks}")
                await one.send_json(["resize", {"width": 100, "height": 40}])
                seen = [await early.receive() for _ in range(3)]
                assert '["look", 100, 40]' in [message.data for message in seen]
                page = await (await client.get(f"/?{looks}")).text()
                assert "/look" in page
                assert 'data-columns="100"' in page
            await until(lambda: server.free == 1)
            said = [(await early.receive()).data for _ in range(2)]
            assert b"session has ended" in said[-1]


async def test_who_looks_on_leads_nothing_and_without_watching_nobody_looks_on(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, _):
        for path in (f"/ws?token={WATCHED['looks_on']}", "/look", "/look?token=wrong", "/ws"):
            assert (await client.get(path)).status == 403
    async with serving(tmp_path) as (client, _):
        assert (await client.get("/look")).status == 404
