"""Work in a process of its own, so that this one stays as it was loaded."""

import os
import signal
import sys
import time
import traceback


def forked(work, seconds=0.0):
    """Do `work` in a process of its own; whether it came to its end. It is killed after `seconds`, if any."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # whatever it was, the parent is to hear of it
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if seconds:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        raise RuntimeError("a run failed: see above")
    return True
