# Runs a command in a group of its own. Arguments: the marker, `open` or `closed` for its input, the command.
# Lines from the other side: `d` and escaped bytes are typed, `e` ends the input, `i` interrupts. When the other side
# is gone, so is the group.
mark=$1 input=$2
shift 2
# The shell outside keeps what it says of this group's end to itself.
exec 2>&7 7>&-
trap : INT
# On both streams: which of them is read first, nobody knows.
printf '%s:begin\n' "$mark" >&2
printf '%s:begin\n' "$mark"
{
    trap '' INT PIPE
    while IFS= read -r line; do
        case $line in
        d*) printf '%b' "${line#d}" ;;
        e) exec >&- ;;
        i) kill -INT "-$$" ;;
        esac
    done
    kill -KILL "-$$"
} 2>/dev/null | {
    trap : INT
    # What a shell says of a command that a signal ended is not the command's own output.
    exec 6>&2 2>/dev/null
    if [ "$input" = open ]; then
        (trap - INT; exec 2>&6 6>&-; exec "$@")
    else
        (trap - INT; exec 2>&6 6>&- </dev/null; exec "$@")
    fi
    printf '%s:end %s\n' "$mark" "$?"
    kill -KILL "-$$"
}
