"""The checker in editors: what a language server answers (``check``, ``actions``), and the server (``server``).

``server`` alone knows pygls (extra ``lsp``).
"""
