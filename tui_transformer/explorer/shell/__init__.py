"""Things that every screen uses: the worker, keys, palette, themes, preferences, dialogs and overviews."""
