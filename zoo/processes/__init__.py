"""Several processes that train one run: where they are, how they meet, and how they leave.

detect     which process this is, of how many: from options, SLURM, Kubernetes, TPU pods
links      connections of process 0 with all others, in which each tells that it lives
relay      keeps JAX's own connections from ending a process before it has said why
group      the description that everything else asks, and JAX's initialisation

And what a process leaves to others:

alive       which process this is, and whether another one still runs
unfinished  files and folders that are not whole yet, by the process that makes them
"""
