# source.sh SCRIPT [ARG...]: sources a shell script after the functions, in
# whatever shell the script asks for.
. "${0%/*}/functions.sh"
loom_script=$1
shift
. "$loom_script"
