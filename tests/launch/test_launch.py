"""Scripts and manifests of batch jobs: their structure, and what the SLURM script does."""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import pytest
import yaml

from launch import __main__ as launch
from zoo.commands import program
from zoo.errors import UserError
from zoo.processes import detect

pytestmark = pytest.mark.usefixtures("signals")

RUNS = """# two runs
--config ptb_nce runs/nce --set model.head.samples=100

--config micro_softmax 'runs/a run' --set training.seed=3  # the second
"""


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.txt"
    path.write_text(RUNS)
    return str(path)


def rendered(capsys, *words):
    launch.main([*words, "--dry-run"])
    return capsys.readouterr().out


def check_bash(script):
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_slurm_has_a_task_for_each_run(runs, capsys):
    script = rendered(capsys, "slurm", runs, "--at-once", "1", "--sbatch=--partition=gpu")
    check_bash(script)
    lines = script.splitlines()
    assert lines[0] == "#!/bin/bash"
    for line in ("array=0-1%1", "partition=gpu", "gres=gpu:1", "requeue", "signal=B:TERM@300"):
        assert f"#SBATCH --{line}" in lines
    commands = [line.partition("command=(")[2].removesuffix(") ;;") for line in lines]
    assert [shlex.split(command)[1:] for command in commands if command] == [
        ["train.py", "--config", "ptb_nce", "runs/nce", "--set", "model.head.samples=100"],
        ["train.py", "--config", "micro_softmax", "runs/a run", "--set", "training.seed=3"],
    ]


@pytest.mark.parametrize("code, queued", [(143, True), (0, False), (2, False)])
def test_slurm_queues_a_run_again_that_was_stopped(code, queued, runs, capsys, tmp_path):
    """The script runs here: a program in the place of training, and one in that of scontrol."""
    ready, fake = tmp_path / "ready", tmp_path / "bin"
    fake.mkdir()
    (fake / "train").write_text(
        f"#!{sys.executable}\nimport pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit({code})))\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)\n"
    )
    queue = shlex.quote(f"{tmp_path}/queued")
    (fake / "scontrol").write_text(f'#!/bin/bash\necho "$@" > {queue}\n')
    for path in fake.iterdir():
        path.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(rendered(capsys, "slurm", runs, "--python", str(fake / "train")))
    environment = {
        **os.environ,
        "PATH": f"{fake}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_ARRAY_JOB_ID": "77",
    }
    job = subprocess.Popen(["bash", str(script)], env=environment)
    for _ in range(1000):
        if ready.exists():
            break
        time.sleep(0.02)
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == code
    found = tmp_path / "queued"
    assert found.exists() == queued
    assert not queued or found.read_text() == "requeue 77_1\n"


def test_a_jobset_has_a_job_for_each_run(runs, capsys):
    words = ["jobset", runs, "--image", "here/zoo:1", "--tpu", "v6e", "--chips", "8"]
    found = yaml.safe_load(rendered(capsys, *words, "--name", "sweep-1"))
    assert (found["apiVersion"], found["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert found["metadata"] == {"name": "sweep-1"}
    assert found["spec"]["failurePolicy"] == {"maxRestarts": 3}
    jobs = found["spec"]["replicatedJobs"]
    assert [job["name"] for job in jobs] == ["run-0", "run-1"]
    for job in jobs:
        assert job.keys() == {"name", "replicas", "template"} and job["replicas"] == 1
        spec = job["template"]["spec"]
        assert (spec["parallelism"], spec["completions"]) == (1, 1)
        rules = spec["podFailurePolicy"]["rules"]
        codes = [rule.get("onExitCodes", {}).get("values") for rule in rules]
        assert codes == [None, [75, 143], [2]]
        pod = spec["template"]["spec"]
        assert pod["restartPolicy"] == "Never"  # which podFailurePolicy needs
        assert pod["terminationGracePeriodSeconds"] == 300
        assert pod["nodeSelector"] == {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
            "cloud.google.com/gke-tpu-topology": "2x4",
        }
        (container,) = pod["containers"]
        assert container["image"] == "here/zoo:1"
        assert container["resources"] == {"limits": {"google.com/tpu": 8}}
        assert container["command"][:2] == ["bash", "-c"]
        check_bash(container["command"][2])
    command = jobs[1]["template"]["spec"]["template"]["spec"]["containers"][0]["command"][2]
    assert shlex.split(command)[:4] == ["exec", "python", "train.py", "--config"]
    assert "runs/a run" in shlex.split(command)


def test_a_manifest_keeps_names_and_letters_as_they_are(tmp_path, capsys):
    """YAML reads no as false, and does not have JSON's escapes of two halves."""
    path = tmp_path / "runs.txt"
    path.write_text("--config micro_softmax runs/\U0001f600\n", encoding="utf-8")
    script = rendered(capsys, "jobset", str(path), "--image", "here/zoo:1", "--name", "no")
    found = yaml.safe_load(script)
    assert found["metadata"]["name"] == "no"
    (job,) = found["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert shlex.split(container["command"][2])[-1] == "runs/\U0001f600"
    assert "\\u" not in script


def test_runs_on_several_hosts_find_each_other(runs, capsys, tmp_path):
    """What detection reads is what the scripts set."""
    words = ["jobset", runs, "--image", "here/zoo:1", "--chips", "16", "--name", "wide"]
    found = yaml.safe_load(rendered(capsys, *words))
    assert [*found["metadata"]["annotations"].values()] == ["cloud.google.com/gke-nodepool"]
    for number, job in enumerate(found["spec"]["replicatedJobs"]):
        spec = job["template"]["spec"]
        assert (spec["parallelism"], spec["completions"]) == (4, 4)
        assert spec["completionMode"] == "Indexed"
        pod = spec["template"]["spec"]
        assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4"
        (container,) = pod["containers"]
        assert container["resources"] == {"limits": {"google.com/tpu": 4}}
        assert shlex.split(container["command"][2])[-2:] == ["--meet-within", "3600"]
        environment = {item["name"]: item["value"] for item in container["env"]}
        place = detect.find(environment=environment | {"JOB_COMPLETION_INDEX": "3"})
        assert place == detect.Place(f"wide-run-{number}-0-0.wide:8477", 4, 3)
    script = rendered(capsys, "slurm", runs, "--nodes", "2")
    check_bash(script)
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1"} < {*script.splitlines()}
    assert "0) command=(srun .venv/bin/python train.py --config ptb_nce" in script
    path = tmp_path / "runs.txt"
    path.write_text("--config ptb_nce gs://bucket/nce\n")
    where = ["--zone", "here-a", "--repository", "https://x/zoo.git", "--chips", "16"]
    script = rendered(capsys, "tpu-vm", str(path), *where)
    check_bash(script)
    assert "--accelerator-type=v5litepod-16" in script
    assert 'ssh=("${where[@]}" --worker=all)' in script


def test_a_machine_is_made_for_each_run(tmp_path, capsys):
    path = tmp_path / "runs.txt"
    path.write_text("--config ptb_nce gs://bucket/nce --set model.head.samples=100\n" * 1)
    words = ["tpu-vm", str(path), "--zone", "here-a", "--repository", "https://x/zoo.git"]
    script = rendered(capsys, *words)
    check_bash(script)
    assert "--accelerator-type=v5litepod-4" in script and "--spot" in script
    # Programs in the place of gcloud's: taken away once, then done.
    fake = tmp_path / "gcloud"
    fake.write_text(
        '#!/bin/bash\necho "$4 $5" >> log\ncase $4 in\n'
        "describe) if [ -e once ]; then echo READY; else touch once; echo PREEMPTED; fi ;;\nesac\n"
    )
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash"], input=script, text=True, check=True, cwd=tmp_path, env=environment)
    done = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert done == ["create", "ssh", "ssh", "describe", "delete"] * 2
    path.write_text("--config ptb_nce runs/nce\n")
    with pytest.raises(UserError, match="which is deleted at the end"):
        launch.main([*words, "--dry-run"])


@pytest.mark.parametrize(
    "text, match",
    [
        ("# nothing\n", "has no runs"),
        ("--config ptb_nce\n", "line 1: no run is named"),
        ("\nruns/a\n", "line 2: give --config NAME"),
        ("--config nonsense runs/a\n", "line 1: there is no config 'nonsense'"),
        ("--config ptb_nce runs/a --set model.head.sample=9\n", "line 1: .*sample"),
        ("--config ptb_nce runs/a\n--config ptb_is runs/a\n", "line 2: runs/a is the folder of a"),
        ("--config ptb_nce 'runs/a\n", "line 1: No closing quotation"),
        ("--config ptb_nce runs/a --nonsense\n", "line 1: unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_runs_are_found_before_they_are_queued(text, match, tmp_path):
    path = tmp_path / "runs.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=match):
        launch.main(["slurm", str(path), "--dry-run"])


def test_what_cannot_be_started_is_said(runs, monkeypatch, tmp_path):
    for words, match in (
        (["jobset", runs, "--image", "i", "--chips", "12"], "--chips 12: slices of v5e have 1, 4"),
        (["slurm", str(tmp_path / "no.txt")], "there is no file"),
    ):
        with pytest.raises(UserError, match=match):
            launch.main([*words, "--dry-run"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.run(lambda: launch.main(["slurm", runs])) == 2


def test_the_page_shows_commands_that_can_be_given(tmp_path, capsys, monkeypatch):
    page = (pathlib.Path(launch.__file__).parent.parent / "docs/launch.md").read_text()
    text = "".join(line[4:] + "\n" for line in page.splitlines() if line.startswith("    --config"))
    (tmp_path / "runs.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    shown = [line[4:] for line in page.splitlines() if line.startswith("    python -m launch")]
    assert len(shown) == 5
    for command in shown:
        if "tpu-vm" not in command:  # whose runs lie in a bucket
            assert rendered(capsys, *shlex.split(command)[3:])
