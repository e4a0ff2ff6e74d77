# What is in a folder: the kind and name of each entry, after a folder what is in it, and `u` at its end. `x` stands for
# a folder that cannot be read.
walk() {
    [ -r . ] || printf 'x\0'
    for name in * .[!.]* ..?*; do
        if [ -L "./$name" ]; then
            kind=l
        elif [ -d "./$name" ]; then
            kind=d
        elif [ -f "./$name" ]; then
            kind=f
        elif [ -e "./$name" ]; then
            kind=o
        else
            continue
        fi
        printf '%s%s\0' "$kind" "$name"
        if [ "$kind" = d ]; then
            if [ "$1" -gt 1 ]; then
                (
                    cd "./$name" 2>/dev/null || { printf 'x\0'; exit; }
                    walk "$(($1 - 1))"
                )
            fi
            printf 'u\0'
        fi
    done
}
[ -d "$real" ] || exit 45
cd -P -- "$real" 2>/dev/null || exit 43
[ -r . ] || exit 43
printf '%s\0' "$real"
