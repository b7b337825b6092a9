"""The page and the REST interface: HTTP around ``server`` and ``use_cases``, without logic of its own (docs/rest.md).

- ``job_operations``, ``session_operations``: every address of the interface, with its handler and its description in
  the OpenAPI document.
- ``guard``: who may send requests, from where, and how large.
- ``application``: combines both as an ASGI application; ``serve`` runs it.
"""
