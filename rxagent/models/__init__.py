"""Models: the seam, the scripted model, names, and the providers' wires (loaded when a name asks for them)."""

from rxagent.models.base import Model, ModelRequest
from rxagent.models.options import HttpOptions
from rxagent.models.prices import PRICES, Price
from rxagent.models.resolve import http_model, resolve
from rxagent.models.scripted import ScriptedModel
from rxagent.models.wire import Endpoint, Switches, Target

__all__ = [
    "Endpoint",
    "HttpOptions",
    "Model",
    "ModelRequest",
    "PRICES",
    "Price",
    "ScriptedModel",
    "Switches",
    "Target",
    "http_model",
    "resolve",
]
