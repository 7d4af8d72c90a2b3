"""Sources of text: each module reads one kind of file, or generates a corpus; see `zoo.data`."""
