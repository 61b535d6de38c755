"""The results of `tui-transformer survey`: heads by a measure, and the texts in which each is strongest."""
