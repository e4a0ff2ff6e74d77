# Only a regular file is opened: others may never end, or have an effect.
[ -d "$real" ] && exit 41
[ -f "$real" ] || exit 42
[ -r "$real" ] || exit 43
printf '%s\0' "$real"
