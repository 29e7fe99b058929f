# SPDX-License-Identifier: Apache-2.0
"""tmux.py N: runs `echo hello` N times as the original does, in tmux, and prints the milliseconds of
each: clear, send the keys, look at the screen at once and then every half second until a prompt that
was not there before is at its end, then clear again."""
import os
import re
import subprocess
import sys
import time

SOCKET = 'bench-%d' % os.getpid()
PROMPT = '###PS1###'


def tmux(*words):
    return subprocess.run(('tmux', '-L', SOCKET) + words, check=True, capture_output=True, text=True).stdout


def screen():
    lines = [line.rstrip() for line in tmux('capture-pane', '-J', '-p', '-S', '-').split('\n')]
    return '\n'.join(lines).rstrip()


def clear():
    tmux('send-keys', 'C-l')
    time.sleep(0.1)
    tmux('clear-history')


def run(command):
    before = len(re.findall(PROMPT, screen()))
    tmux('send-keys', command, 'Enter')
    while True:
        text = screen()
        if len(re.findall(PROMPT, text)) > before and text.endswith(PROMPT):
            break
        time.sleep(0.5)
    clear()
    return text


tmux('new-session', '-d', '-x', '1000', '-y', '1000', 'bash --norc')
try:
    tmux('set-option', 'history-limit', '10000')
    tmux('send-keys', "PS1='%s'" % PROMPT.replace('S1', "S''1"), 'Enter')
    time.sleep(0.3)
    clear()
    for _ in range(int(sys.argv[1])):
        start = time.monotonic()
        assert 'hello' in run('echo hello')
        print('%.3f' % ((time.monotonic() - start) * 1000), flush=True)
finally:
    tmux('kill-server')
