"""The micro language: a grammar with agreement at a distance, whose entropy is known exactly."""
