"""Training: the step, its devices, the loop around it, and runs that resume to the bit."""
