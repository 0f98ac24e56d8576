"""One scenario, played on a real Slurm and on the simulated one, whose answers have to be the same.

``python contract.py OUT.jsonl WORKDIR`` plays it with the Slurm commands on PATH: a fresh, idle,
private cluster (four CPUs, job ids from 1, accounting on), and writes one JSON object per command:
argv, stdout, stderr, rc. tests/test_fake_slurm_contract.py plays it on the simulated one and
compares, after ``normalise``.
"""

import json
import os
import re
import subprocess
import sys
import time

LONG_FORMAT = ",".join(
    name + ":|x|"
    for name in "ArrayJobID ArrayTaskID JobID State StateCompact exit_code RestartCnt SubmitTime "
    "StartTime EndTime TimeUsed TimeLimit "
    "MinMemory NodeList Reason HetJobID HetJobOffset Name UserName NumCPUs".split()
)
SHORT_FORMAT = "%i@%F@%K@%A@%T@%t@%r@%V@%S@%e@%l@%m@%N@%j@%k@%u@%D@%C@%R@%P@%a@%q@%U"
ACCOUNTING = (
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Reason,Comment,Submit,Start,End,"
    "Timelimit,"
    "TimelimitRaw,ReqMem,NodeList,User,Partition,AllocCPUS,Account,Cluster,UID,QOS"
)
PATIENCE_S = 120
SCRIPTS = {
    "e3.sh": "#!/bin/sh\nexit 3\n",
    "ok.sh": "#!/bin/sh\nexit 0\n",
    "sleep.sh": "#!/bin/sh\nexec sleep 300\n",
    "term.sh": "#!/bin/sh\nkill -15 $$\n",
    "trap.sh": "#!/bin/sh\ntrap 'exit 7' TERM\ntouch trapped\nwhile :; do sleep 0.1; done\n",
    "interp.sh": "#!/nonexistent/interp\n",
    "plain.txt": "no shebang\n",
    "empty.sh": "",
    "badopt.sh": "#!/bin/sh\n#SBATCH -J fromscript\n#SBATCH --bogus=1\n",
    "named.sh": "#!/bin/sh\n#SBATCH -J fromscript\n#SBATCH --time=0:30 --mem=2G\nexit 0\n"
    "#SBATCH -t 5\n",
}
# ids 1, 2, ... in this order; the array comes last, for it takes one id there, here one an element
SUBMIT = [
    ["sbatch", "--parsable", "-t", "5", "-o", "%j.o", "-e", "%j.e", "e3.sh"],
    ["sbatch", "--parsable", "-M", "private", "ok.sh"],
    ["sbatch", "--parsable", "-J", "a|b c", "-t", "10", "--mem=50M", "sleep.sh"],
    ["sbatch", "-t", "10", "term.sh"],
    ["sbatch", "--parsable", "-H", "-t", "1-0", "ok.sh"],
    [
        "sbatch",
        "--parsable",
        "--begin=now+1hour",
        "-c",
        "2",
        "--mem-per-cpu=30M",
        "-t",
        "2:0:0",
        "ok.sh",
    ],
    ["sbatch", "--parsable", "--wrap=exit 255", "--comment=a b=c|d"],
    ["sbatch", "--parsable", "-D", "/nonexistent", "--wrap=true"],
    ["sbatch", "--parsable", "-t", "10", "interp.sh"],
    ["sbatch", "--parsable", "-t", "10", "-J", "nl\nJobState=TIMEOUT", "--no-requeue", "trap.sh"],
    ["sbatch", "--parsable", "-H", "-J", "never", "ok.sh"],
    ["sbatch", "--parsable", "named.sh", "an", "argument"],
    ["sbatch", "--parsable", "--mem=30M", "-t", "10", "sleep.sh"],
]
ENDED = (1, 2, 4, 7, 8, 9, 12)
QUERIES = (
    [
        ["squeue", "-h", "-t", "all", "-u", "root", "-O", LONG_FORMAT],
        ["squeue", "-h", "-t", "all", "-o", SHORT_FORMAT],
        ["squeue", "-t", "all", "-O", "JobID,State:.12,Name:5,exit_code:5:x,MinMemory:.20|"],
        ["squeue", "-t", "F,CD", "-o", "%.18i %.9P %.8j %.8u %.2t %.6D"],
        ["squeue", "-M", "private", "-j", "3", "-o", "%i %T"],
        ["squeue", "-h", "-M", "private", "-j", "3", "-o", "%i %T"],
        ["squeue", "-h", "-j", "3,1,999", "-t", "all", "-o", "%i %T"],
        ["squeue", "-h", "-j", "1"],
        ["squeue", "-h", "-j", "999"],
        ["squeue", "-h", "-j", "998,999"],
        ["squeue", "-h", "-j", "1,abc"],
        ["squeue", "-t", "BOGUS"],
        ["squeue", "--bogus"],
        ["squeue", "-M", "nosuch"],
        ["squeue", "-h", "-t", "all", "-n", "a|b c", "-o", "%j"],
        ["squeue", "--version"],
    ]
    + [["scontrol", "-o", "show", "job", str(number)] for number in range(1, 14)]
    + [
        ["scontrol", "show", "job", "3"],
        ["scontrol", "-o", "-M", "private", "show", "jobid", "2"],
        ["scontrol", "-o", "show", "job=2"],
        ["scontrol", "show", "job", "2", "-o"],
        ["scontrol", "-o", "show", "job", "999"],
        ["scontrol", "-o", "show", "job", "abc"],
        ["scontrol", "-o", "show", "job", "1,2"],
        ["scontrol", "-o", "show", "job", "1", "2"],
        ["scontrol", "hold", "999"],
        ["scontrol", "hold", "1"],
        ["scontrol", "release", "999"],
        ["scontrol", "requeue", "999"],
        ["scontrol", "requeue", "6"],
        ["scontrol", "update", "jobid=1", "EndTime=now"],
        ["scontrol", "update", "jobid=5", "EndTime=now"],
        ["scontrol", "update", "jobid=999", "EndTime=now"],
        ["scontrol", "update", "EndTime=now"],
        ["scontrol", "bogus"],
        ["scontrol", "show", "bogus"],
        ["scontrol", "--bogus"],
        ["scontrol", "ping"],
        ["sacct", "-n", "-P", "-j", "1,2,3,4,5,6,7,8,9,10,11,12", "-o", ACCOUNTING],
        ["sacct", "-P", "-j", "1", "-o", "JobID,State"],
        ["sacct", "-p", "-j", "1", "-o", "JobID,State"],
        ["sacct", "-n", "-p", "--delimiter=@@", "-X", "-j", "1,2", "-o", "JobID,State,ExitCode"],
        ["sacct", "-j", "1"],
        ["sacct", "-X", "-j", "1,3", "-o", "jobid%-20,state%5,JobName%3,ExitCode"],
        ["sacct", "-n", "-o", "state%-32", "-j", "10"],
        ["sacct", "-n", "-P", "-j", "1.batch", "-o", "JobID,State"],
        ["sacct", "-n", "-P", "-X", "-j", "999", "-o", "JobID,State"],
        ["sacct", "-n", "-P", "-X", "-j", "12+0", "-o", "JobID,State"],
        ["sacct", "-n", "-P", "-X", "-j", "abc"],
        ["sacct", "-n", "-P", "-X", "-j", "1", "-o", "JobID,Bogus"],
        ["sacct", "--bogus"],
        ["sacct", "-n", "-P", "-X", "-M", "nosuch", "-j", "1", "-o", "JobID,State"],
        ["sacct", "-n", "-P", "-X", "-M", "private", "-j", "1", "-o", "JobID,State,Cluster"],
        [
            "sacct",
            "-n",
            "-P",
            "-X",
            "-S",
            "now-1hours",
            "-E",
            "now",
            "-s",
            "F",
            "-o",
            "JobID,State",
        ],
        ["sbatch"],
        ["sbatch", "nosuch.sh"],
        ["sbatch", "plain.txt"],
        ["sbatch", "empty.sh"],
        ["sbatch", "badopt.sh"],
        ["sbatch", "--bogus", "ok.sh"],
        ["sbatch", "-t", "bogus", "ok.sh"],
        ["sbatch", "--mem=bogus", "ok.sh"],
        ["sbatch", "-p", "nosuch", "ok.sh"],
        ["sbatch", "-M", "nosuch", "ok.sh"],
        ["sbatch", "--mem=100G", "ok.sh"],
        ["sbatch", "--wrap=true", "ok.sh"],
        ["sbatch", "--array=bogus", "ok.sh"],
        ["scancel"],
        ["scancel", "abc"],
        ["scancel", "999"],
        ["scancel", "1"],
        ["scancel", "-s", "BOGUS", "1"],
        ["scancel", "--bogus"],
        ["scancel", "-M", "nosuch", "1"],
    ]
)
ARRAY = [["sbatch", "--parsable", "-H", "--array=1-4,7,9%2", "ok.sh"]]
ARRAY_QUERIES = [  # ARRAY stands for its id
    ["squeue", "-h", "-t", "all", "-j", "ARRAY", "-O", LONG_FORMAT],
    ["squeue", "-h", "-j", "ARRAY", "-o", "%i|%A|%F|%K|%T"],
    ["squeue", "-h", "-r", "-j", "ARRAY", "-o", "%i"],
    ["scontrol", "-o", "show", "job", "ARRAY"],
    ["scontrol", "-o", "show", "job", "ARRAY_4"],
    ["scancel", "ARRAY_3"],
    ["scontrol", "-o", "show", "job", "ARRAY_3"],
    ["squeue", "-h", "-j", "ARRAY", "-o", "%i|%T|%r"],
    ["scancel", "ARRAY"],
    ["squeue", "-h", "-t", "all", "-j", "ARRAY", "-o", "%i|%T|%r"],
]


def play(run, workdir):
    """Play the scenario; ``run(argv)`` returns (stdout, stderr, rc). Returns the list of
    answers."""
    for name, text in SCRIPTS.items():
        with open(os.path.join(workdir, name), "w") as handle:
            handle.write(text)
    answers = []

    def ask(argv, shown=None):
        out, err, code = run(argv)
        answers.append({"argv": shown or argv, "stdout": out, "stderr": err, "rc": code})
        return out

    for argv in SUBMIT:
        ask(argv)
    _wait(run, 10, "RUNNING")
    _wait_for_file(os.path.join(workdir, "trapped"))
    run(["scancel", "10"])
    for number in ENDED + (10,):
        _wait(run, number, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
    _wait_accounting(run)
    run(["scancel", "11"])  # late: a row not yet known as pending would get a start time
    _wait(run, 11, "CANCELLED")
    deadline = time.time() + PATIENCE_S
    while "|CANCELLED" not in run(["sacct", "-n", "-P", "-X", "-j", "11", "-o", "JobID,State"])[0]:
        assert time.time() < deadline
        time.sleep(0.1)
    for argv in QUERIES:
        ask(argv)
    for argv in ARRAY:
        array_id = ask(argv).strip()
    for argv in ARRAY_QUERIES:
        ask([word.replace("ARRAY", array_id) for word in argv], argv)
    for answer in answers[-len(ARRAY + ARRAY_QUERIES):]:
        answer["stdout"] = answer["stdout"].replace(workdir, "WORKDIR")
        # First: the array's id may be the minute of a time.
        answer["stdout"] = TIME.sub("TIME", answer["stdout"])
        answer["stdout"] = re.sub(
            r"\b%s\b|(?<=\b)%s(?=_)" % (array_id, array_id), "ARRAY", answer["stdout"]
        )
    return answers


def _wait_for_file(path):
    deadline = time.time() + PATIENCE_S
    while not os.path.exists(path):
        assert time.time() < deadline, path
        time.sleep(0.05)


def _wait(run, number, *states):
    deadline = time.time() + PATIENCE_S
    while (
        run(["squeue", "-h", "-t", "all", "-j", str(number), "-o", "%T"])[0].strip() not in states
    ):
        if time.time() > deadline:
            raise RuntimeError("job %d did not become %s" % (number, states))
        time.sleep(0.05)


def _wait_accounting(run):
    """Until every ended job's row has its name: accounting lags."""
    deadline = time.time() + PATIENCE_S
    numbers = ",".join(str(number) for number in range(1, 13))
    while True:
        out = run(["sacct", "-n", "-P", "-X", "-j", numbers, "-o", "JobIDRaw,JobName"])[0]
        rows = [line for line in out.splitlines() if "|" in line]
        if len(rows) >= 12 and "|allocation" not in out:
            return
        if time.time() > deadline:
            raise RuntimeError("the accounting does not settle: %s" % out)
        time.sleep(0.2)


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
MASKS = [
    (TIME, "TIME"),
    (re.compile(r"365-00:00:00"), "UNLIMITED"),  # the backfill scheduler's way to put it
    (re.compile(r"525600"), "UNLIMITED"),
    (re.compile(r"Priority=[1-9]\d*"), "Priority=N"),
    (re.compile(r"Scheduler=\w+"), "Scheduler=S"),
    (re.compile(r"AllocNode:Sid=\S+"), "AllocNode:Sid=S"),
    (re.compile(r"RunTime=\S+"), "RunTime=R"),
    (re.compile(r"\|0:\d\d\|"), "|0:SS|"),
    (re.compile(r"\(primary\) at \S+ is"), "(primary) at HOST is"),
    (re.compile(r"slurm_script|spool/\d+\.script"), "SCRIPT"),
]


def normalise(text, workdir, node):
    """Take out what differs between two clusters that behave alike."""
    text = text.replace(workdir, "WORKDIR").replace(node, "NODE")
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


def main(out, workdir):
    """Record the answers of the commands on PATH."""
    workdir = os.path.abspath(workdir)

    def run(argv):
        done = subprocess.run(
            argv,
            cwd=workdir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            universal_newlines=True,
        )
        return done.stdout, done.stderr, done.returncode

    node = run(["sinfo", "-h", "-o", "%N"])[0].strip()
    with open(out, "w") as handle:
        for answer in play(run, workdir):
            answer["stdout"] = normalise(answer["stdout"], workdir, node)
            answer["stderr"] = normalise(answer["stderr"], workdir, node)
            handle.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
