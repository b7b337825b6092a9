"""The page and the REST interface: HTTP around the use cases of ``app``; decides nothing of its own (docs/rest.md).

- ``job_operations``, ``session_operations``: every address of the interface, once: what serves it, and what the OpenAPI
  document says of it.
- ``guard``: who may ask, from where, and how much.
- ``application``: both together as an ASGI application; ``serve`` runs it.
"""
