# Puts files in their places: all of them, or none. Whatever happens to the other side, one of the two is reached.
exec 3<&0 </dev/null 2>/dev/null
trap '' HUP INT PIPE TERM
lost=
say() { printf '%s:%s\n' "$mark" "$1"; }
fail() {
    undo
    say "$1$lost"
    exit 0
}
# Folder.
make() { [ -d "$1" ] || mkdir -- "$1" || fail "write $2"; }
# Number, temporary file, the file whose mode and owner it gets, size.
stage() {
    if [ -n "$3" ]; then cp -p -- "$3" "$2" || fail "write $1"; fi
    say "ready $1"
    head -c "$4" <&3 >"$2" || fail "write $1"
    [ "$(wc -c <"$2")" -eq "$4" ] || fail "write $1"
}
# Number, target, its checksum or `absent`.
check() {
    above=${2%/*}
    [ "$(cd -P -- "$above/" && pwd -P)" = "${above:-/}" ] || fail "changed $1"
    [ -L "$2" ] && fail "changed $1"
    if [ "$3" = absent ]; then
        [ -e "$2" ] && fail "changed $1"
    else
        sum=$(cksum <"$2" | tr -s ' \t' ' ')
        case "$sum " in "$3 "*) ;; *) fail "changed $1" ;; esac
    fi
}
# Number, target, temporary file, what the former file is kept as.
put() {
    if [ -e "$2" ]; then ln -- "$2" "$4" || cp -p -- "$2" "$4" || fail "write $1"; fi
    mv -f -- "$3" "$2" || fail "write $1"
    eval "done_$1=yes"
}
# Number, target, what it is kept as.
take() {
    mv -f -- "$2" "$3" || fail "write $1"
    eval "done_$1=yes"
}
# Number, target, temporary file, what the former file is kept as.
back() {
    eval "done=\${done_$1:-}"
    if [ -z "$done" ]; then
        rm -f -- "$3" "$4"
    elif [ ! -e "$4" ]; then
        rm -f -- "$2"
    else
        mv -f -- "$4" "$2" || lost="$lost $1"
    fi
}
