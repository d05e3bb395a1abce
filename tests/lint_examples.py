"""A template that breaks no rule of lint and, for each rule, what to change in it so that it breaks that rule."""

from __future__ import annotations

# Breaks no rule: all that is said is written, the same wherever it is, and no text can end a turn.
SOUND = """\
{{- bos_token }}
{%- if tools %}{{ '<|tools|>' ~ tools | tojson ~ '<|end|>' }}{% endif %}
{%- for message in messages %}
{{- '<|' ~ message.role ~ '|>' }}
{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}
{{- (message.content or '') | replace('<|end|>', '') }}
{%- for call in message.tool_calls or [] %}
{%- set given = call.function.arguments %}
{{- '<call name="' ~ call.function.name ~ '">' ~ (given if given is string else given | tojson) ~ '</call>' }}
{%- endfor %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""

# Rule → what to change in the sound template so that it breaks the rule.
BROKEN = {
    "variable-undefined": ("'<|' ~ message.role", "'<|' ~ mesage.role"),
    "ordinary-messages-refused": (
        "{{- bos_token }}",
        "{{- bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    ),
    "null-content-refused": ("(message.content or '')", "(message.content ~ '')"),
    "string-arguments-refused": (
        "{%- set given = ",
        "{%- for key in call.function.arguments.keys() %}{% endfor %}{%- set given = ",
    ),
    "object-arguments-refused": ("(given if given is string else given | tojson)", "('' + given)"),
    "arguments-double-encoded": ("(given if given is string else given | tojson)", "(given | tojson)"),
    "second-call-refused": ("in message.tool_calls or []", "in (message.tool_calls or [])[:1]"),
    "tools-ignored": ("{%- if tools %}", "{%- if false %}"),
    "tool-calls-dropped": ("in message.tool_calls or []", "in []"),
    "tool-results-dropped": ("in messages %}", "in messages if message.role != 'tool' %}"),
    "system-message-dropped": ("in messages %}", "in messages if message.role != 'system' %}"),
    "reasoning-never-written": (
        "{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}",
        "{%- if message.role == 'assistant' %}{{ '<think></think>' }}{% endif %}",
    ),
    "reasoning-dropped-after-call": (
        "{%- if message.reasoning_content %}",
        "{%- if message.reasoning_content and not (message.tool_calls and not loop.last) %}",
    ),
    "reasoning-dropped-from-history": (
        "if message.reasoning_content %}",
        "if message.reasoning_content and loop.last %}",
    ),
    "content-in-open-reasoning": (
        "{%- if message.reasoning_content %}",
        "{%- if message.role == 'assistant' and not message.reasoning_content %}{{ '<think>' }}{% endif %}"
        "{%- if message.reasoning_content %}",
    ),
    "content-cut-at-marker": ("(message.content or '')", "((message.content or '').split('</think>')[-1])"),
    "bos-doubled": ("{{- '<|' ~ message.role", "{{- bos_token ~ '<|' ~ message.role"),
    "generation-prompt-missing": ("{%- if add_generation_prompt %}", "{%- if false %}"),
    "generation-prompt-always": ("{%- if add_generation_prompt %}", "{%- if true %}"),
    "history-not-prefix-stable": ("{{- '<|end|>' }}", "{{- '<|end|>' if loop.last else '<|over|>' }}"),
    "special-tokens-injectable": (" | replace('<|end|>', '')", ""),
}
