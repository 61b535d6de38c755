"""The headless commands, a file each: what it takes. Its first line is what `--help` says of it.

What a command does is in a module beside this folder, imported when it runs.
"""
