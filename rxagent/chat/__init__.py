"""The terminal app on Textual (`pip install 'rxagent[chat]'`): `app.ChatApp` over a `desk.Desk`.

From events to the screen: `story` folds events into the cells of `transcript`; `cells`, `tool_cell` and `answer` say what a
cell holds, `markdown` and `look` how it is drawn. Nothing here is imported by the rest of the package but by `cli.chat`.
"""
