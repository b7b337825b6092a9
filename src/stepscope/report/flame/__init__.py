"""Pictures of sampled stacks.

- ``graph``: what is drawn: one profile or two, prepared and measured.
- ``page``: one self-contained offline page with a script of its own.
- ``payload``: the data of that page.
- ``svg``: a picture without a script.
- ``text``: the same for a terminal.
- ``words``: kinds, colours, and sentences that all of them share.
"""
