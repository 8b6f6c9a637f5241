"""Models: the seam, the scripted model, names, and the providers' wires (loaded when they are asked for)."""

from rxagent.models.base import Model, ModelRequest
from rxagent.models.scripted import ScriptedModel

__all__ = ["Model", "ModelRequest", "ScriptedModel"]
