"""Addresses are read in full and printed without their passwords."""

from __future__ import annotations

import pytest

from wordreel.errors import WordreelError
from wordreel.util.server_address import PASSWORD_VARIABLE, parse_address


def test_the_parts_of_an_address():
    address = parse_address("postgres://me:p%40ss@[::1]:6543/films%20db?sslmode=require&mode=hnsw")
    assert (address.host, address.port, address.database) == ("::1", 6543, "films db")
    assert (address.user, address.password, address.mode) == ("me", "p@ss", "hnsw")
    assert address.options == (("sslmode", "require"),)
    assert parse_address("milvus://host").port == 19530


def test_the_password_is_never_printed():
    address = parse_address("milvus://root:secret@host")
    assert "secret" not in f"{address} {address!r}"
    assert parse_address(str(address)) == address


def test_the_password_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv(PASSWORD_VARIABLE, "hidden")
    assert parse_address("milvus://root@host").password == "hidden"  # noqa: S105
    assert parse_address("milvus://root:given@host").password == "given"  # noqa: S105


@pytest.mark.parametrize(
    "text",
    [
        "mysql://me:secret@host",
        "milvus://",
        "postgresql://me:secret@host:port/db",
        "postgresql://me:secret@host/db?mode=fast",
        "postgresql://host/db?password=secret",
        "postgresql://host/db?sslpassword=secret",
        "milvus://me:secret@host?tls=true",
        "milvus://me:secret@host?ssl=1",
    ],
)
def test_refusals_do_not_repeat_the_password(text):
    with pytest.raises(WordreelError) as error:
        parse_address(text)
    assert "secret" not in str(error.value)
