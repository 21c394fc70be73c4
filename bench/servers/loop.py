"""What a host in Python does without a server: a line is a command, its answer all it printed."""
import json
import subprocess
import sys
import threading

lock = threading.Lock()


def answer(id, result):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":")),
              flush=True)


def run(request):
    done = subprocess.run(["/bin/bash", "-c", request["params"]["arguments"]["command"]],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    answer(request["id"], {"code": done.returncode, "text": [done.stdout, done.stderr]})


for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "tools/call":
        threading.Thread(target=run, args=(request,)).start()
    else:
        answer(request["id"], {})
