# Where `path` leads, in `real`. With `only` set, the arguments are the folders that may be looked at.
[ -e "$path" ] || { [ -L "$path" ] && exit 46; exit 40; }
real=$(readlink -f -- "$path" && printf x) || exit 46
real=${real%??}
if [ "$only" ]; then
    inside=
    for root do
        root=$(readlink -f -- "$root" && printf x) || continue
        root=${root%??}
        case $real/ in "${root%/}"/*) inside=yes ;; esac
    done
    [ "$inside" ] || exit 44
fi
