"""Who may ask, from where, and how much: every refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.tables.errors import UsageError
from stepscope.web.guard import MAX_BODY_BYTES, MAX_PATH, MAX_QUERY
from stepscope.web.settings import Access

from .conftest import PORT, TOKEN, browser

if TYPE_CHECKING:
    from starlette.testclient import TestClient
    from starlette.types import ASGIApp

    from .recorded import Recorded

BEARER = {"Authorization": f"Bearer {TOKEN}"}
SESSIONS = "/api/v1/sessions"
ADDRESSES = ("/", "/assets/index.js", "/metrics", "/api/v1/health", "/api/v1/openapi.json", SESSIONS, "/nothing")


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_token_nothing_is_answered(app: ASGIApp, path: str) -> None:
    """Who does not know the token learns nothing, not even which addresses exist."""
    answer = browser(app).get(path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize("path", ["/", "/sessions/0123456789abcdef"])
def test_somebody_without_token_reads_why(app: ASGIApp, path: str) -> None:
    """A browser that opens an address gets a page and no JSON; it names nothing but the way in."""
    answer = browser(app).get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "stepscope view" in answer.text


def test_an_unknown_address_leads_back(client: TestClient) -> None:
    """A page that does not exist says so, escaped, with a link to all sessions; the REST interface answers JSON."""
    answer = client.get("/no<b>thing", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "no&lt;b&gt;thing" in answer.text
    assert '<a href="/">' in answer.text
    refused = client.get("/api/v1/nothing", headers={"Accept": "text/html"})
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("word", ["", "wrong", TOKEN[:-1], TOKEN + "0", "é"])
def test_a_wrong_token_is_refused(app: ASGIApp, word: str) -> None:
    """In the header, in the address, in the cookie."""
    assert browser(app, headers={"Authorization": f"Bearer {word}".encode()}).get(SESSIONS).status_code == 401
    assert browser(app).get(SESSIONS, params={"token": word}).status_code == 401
    cookie = f"stepscope-{PORT}={word}".encode()
    assert browser(app, headers={"Cookie": cookie}).get(SESSIONS).status_code == 401


def test_the_token_itself_is_no_cookie(app: ASGIApp) -> None:
    """A cookie that leaks does not tell the token, and the token is none."""
    assert browser(app, cookies={f"stepscope-{PORT}": TOKEN}).get(SESSIONS).status_code == 401


def test_the_address_with_token_becomes_a_cookie(app: ASGIApp) -> None:
    """The token leaves the address at once; the cookie is for this server, no script, no other site."""
    client = browser(app)
    answer = client.get("/sessions/0123456789abcdef", params={"token": TOKEN, "task": "a b"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sessions/0123456789abcdef?task=a+b"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get(SESSIONS).status_code == 200


def test_the_redirect_stays_on_this_server(app: ASGIApp) -> None:
    """An address of two slashes is no way to another host."""
    answer = browser(app).get(f"http://127.0.0.1:{PORT}//evil.example/", params={"token": TOKEN})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example:7330",
        "",
        "localhost.evil:7330",
        "10.0.0.1",
        "127.0.0.1:7400.evil.example",
        "127.0.0.1:7400@evil.example",
        "localhost:7330@evil.example",
        "127.0.0.1:",
        "[::1]:x",
    ],
)
def test_another_host_name_is_refused(app: ASGIApp, host: str) -> None:
    """A name that somebody had rebound to this machine opens nothing, even with the token."""
    answer = browser(app).get(SESSIONS, headers={**BEARER, "Host": host})
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["localhost:7330", "127.0.0.1:7330", "[::1]:7330", "[::1]", "LOCALHOST:9000"])
def test_own_names_are_answered(app: ASGIApp, host: str) -> None:
    """Through a tunnel the port is another one."""
    assert browser(app).get(SESSIONS, headers={**BEARER, "Host": host}).status_code == 200


FOREIGN = ("http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:7330", "")


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(app: ASGIApp, origin: str, method: str) -> None:
    """Pages of other origins, other ports of this host included, read and change nothing, even with the token."""
    headers = {**BEARER, "Origin": origin}
    answer = browser(app).request(method, "/api/v1/jobs/1/captures", headers=headers, json={})
    assert answer.status_code == 403


def test_a_change_by_cookie_needs_the_own_origin(app: ASGIApp, access: Access) -> None:
    """Without Origin a cookie changes nothing; a bearer without Origin is no browser."""
    client = browser(app, cookies={access.cookie_name: access.cookie_value})
    url = "/api/v1/jobs/1/captures"
    assert client.post(url, json={}).status_code == 403
    own = {"Origin": f"http://127.0.0.1:{PORT}"}
    assert client.post(url, json={}, headers=own).status_code == 404  # let through: there is no such job
    assert browser(app, headers=BEARER).post(url, json={}).status_code == 404


def test_a_change_by_address_is_refused(app: ASGIApp) -> None:
    """A token in the address lets nobody POST: links and forms can carry it."""
    answer = browser(app).post("/api/v1/jobs/1/captures", params={"token": TOKEN}, json={})
    assert answer.status_code == 401


def test_deleting_needs_the_name(client: TestClient, recorded: Recorded) -> None:
    """Without it nothing is deleted."""
    assert client.delete(recorded.url).status_code == 400
    assert client.get(recorded.url).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_other_methods_change_nothing(client: TestClient, recorded: Recorded, method: str) -> None:
    """What can only be read says so."""
    answer = client.request(method, recorded.url)
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


def test_a_form_is_refused(client: TestClient) -> None:
    """What a page of another origin could send without asking is no JSON."""
    answer = client.post("/api/v1/jobs/1/captures", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


ESCAPES = (
    "/assets/..%2f..%2fpyproject.toml",
    "/assets/%2e%2e/%2e%2e/etc/passwd",
    "/assets/..%5c..%5cetc%5cpasswd",
    "/assets/%00index.html",
    "/sessions/..%2f..%2fetc",
    "/api/v1/sessions/..%2f..%2f..%2fetc%2fpasswd/report",
    "/api/v1/sessions/%2e%2e/report",
)


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_escapes_is_refused(client: TestClient, path: str) -> None:
    """Folders above, in any writing, are not reached."""
    assert client.get(path).status_code in {400, 404}
    assert client.get(path).headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("file", ["/etc/passwd", "../../../../etc/passwd", "train.py/../../../etc/passwd"])
def test_a_source_that_is_not_the_sessions_is_refused(client: TestClient, recorded: Recorded, file: str) -> None:
    """Only copies that the session holds are shown: no file of this machine is read."""
    assert client.get(f"{recorded.url}/source", params={"file": file}).status_code == 404


def test_large_requests_are_refused(client: TestClient) -> None:
    """Body, declared and in chunks; query; path."""
    url = "/api/v1/jobs/1/captures"
    large = b"x" * (MAX_BODY_BYTES + 1)
    json = {"Content-Type": "application/json"}
    assert client.post(url, content=large, headers=json).status_code == 413
    assert client.post(url, content=iter([large[:9], large]), headers=json).status_code == 413
    assert client.get(SESSIONS + "?q=" + "x" * MAX_QUERY).status_code == 414
    assert client.get("/" + "x" * MAX_PATH).status_code == 414


def test_every_answer_is_fenced(app: ASGIApp, client: TestClient, recorded: Recorded) -> None:
    """Answers and refusals forbid scripts of others, frames, sniffing and referrers."""
    for answer in (client.get("/"), client.get(SESSIONS), browser(app).get("/"), client.get(recorded.url + "/report")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "no-cache" in answer.headers["cache-control"]


def test_a_report_page_has_an_origin_of_its_own(client: TestClient, recorded: Recorded) -> None:
    """What is rendered of a session runs in a sandbox, apart from the cookie and this interface."""
    for path in ("/report?format=html", "/flame?format=html", "/flame?format=svg"):
        answer = client.get(recorded.url + path)
        assert answer.status_code == 200, answer.text
        policy = answer.headers["content-security-policy"]
        assert "sandbox allow-scripts" in policy
        assert "allow-same-origin" not in policy
        assert "default-src 'none'" in policy


@pytest.mark.parametrize("token", ["", "short", "with a space in it", "täglich-neues-geheimnis", "x" * 20 + "\n"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    """Too short to be a secret, or not to be sent."""
    with pytest.raises(UsageError, match="token"):
        Access(port=1, token=token)


def test_tokens_are_new_each_time() -> None:
    """Nobody guesses the next one."""
    assert len({Access(port=1).token for _ in range(10)}) == 10
