"""Where chat templates run: an interpreter of Jinja's syntax with a short list of what a template may do.

A template comes with a model file, so it is somebody else's program. Jinja reads it; nothing of it is ever compiled or
looked up in Python. Values are plain (`values`), operators, filters, tests and methods are those listed, and each step
and each byte is charged to a budget before it is spent (`budget`). Texts know which of their characters the template
wrote itself (`text`), so that nobody else's can become part of a special token.
"""
