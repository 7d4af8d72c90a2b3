"""Export: a trained model as files that need none of this code; see docs/export.md."""
