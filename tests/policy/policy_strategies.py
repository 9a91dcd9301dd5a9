"""Hypothesis strategies for policies, as the arguments one would write."""

from hypothesis import strategies as st

from trio_exthost.policy import POINTS, ExtensionPolicy, PointPolicy, Policy

# Names of all kinds: bare keys, and what a file has to quote and escape.
names = st.sampled_from(["sandbox", "audit", "bash", "read", "a b", 'q"q\\', "é😀", "tool_call", "1", "a.b"])
tools = st.sampled_from(["bash", "read", "a.b", "x_1"])
words = st.none() | st.sampled_from(["allow", "block"])
waits = st.none() | st.floats(0, 86_400, exclude_min=True) | st.integers(1, 86_400)
CAN_BLOCK = [point for point, can_block in POINTS.items() if can_block]


@st.composite
def points(draw, for_all=False):
    result = {}
    for point in draw(st.sets(st.sampled_from(list(POINTS)), max_size=3)):
        stream = st.none() | st.sampled_from(["hold", "show"])
        result[point] = PointPolicy(
            on_failure=draw(words if POINTS[point] else st.sampled_from([None, "allow"])),
            deadline_s=draw(waits),
            stream=draw(stream) if for_all and point == "assistant_message" else None,
        )
    return result


@st.composite
def extensions(draw):
    guarded = st.builds("tool:{}".format, tools) | st.sampled_from(["tool:*", *CAN_BLOCK])
    guards = draw(st.just([]) | st.lists(guarded, unique=True, max_size=3))
    granted = st.builds("tools.override:{}".format, tools) | st.sampled_from(
        ["tools.override", "session.write", "secrets.read:k"]
    )
    grant = draw(st.lists(granted, unique=True, max_size=3))
    by_name = any(":" in word and word.startswith("tools.") for word in grant)
    delays = draw(st.none() | st.tuples(st.floats(0, 86_400), st.floats(0, 86_400)).map(sorted))
    return ExtensionPolicy(
        required=bool(guards),
        guards=guards,
        grant=grant,
        on_absent=draw(st.sampled_from([None, "refuse", "restore"])) if by_name else None,
        restart=draw(st.sampled_from([None, "never", "on_crash"])),
        restart_budget=draw(st.none() | st.integers(1, 1000)),
        restart_window_s=draw(waits),
        restart_delay_s=delays[0] if delays else draw(st.none() | st.sampled_from([0, 0.5, 30])),
        restart_delay_max_s=delays[1] if delays else draw(st.none() | st.sampled_from([30, 86_400])),
        headless_ask=draw(words),
        points=draw(points()),
    )


policies = st.builds(
    Policy,
    defaults=points(for_all=True),
    headless_ask=words,
    extensions=st.dictionaries(names, extensions(), max_size=4),
    prefer=st.dictionaries(names | st.builds("tool:{}".format, names) | st.builds("command:{}".format, names), names),
)
