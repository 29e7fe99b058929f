# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the Python on standard input, as line:column:text. Syntax first; names only where
pyflakes is there. Run with -I: nothing is imported from the workspace."""
import sys, ast
src = sys.stdin.buffer.read()
say = lambda l, c, m: print('%d:%d:%s' % (l or 1, c or 1, m))
try:
    tree = compile(src, 'f', 'exec', ast.PyCF_ONLY_AST, True)
    compile(src, 'f', 'exec', 0, True)
except SyntaxError as e:
    say(e.lineno, e.offset, 'E999 %s: %s' % (type(e).__name__, e.msg))
    sys.exit()
except Exception as e:
    say(1, 1, 'E902 %s: %s' % (type(e).__name__, e))
    sys.exit()
try:
    from pyflakes.checker import Checker
except ImportError:
    sys.exit()
codes = {'UndefinedName': 'F821', 'UndefinedExport': 'F822', 'DuplicateArgument': 'F831'}
for m in sorted(Checker(tree, 'f').messages, key=lambda m: (m.lineno, m.col)):
    code = codes.get(type(m).__name__)
    if code: say(m.lineno, m.col + 1, code + ' ' + m.message % m.message_args)
