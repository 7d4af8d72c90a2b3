"""Array tools that do not depend on words: row blocks, sparse products, layouts, random keys."""
