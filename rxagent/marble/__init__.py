"""The marble notation: parser, virtual-time loop, playing, comparing and drawing. Knows nothing of pytest."""
