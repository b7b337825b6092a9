"""The checker in editors: answers of a language server (``check``, ``actions``), and the server (``server``).

Only ``server`` uses pygls (extra ``lsp``).
"""
