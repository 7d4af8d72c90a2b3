#!/bin/bash
#SBATCH --job-name=%{name}
#SBATCH --array=0-%{last}%{at_once}
#SBATCH --time=%{time}
%{nodes}%{options}#SBATCH --requeue
#SBATCH --signal=B:TERM@%{grace}
set -u
# Runs a command, passes SIGTERM on to it, and waits until it has saved its state.
relay() {
  "$@" &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' TERM
  wait "$child"; code=$?
  # A signal ends the waiting, not the command.
  while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
}
case "$SLURM_ARRAY_TASK_ID" in
%{cases}
*) echo "no run $SLURM_ARRAY_TASK_ID" >&2; exit 2 ;;
esac
%{run}
job="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
# RUNNING also near its time limit; after scancel a task is COMPLETING. With another count it has
# been started again elsewhere, because this node was cut off.
case "$code" in %{again}) if [ "${SLURM_RESTART_COUNT:-0}" -lt %{restarts} ]; then
  state=$(squeue --noheader --jobs "$job" --Format=State,RestartCnt) ||
    echo "squeue failed: $job is not queued again; sbatch this script to resume it" >&2
  [ "$(echo $state)" = "RUNNING ${SLURM_RESTART_COUNT:-0}" ] && scontrol requeue "$job"
fi ;;
esac
exit "$code"
