"""Scripts and manifests of batch jobs: their structure, and what the SLURM script does."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import kubernetes_validate
import pytest
import yaml

from launch import __main__ as launch
from launch import jobset as jobset_module
from launch import runs_file
from zoo.errors import UserError
from zoo.lab.commands import program

ROOT = pathlib.Path(launch.__file__).parent.parent
SCHEMA = yaml.safe_load((pathlib.Path(__file__).parent / "jobset_schema.yaml").read_text())
KUBERNETES = ("1.29", "1.37")  # the oldest and the newest release that manifests are checked for
JOBSET = ["--image", "here/zoo:1", "--volume", "work:/zoo/runs"]

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


@pytest.mark.parametrize(
    ("option", "replaced"),
    [
        ("--gres=gpu:4", "--gres=gpu:1"),
        ("--gre=gpu:4", "--gres=gpu:1"),
        ("--cpus-per-t 16", "--cpus-per-task=4"),
        ("--ntasks=4", None),
        ("--gpus-per-node=4", "--gres=gpu:1"),
        ("-G 4", "--gres=gpu:1"),
        ("--cpus-per-task=16", "--cpus-per-task=4"),
        ("-c16", "--cpus-per-task=4"),
        ("--mem 64G", "--mem=32G"),
        ("--mem-per-cpu=2G", "--mem=32G"),
        ("--output=logs/%A.log", "--output=%x-%A_%a.log"),
        ("--partition=gpu", None),
    ],
)
def test_an_option_of_sbatch_takes_the_place_of_the_default(option, replaced, runs, capsys):
    def options(*words):
        lines = rendered(capsys, "slurm", runs, *words).splitlines()
        return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")]

    defaults, with_option = options(), options(f"--sbatch={option}")
    assert "--gres=gpu:1" in defaults and "--mem=32G" in defaults
    assert sorted(with_option) == sorted({*defaults, option} - {replaced})


def stand_ins(folder, state="RUNNING 0", **programs):
    """Programs in the place of SLURM's and of training, and an environment that finds them."""
    words = "--noheader --jobs 77_1 --Format=State,RestartCnt"
    squeue = f'#!/bin/bash\n[ "$*" = "{words}" ] && echo "{state}  "\n'
    for name, text in {"squeue": squeue, **programs}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_ARRAY_JOB_ID": "77",
    }


SCONTROL = '#!/bin/bash\necho "$@" > "${0%/*}/queued"\n'


def queued(folder):
    path = folder / "queued"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("state", ["RUNNING 0", "RUNNING 1", "COMPLETING 0", ""])
@pytest.mark.parametrize("nodes", ["1", "2"])
def test_slurm_queues_a_run_again_that_was_stopped(nodes, state, runs, capsys, tmp_path):
    """Near its time limit a task is RUNNING; after scancel it is COMPLETING, and ends.

    Where SLURM has started it once more elsewhere, this one ends, too.
    The script runs here: SIGTERM reaches training, which takes its time to save its state.
    """
    train = f"""#!{sys.executable}
import os, pathlib, signal, sys, time
folder = pathlib.Path({str(tmp_path)!r})
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(143)))
(folder / ("ready" + os.environ.get("SLURM_PROCID", "0"))).touch()
time.sleep(3600)
"""
    # Two tasks side by side; signals are passed on to both; the greatest exit code.
    srun = f"""#!{sys.executable}
import os, signal, subprocess, sys
tasks = [subprocess.Popen(sys.argv[1:], env=os.environ | {{"SLURM_PROCID": str(i)}})
         for i in range(2)]
signal.signal(signal.SIGTERM, lambda *_: [task.terminate() for task in tasks])
sys.exit(max(task.wait() for task in tasks))
"""
    environment = stand_ins(tmp_path, state, train=train, srun=srun, scontrol=SCONTROL)
    words = ["slurm", runs, "--python", f"{tmp_path}/train", "--nodes", nodes]
    job = subprocess.Popen(["bash", "-c", rendered(capsys, *words)], env=environment)
    while len([*tmp_path.glob("ready*")]) < int(nodes) and job.poll() is None:
        time.sleep(0.02)
    job.send_signal(signal.SIGTERM)
    assert job.wait(600) == 143
    assert queued(tmp_path) == ("requeue 77_1\n" if state == "RUNNING 0" else "")


@pytest.mark.parametrize("code", [0, 1, 2, 75, 130, 134, 137, 143])
def test_slurm_queues_a_run_again_by_its_exit_code(code, runs, capsys, tmp_path):
    end = f"kill -{code - 128} $$" if code in (134, 137) else f"exit {code}"
    environment = stand_ins(tmp_path, train=f"#!/bin/bash\n{end}\n", scontrol=SCONTROL)
    script = rendered(capsys, "slurm", runs, "--python", f"{tmp_path}/train", "--restarts", "3")
    job = subprocess.run(["bash", "-c", script], env=environment, stderr=subprocess.DEVNULL)
    assert job.returncode == code
    assert bool(queued(tmp_path)) == (code in (75, 134, 137, 143))
    (tmp_path / "queued").unlink(missing_ok=True)
    subprocess.run(
        ["bash", "-c", script],
        env=environment | {"SLURM_RESTART_COUNT": "3"},
        stderr=subprocess.DEVNULL,
    )
    assert not queued(tmp_path)  # it has been started again often enough


def test_a_failure_of_squeue_is_told(runs, capsys, tmp_path):
    programs = {"train": "#!/bin/bash\nexit 143\n", "squeue": "#!/bin/bash\nexit 1\n"}
    environment = stand_ins(tmp_path, **programs, scontrol=SCONTROL)
    script = rendered(capsys, "slurm", runs, "--python", f"{tmp_path}/train")
    job = subprocess.run(["bash", "-c", script], env=environment, text=True, capture_output=True)
    assert (job.returncode, queued(tmp_path)) == (143, "")
    message = "squeue failed: 77_1 is not queued again; sbatch this script to resume it\n"
    assert job.stderr == message


def test_an_error_of_one_process_ends_a_run_of_slurm(runs, capsys, tmp_path):
    """The others leave with 75, which is greater, and is what srun would end with."""
    train = (
        '#!/bin/bash\necho "$JAX_LOCAL_DEVICE_IDS $*"; [ $SLURM_PROCID = 1 ] && exit 2; exit 75\n'
    )
    srun = """#!/bin/bash
SLURM_PROCID=0 "$@"; first=$?
SLURM_PROCID=1 "$@"; second=$?
exit $((first > second ? first : second))
"""
    environment = stand_ins(tmp_path, train=train, srun=srun, scontrol=SCONTROL)
    script = rendered(capsys, "slurm", runs, "--python", f"{tmp_path}/train", "--nodes", "2")
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1"} < {*script.splitlines()}
    environment |= {"SLURM_GPUS_ON_NODE": "4", "SLURM_ARRAY_TASK_ID": "0"}
    job = subprocess.run(["bash", "-c", script], env=environment, text=True, stdout=subprocess.PIPE)
    assert (job.returncode, queued(tmp_path)) == (2, "")
    words = "train.py --config ptb_nce runs/nce --set model.head.samples=100 --processes auto"
    assert job.stdout.splitlines() == [f"0,1,2,3 {words}"] * 2


@pytest.mark.parametrize("command", ["slurm", "jobset"])
def test_help_is_printed(command, capsys):
    with pytest.raises(SystemExit) as caught:
        launch.main([command, "--help"])
    assert caught.value.code == 0 and "--restarts" in capsys.readouterr().out


def manifest(capsys, *words):
    """The JobSets of a manifest, which fulfil JobSet's schema and, in their jobs, Kubernetes'."""
    jobsets = [*yaml.safe_load_all(rendered(capsys, "jobset", *words))]
    for jobset in jobsets:
        check(jobset, SCHEMA, "")
        check_rules(jobset)
        for job in jobset["spec"]["replicatedJobs"]:
            # Its fields are known, too, and have their types, in Kubernetes' own definitions.
            description = {"apiVersion": "batch/v1", "kind": "Job", **job["template"]}
            description["metadata"] = {"name": job["name"]}
            for version in KUBERNETES:
                kubernetes_validate.validate(description, version, strict=True)
    return jobsets


# The CEL rules of JobSet's definition that can apply to a manifest (the others are of status and of
# volumeClaimPolicies, which it does not write), as jobset_types.go has them: of the spec,
#   !(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' &&
#   self.replicatedJobs.exists(x, has(x.dependsOn)))
# and, of each of these fields, self == oldSelf. Of replicatedJobs, the admission webhook asks it.
IMMUTABLE = "network", "successPolicy", "failurePolicy", "startupPolicy", "replicatedJobs"
# What the webhooks of JobSet and Kueue ask of names.
DNS_LABEL = re.compile("[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
RULE_NAME = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def check_rules(jobset, old=None):
    """AssertionError where a JobSet, or its change from an old one, does not keep to the rules."""
    spec, name = jobset["spec"], jobset["metadata"]["name"]
    is_in_order = spec.get("startupPolicy", {}).get("startupPolicyOrder") == "InOrder"
    assert not (is_in_order and any("dependsOn" in job for job in spec["replicatedJobs"]))
    for field in IMMUTABLE if old else ():
        assert spec.get(field) == old["spec"].get(field), f"{field}: Value is immutable"
    for job in spec["replicatedJobs"]:
        last = job["template"]["spec"]["completions"] - 1
        pod = f"{name}-{job['name']}-{job['replicas'] - 1}-{last}-abcde"
        assert DNS_LABEL.fullmatch(pod), pod
    rules = [rule["name"] for rule in spec["failurePolicy"]["rules"]]
    assert len({*rules}) == len(rules) and all(map(RULE_NAME.fullmatch, rules))


def test_a_manifest_may_be_applied_again_and_not_with_other_settings(runs, capsys):
    jobset, again = (manifest(capsys, runs, *JOBSET)[0] for _ in range(2))
    check_rules(again, jobset)
    for option in (["--restarts", "7"], ["--chips", "16"]):
        with pytest.raises(AssertionError, match="Value is immutable"):
            check_rules(manifest(capsys, runs, *JOBSET, *option)[0], jobset)


def test_a_rule_that_is_broken_is_found(runs, capsys):
    jobset, *_ = manifest(capsys, runs, *JOBSET)
    jobset["spec"]["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    check_rules(jobset)
    jobset["spec"]["replicatedJobs"][0]["dependsOn"] = [{"name": "run", "status": "Ready"}]
    with pytest.raises(AssertionError):
        check_rules(jobset)


@pytest.mark.parametrize("name", ["a..b", "a.-b", "a" * 64])
def test_a_queue_has_the_name_of_a_label(name, runs, capsys):
    with pytest.raises(SystemExit):
        rendered(capsys, "jobset", runs, *JOBSET, "--queue", name)
    assert "--queue" in capsys.readouterr().err


# Of GKE's tables, https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus: chips, label,
# topology, nodes, chips of a node.
GKE = [
    ("v5e", 1, "tpu-v5-lite-podslice", "1x1", 1, 1),
    ("v5e", 8, "tpu-v5-lite-podslice", "2x4", 1, 8),
    ("v5e", 256, "tpu-v5-lite-podslice", "16x16", 64, 4),
    ("v5p", 4, "tpu-v5p-slice", "2x2x1", 1, 4),
    ("v5p", 8, "tpu-v5p-slice", "2x2x2", 2, 4),
    ("v5p", 32, "tpu-v5p-slice", "2x4x4", 8, 4),
    ("v6e", 4, "tpu-v6e-slice", "2x2", 1, 4),
    ("v6e", 128, "tpu-v6e-slice", "8x16", 32, 4),
]


@pytest.mark.parametrize(("kind", "chips", "label", "topology", "hosts", "share"), GKE)
def test_slices_of_tpus_are_gkes(kind, chips, label, topology, hosts, share, runs, capsys):
    words = "--tpu", kind, "--chips", str(chips)
    jobset, *_ = manifest(capsys, runs, *JOBSET, *words)
    pod, (job,) = pod_of(jobset), jobset["spec"]["replicatedJobs"]
    assert [*pod["nodeSelector"].values()] == [label, topology]
    assert job["template"]["spec"]["completions"] == hosts
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": share}


def check(value, schema, location):
    """AssertionError where a value does not fulfil its schema."""
    if schema == "text":
        assert isinstance(value, str), location
    elif schema == "whole":
        assert type(value) is int and 0 <= value < 2**31, location
    elif schema == "{}":
        assert isinstance(value, dict), location
        assert all(isinstance(text, str) for pair in value.items() for text in pair), location
    elif isinstance(schema, list):
        assert isinstance(value, list), location
        for number, item in enumerate(value):
            check(item, schema[0], f"{location}[{number}]")
    elif "choices" in schema:
        assert value in schema["choices"], location
    else:
        assert isinstance(value, dict), location
        required = {key[:-1] for key in schema if key.endswith("!")}
        assert required <= value.keys(), location
        fields = {key.removesuffix("!"): inner for key, inner in schema.items()}
        for key, inner in value.items():
            assert key in fields, f"{location}.{key}"
            check(inner, fields[key], f"{location}.{key}")


def pod_of(jobset):
    (job,) = jobset["spec"]["replicatedJobs"]
    return job["template"]["spec"]["template"]["spec"]


def command_of(jobset):
    (container,) = pod_of(jobset)["containers"]
    assert container["command"][:2] == ["bash", "-c"]
    check_bash(container["command"][2])
    return container["command"][2]


def test_each_run_is_a_jobset(runs, capsys):
    jobsets = manifest(capsys, runs, *JOBSET, "--tpu", "v6e", "--chips", "8", "--name", "sweep-1")
    assert [jobset["metadata"]["name"] for jobset in jobsets] == ["sweep-1-0", "sweep-1-1"]
    for jobset in jobsets:
        pod = pod_of(jobset)
        assert pod["nodeSelector"] == {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
            "cloud.google.com/gke-tpu-topology": "2x4",
        }
        (container,) = pod["containers"]
        assert container["image"] == "here/zoo:1"
        assert container["resources"] == {"limits": {"google.com/tpu": 8}}
        assert jobset["metadata"]["annotations"] == jobset["metadata"]["labels"] == {}
    words = shlex.split(command_of(jobsets[1]))
    assert words == [
        *("exec", "python", "train.py", "--config", "micro_softmax", "runs/a run"),
        *("--set", "training.seed=3"),
    ]


def fate(jobset, code, disrupted=False):
    """What becomes of a run with a pod that ends so, by the rules of Kubernetes and of JobSet."""
    (job,) = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    reason = "BackoffLimitExceeded" if spec["backoffLimit"] == 0 else "a pod is replaced"
    for rule in spec["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes:
            applies = (code in codes["values"]) == (codes["operator"] == "In")
        else:
            applies = disrupted and rule["onPodConditions"] == [
                {"type": "DisruptionTarget", "status": "True"}
            ]
        if applies:
            if rule["action"] == "FailJob":
                reason = "PodFailurePolicy"
            break
    if reason == "a pod is replaced":
        return reason
    for rule in jobset["spec"]["failurePolicy"]["rules"]:
        if reason in rule["onJobFailureReasons"]:
            return rule["action"]
    return "RestartJobSet"


def test_exit_codes_decide_what_becomes_of_a_run(runs, capsys):
    """2 fails this run alone and at once; however many pods leave together, it is one restart."""
    for jobset in manifest(capsys, runs, *JOBSET, "--chips", "32"):
        assert pod_of(jobset)["restartPolicy"] == "Never"  # which podFailurePolicy needs
        assert pod_of(jobset)["terminationGracePeriodSeconds"] == 300
        assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 100
        for code in (75, 134, 137, 143):
            assert fate(jobset, code) == "RestartJobSet"
        for code in (1, 2, 127, 130):
            assert fate(jobset, code) == "FailJobSet"
        assert fate(jobset, 1, disrupted=True) == "RestartJobSet"


def test_options_reach_the_pods(runs, capsys):
    words = ["--gpus", "2", "--spot", "--queue", "team", "--service-account", "trainer"]
    words += ["--env", "ZOO_DATA=/data", "--env", "NOTE=a=b: c", "--volume", "corpora:/data"]
    jobset = manifest(capsys, runs, *JOBSET, *words)[0]
    assert jobset["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team"}
    pod = pod_of(jobset)
    assert pod["serviceAccountName"] == "trainer"
    assert pod["nodeSelector"] == {"cloud.google.com/gke-spot": "true"}
    assert pod["tolerations"] == [{"key": "cloud.google.com/gke-spot", "operator": "Exists"}]
    claims = {v["name"]: v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"]}
    (container,) = pod["containers"]
    mounted = {claims[m["name"]]: m["mountPath"] for m in container["volumeMounts"]}
    assert mounted == {"work": "/zoo/runs", "corpora": "/data"}
    assert container["env"] == [
        {"name": "ZOO_DATA", "value": "/data"},
        {"name": "NOTE", "value": "a=b: c"},
    ]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_a_manifest_keeps_names_and_letters_as_they_are(tmp_path, capsys):
    """YAML reads no as false, and does not have JSON's escapes of two halves."""
    path = tmp_path / "runs.txt"
    path.write_text("--config micro_softmax runs/\U0001f600\n", encoding="utf-8")
    script = rendered(capsys, "jobset", str(path), *JOBSET, "--service-account", "no")
    jobset = yaml.safe_load(script)
    assert pod_of(jobset)["serviceAccountName"] == "no"
    assert shlex.split(command_of(jobset))[-1] == "runs/\U0001f600"
    assert "\\u" not in script


@pytest.mark.parametrize(
    "options, last",
    [
        (["--chips", "16"], ["--processes", "auto"]),
        (
            ["--gpus", "8", "--hosts", "4"],
            ["--coordinator", "wide-1-run-0-0.wide-1:8477", "--processes", "4", "--process", "3"],
        ),
    ],
)
def test_pods_of_a_run_wait_until_all_are_there(options, last, runs, capsys, tmp_path):
    """The command runs here: names that are not found at first, and a program for training."""
    jobset = manifest(capsys, runs, *JOBSET, *options, "--name", "wide")[1]
    (job,) = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    assert (spec["parallelism"], spec["completions"]) == (4, 4)
    assert spec["completionMode"] == "Indexed"
    exclusive = [*jobset["metadata"]["annotations"].values()]
    assert exclusive == (["cloud.google.com/gke-nodepool"] if "--chips" in options else [])
    calls = f"{tmp_path}/asked"
    environment = stand_ins(
        tmp_path,
        getent=f'#!/bin/bash\necho "$*" >> {calls}; [ $(wc -l < {calls}) != 2 ]\n',
        sleep="#!/bin/bash\n",
        python=f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\n",
    )
    job = subprocess.run(
        ["bash", "-c", command_of(jobset)],
        env=environment | {"JOB_COMPLETION_INDEX": "3"},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    )
    names = [f"hosts wide-1-run-0-{host}.wide-1" for host in (0, 1, 1, 2, 3)]
    assert pathlib.Path(calls).read_text().splitlines() == names
    words = ["--config", "micro_softmax", "runs/a run", "--set", "training.seed=3"]
    assert job.stdout == f"{['train.py', *words, *last]}\n"


def test_a_pod_whose_peers_never_come_ends_as_one_that_lost_them(
    runs, capsys, tmp_path, monkeypatch
):
    assert jobset_module._PATIENCE == 1800
    monkeypatch.setattr(jobset_module, "_PATIENCE", 1)
    jobset = manifest(capsys, runs, *JOBSET, "--chips", "16", "--name", "wide")[0]
    environment = stand_ins(
        tmp_path,
        getent='#!/bin/bash\n[[ "$*" != *run-0-2* ]]\n',  # the third host does not start
        python="#!/bin/bash\necho trains\n",
    )
    job = subprocess.run(
        ["bash", "-c", command_of(jobset)],
        env=environment | {"SECONDS": "-1000"},  # which bash would count from
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert (job.returncode, job.stdout) == (75, "")
    assert job.stderr == "wide-0-run-0-2.wide-0 has no address after 1 s\n"


def test_an_image_trains_the_micro_language(tmp_path):
    """The Dockerfile's structure: what it copies is there, and its command is a run's."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    instructions = [word for word, _ in lines]
    assert instructions == ["FROM", "ARG", "WORKDIR", "COPY", "RUN", "COPY", "ENTRYPOINT", "CMD"]
    values = dict(lines)
    assert (values["ARG"], values["WORKDIR"]) == ("JAX=jax", "/zoo")
    check_bash(values["RUN"])
    assert values["RUN"].endswith('"$JAX"')
    assert json.loads(values["ENTRYPOINT"]) == ["python", "train.py"]
    (tmp_path / "runs.txt").write_text(shlex.join(json.loads(values["CMD"])))
    (run,) = runs_file.read(str(tmp_path / "runs.txt"))
    assert run.words[:2] == ["--config", "micro_softmax"]


def test_an_image_leaves_out_what_git_ignores():
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored <= {line.removeprefix("**/") for line in patterns}
    needed = {"train.py", "evaluate.py", "requirements.txt", "zoo", "configs"}
    assert not needed & {*patterns}


@pytest.mark.parametrize(
    ("folder", "volume"),
    [
        ("runs/a", "work:/zoo/runs"),
        ("runs/a", "work:/zoo/runs/a"),
        ("/data/a", "work:/data"),
        ("gs://bucket/a", "work:/data"),
    ],
)
def test_a_folder_on_a_volume_or_in_a_bucket_outlasts_its_pod(folder, volume, tmp_path):
    path = tmp_path / "runs.txt"
    path.write_text(f"--config micro_softmax {folder}\n")
    launch.main(["jobset", str(path), "--image", "here/zoo:1", "--volume", volume, "--dry-run"])


def test_several_hosts_train_in_a_bucket(tmp_path, capsys):
    path = tmp_path / "runs.txt"
    path.write_text("--config micro_softmax gs://bucket/a\n")
    launch.main(["jobset", str(path), "--image", "here/zoo:1", "--chips", "16", "--dry-run"])
    assert "gs://bucket/a" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("way", "option"), [("slurm", "--output=%x-%A_%a.log"), ("jobset", "CLAIM:PATH")]
)
def test_the_options_of_a_way_are_shown(way, option, capsys):
    with pytest.raises(SystemExit):
        launch.main([way, "--help"])
    assert option in capsys.readouterr().out


def test_what_cannot_be_started_is_said(runs, monkeypatch, tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        launch.main(["slurm", str(tmp_path / "no.txt"), "--dry-run"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.run(lambda: launch.main(["slurm", runs])) == 2


def test_the_page_shows_commands_that_can_be_given(tmp_path, capsys, monkeypatch):
    page = (ROOT / "docs/launch.md").read_text()
    text = "".join(line[4:] + "\n" for line in page.splitlines() if line.startswith("    --config"))
    (tmp_path / "runs.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    commands = [line[4:] for line in page.splitlines() if line.startswith("    python -m launch")]
    assert len(commands) >= 4
    for command in commands:
        assert rendered(capsys, *shlex.split(command)[3:])
