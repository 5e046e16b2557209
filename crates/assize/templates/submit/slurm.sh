#!/bin/sh
# One element of the array is one shard. What stands in double braces is filled in by `assize submit`; the rest is yours to change:
#   assize submit SUITE --on slurm --shards 40 --template this-file.sh
#SBATCH --job-name={{name}}
#SBATCH --array=1-{{shards}}{{at_once}}
#SBATCH --time={{minutes}}
#SBATCH --mem={{memory_mb}}M
#SBATCH --cpus-per-task={{cpus}}
#SBATCH --output="{{directory}}/logs/shard-%a.log"
#SBATCH --open-mode=append
# A shard whose node fails is started again elsewhere and resumes by itself.
#SBATCH --requeue
# Nothing of the submitter's environment goes to the scheduler; shards read a file that only the user can read.
#SBATCH --export=NIL
# A minute before the time limit trials are ended in good order, and the shard is queued again.
#SBATCH --signal=B:USR1@60

shard=$SLURM_ARRAY_TASK_ID/{{shards}}
echo "shard $shard on $(hostname), start $((${SLURM_RESTART_COUNT:-0} + 1)): $(date)"

set -a
. {{environment_file}}
set +a

child=
out_of_time=
trap 'out_of_time=1; kill -TERM "$child"' USR1
trap 'kill -TERM "$child"' TERM

attempt=1
while :; do
    {{run_command}} --shard "$shard" &
    child=$!
    wait "$child"
    code=$?
    # A signal ends `wait`, not the run.
    while kill -0 "$child" 2> /dev/null; do
        wait "$child"
        code=$?
    done
    if [ -n "$out_of_time" ]; then
        [ "${SLURM_RESTART_COUNT:-0}" -ge {{attempts}} ] || exec scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
        exit "$code"
    fi
    # 1: something outside the trials failed; above 128: killed. Other codes would be the same again.
    [ "$code" = 1 ] || [ "$code" -gt 128 ] || exit "$code"
    [ "$attempt" -lt {{attempts}} ] || exit "$code"
    echo "shard $shard ended with $code; attempt $attempt of {{attempts}}"
    sleep $((attempt * 5))
    attempt=$((attempt + 1))
done
