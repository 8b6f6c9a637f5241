"""What a broken connection means, in words that say where and what to do."""

import aiohttp
from yarl import URL

from rxagent.events.model import ModelError


def shown(url: str) -> str:
    """A URL without the credentials that may be in it."""
    try:
        return str(URL(url).with_user(None).with_query(None))
    except ValueError:
        return "(no URL)"


def failure_of(error: Exception, base_url: str) -> ModelError:
    """The terminal event for an exception of the HTTP client."""
    where = shown(base_url)
    words = str(error) or type(error).__name__
    match error:
        case aiohttp.InvalidURL():
            found = ModelError("invalid_request", f"{where} is no URL that can be asked")
        case aiohttp.ConnectionTimeoutError():
            found = ModelError("timeout", f"no connection to {where} within the time limit", retryable=True)
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            found = ModelError("transport", f"no secure connection to {where}: {words}")
        case aiohttp.ClientConnectorDNSError():
            found = ModelError("transport", f"no host {URL(base_url).host!r} is known: {words}", retryable=True)
        case aiohttp.ClientConnectorError():
            said = f"no connection to {where}: {words}. Is the server running, and is the base URL right?"
            found = ModelError("transport", said, retryable=True)
        case aiohttp.ClientPayloadError():
            said = f"the connection to {where} broke in the middle of the answer"
            found = ModelError("transport", said, retryable=True)
        case aiohttp.ClientResponseError():
            # its text names the whole URL, and a key may be in that
            said = f"the connection to {where} failed with HTTP {error.status} {error.message}"
            found = ModelError("transport", said, retryable=error.status >= 500, status=error.status)
        case TimeoutError():
            found = ModelError("timeout", f"{where} was silent for too long", retryable=True)
        case _:
            found = ModelError("transport", f"the connection to {where} broke: {words}", retryable=True)
    return found
