"""Proxies that the environment names."""

import pytest
from yarl import URL

from rxagent.models.sessions import Sessions


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://api.example/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://api.example/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://api.example/v1", None),
        ({"http_proxy": "http://p:1"}, "http://127.0.0.1:8000/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.example,localhost"}, "https://api.example/v1", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://api.example/v1", None),
    ],
)
def test_a_proxy_of_the_environment_is_heeded(monkeypatch, environment, url, proxy):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Sessions(connect_timeout=1.0).proxy_for(URL(url)) == proxy
