# The time of the last change and the path of every file beneath `real` that has a line matching `pattern`. Files that
# git ignores are left out where git is there to say so; hidden files and files that are not text always.
candidates() {
    if [ ! -d "$real" ]; then
        printf '%s\0' "$real"
    elif [ "$(git rev-parse --is-inside-work-tree 2>/dev/null)" = true ]; then
        git ls-files -z -co --exclude-standard
    else
        find . -name '.?*' -prune -o \( -path ./proc -o -path ./sys -o -path ./dev \) -prune -o -type f -print0
    fi 2>/dev/null
}
search() {
    candidates |
        xargs -0 grep -s "$flags" -e "$pattern" -- /dev/null |
        tr '\n' '\0' |
        xargs -0 stat -c '%Y %n' -- /dev/null 2>/dev/null
}
if [ -d "$real" ]; then
    cd -P -- "$real" 2>/dev/null || exit 43
fi
flags=-lE$insensitive
# Not every grep can tell text from other files.
grep -I -q x /dev/null 2>/dev/null
[ "$?" -eq 1 ] && flags=${flags}I
printf '%s\0' "$real"
