# SPDX-License-Identifier: Apache-2.0
"""Run once in a new kernel, outside the user's names. Given: ipython (bool), skills (source of the
module of helpers, or ""), target (the user's globals)."""
import sys


def keep_order(streams):
    """ipykernel buffers stdout and stderr apart; a change of stream sends the other one first."""
    last = [None]

    def wrap(stream):
        write = stream.write

        def ordered(text):
            if last[0] is not stream:
                if last[0] is not None:
                    last[0].flush()
                last[0] = stream
            return write(text)

        stream.write = ordered

    for stream in streams:
        wrap(stream)


def load_skills(source, into):
    import importlib.util
    import types

    names = ["agentskills"]
    if importlib.util.find_spec("openhands") is None:
        names += ["openhands", "openhands.runtime", "openhands.runtime.plugins"]
        names += ["openhands.runtime.plugins.agent_skills"]
        names += ["openhands.runtime.plugins.agent_skills.agentskills"]
    module = types.ModuleType("agentskills")
    for name in names:  # so that an import by either name finds what is here already
        sys.modules[name] = module
    if len(names) > 1:
        module.__path__ = []
        module.runtime = module.plugins = module.agent_skills = module.agentskills = module
    exec(compile(source, "<agentskills>", "exec"), module.__dict__)
    for name in module.__all__:
        into[name] = getattr(module, name)


if ipython:  # noqa: F821
    try:
        keep_order([sys.stdout, sys.stderr])
    except AttributeError:
        pass
if skills:  # noqa: F821
    load_skills(skills, target)  # noqa: F821
