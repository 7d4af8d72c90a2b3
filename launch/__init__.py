"""Runs as batch jobs: on SLURM, on slices of TPUs in Kubernetes, on Cloud TPU machines.

    python -m launch slurm RUNS     # sbatch, an array job with a task for each line of the file
    python -m launch jobset RUNS    # kubectl apply, a JobSet with a job for each line
    python -m launch tpu-vm RUNS    # gcloud, a machine for each line

With --dry-run nothing is started: what would run is printed. See docs/launch.md.
"""
