"""Runs as batch jobs: on SLURM, and in Kubernetes.

    python -m launch slurm RUNS     # sbatch, an array job with a task for each line of the file
    python -m launch jobset RUNS    # kubectl apply, a JobSet for each line

With --dry-run the job is printed and not started. See docs/launch.md.
"""
