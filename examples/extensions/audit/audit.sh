#!/bin/sh
# Counts the events of a session; the command /audit shows the counts.
#
# A shell has no JSON parser, and this needs none. It relies on two facts: a frame is one line, and hosts write `type`
# first and after it `event` or `id`. So a pattern tied to the start of the line is enough, and text further on cannot
# be mistaken for a frame.

LC_ALL=C # bytes: a line is then never an invalid text, and matching is fast
export LC_ALL

EVENTS='session_start session_end user_prompt_submit turn_start turn_end tool_call tool_confirmation_requested
permission_decision tool_result assistant_message pre_compact post_compact subagent_start subagent_stop'

for name in $EVENTS; do
    eval "count_$name=0"
done

# Write one frame. printf and not echo, because in some shells echo interprets backslashes. No host: no more to do.
send() {
    printf '%s\n' "$1" || exit 0
}

# Set `value` to the string in the second field of $line: cut up to the first quote after a colon after a comma, then
# from the next quote on.
second_field() {
    value=${line#*,*:*\"}
    value=${value%%\"*}
}

register() {
    send '{"type":"register_command","name":"audit","description":"Show how often each event happened"}'
    list=
    for name in $EVENTS; do
        list=$list,\"$name\"
    done
    send "{\"type\":\"subscribe\",\"events\":[${list#,}]}"
    send '{"type":"ready"}'
}

count() {
    second_field
    # Only names we know reach eval: a name is text from outside.
    for name in $EVENTS; do
        if [ "$name" = "$value" ]; then
            eval "count_$name=\$((count_$name + 1))"
        fi
    done
}

display() {
    text=
    for name in $EVENTS; do
        eval "count=\$count_$name"
        if [ "$count" -gt 0 ]; then
            text="$text\\n$name $count"
        fi
    done
    second_field
    case $value in
    '' | *\\*) return ;; # an escape in an id would have to be decoded; hosts number their calls
    esac
    text="events so far:${text:-\\nnone}"
    send "{\"type\":\"command_response\",\"id\":\"$value\",\"action\":\"display\",\"display\":\"$text\"}"
}

send '{"type":"hello","name":"audit","version":"0.1.0","capabilities":["commands","events"]}'

# IFS= and -r keep the line as it is. A last line without its newline is no frame, so the loop ends with it.
while IFS= read -r line; do
    case $line in
    '{"type":"event","event":"'* | '{"type": "event", "event": "'*) count ;;
    '{"type":"command_invoked","id":"'* | '{"type": "command_invoked", "id": "'*) display ;;
    '{"type":"hello_ack"'* | '{"type": "hello_ack"'*) register ;;
    '{"type":"shutdown"'* | '{"type": "shutdown"'*)
        send '{"type":"shutdown_ack"}'
        exit 0
        ;;
    esac # anything else is from a newer host, or not for us
done
