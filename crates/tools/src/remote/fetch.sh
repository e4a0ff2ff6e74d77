# What each target is, where it really is, the folder that is there already, how `ls` writes its mode, and what is in it.
one() {
    kind= real= folder= mode= linked=
    if [ -e "$1" ] || [ -L "$1" ]; then
        [ -L "$1" ] && linked=yes
        real=$(readlink -f -- "$1" && printf x)
        real=${real%??}
        if [ -z "$real" ] || [ ! -e "$real" ]; then
            kind=broken
        elif [ -d "$real" ]; then
            kind=folder
        elif [ ! -f "$real" ]; then
            kind=special
        elif [ ! -r "$real" ]; then
            kind=denied
        else
            kind=file
            mode=$(ls -ldn -- "$real")
            mode=${mode%% *}
        fi
    else
        kind=absent folder=$1 rest=
        while [ ! -d "$folder/" ]; do
            if [ -e "$folder" ] || [ -L "$folder" ]; then kind=blocked; break; fi
            rest=/${folder##*/}$rest
            folder=${folder%/*}
        done
        folder=$(cd -P -- "$folder/" 2>/dev/null && pwd -P && printf x)
        folder=${folder%??}
        real=${folder%/}$rest
    fi
    printf '%s\0%s\0%s\0%s\0%s\0' "$kind" "$linked" "$real" "$folder" "$mode"
    [ "$kind" = file ] && head -c "$most" <"$real"
    printf '%s' "$boundary"
}
# The first folder above this one that holds a repository.
repository() {
    folder=$(cd -P -- "$1" 2>/dev/null && pwd -P)
    while [ -n "$folder" ] && [ ! -e "$folder/.git" ]; do folder=${folder%/*}; done
    printf '%s\0' "$folder"
}
