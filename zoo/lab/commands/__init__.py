"""The commands of `python -m zoo`: their options, and what each prints and writes."""
