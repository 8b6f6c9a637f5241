"""Images as requests carry them: base64 data and a media type, or a URL."""

from rxagent.messages import ImagePart


def data_and_type(image: ImagePart) -> tuple[str, str]:
    """Base64 data and media type; the data is empty where the image is at a URL elsewhere. ``data:`` URLs are taken apart."""
    if image.data:
        return _split(image.data, image.mime_type) if image.data.startswith("data:") else (image.data, image.mime_type)
    url = image.url or ""
    return _split(url, image.mime_type) if url.startswith("data:") else ("", image.mime_type)


def as_url(image: ImagePart) -> str:
    """The image as a URL: a ``data:`` one where the data is at hand."""
    data, mime = data_and_type(image)
    return f"data:{mime};base64,{data}" if data else image.url or ""


def _split(url: str, mime: str) -> tuple[str, str]:
    head, _, data = url.partition(",")
    return data, head.removeprefix("data:").partition(";")[0] or mime
