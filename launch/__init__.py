"""Runs as batch jobs: on SLURM, and in Kubernetes.

    python -m launch slurm RUNS     # sbatch, an array job with a task for each line of the file
    python -m launch jobset RUNS    # kubectl apply, a JobSet for each line

With --dry-run nothing is started: what would run is printed. See docs/launch.md.
"""
