#!/bin/sh
# Stands in for chef-solo and checks the contract: its arguments, that the config and
# the attributes can be read, that every recipe and role of the run list is in its
# place, and that only root reads the attributes. It converges nothing, unless a test
# puts a program into /var/lib/contract/converge, which gets the attributes, the path
# of the cookbooks and the run list. What it was given is kept below /var/lib/contract.
fail() { echo "FATAL: $1" >&2; exit 1; }
keep=/var/lib/contract
mkdir -p "$keep"
config= json= list=
while [ $# -gt 0 ]; do
  case $1 in
  --no-color) shift ;;
  -c) config=$2; shift 2 ;;
  -j) json=$2; shift 2 ;;
  -o) list=$2; shift 2 ;;
  *) fail "unknown argument $1" ;;
  esac
done
[ "$(id -u)" = 0 ] || fail 'chef-solo runs as root'
[ -f "$config" ] && [ -f "$json" ] && [ -n "$list" ] || fail 'a config, attributes and a run list are needed'
[ "$(stat -c %a "$json")" = 600 ] || fail "others may read $json"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$json" || fail "$json is no JSON"
path() { sed -n "s/^$1 '\(.*\)'\$/\1/p" "$config"; }
books=$(path cookbook_path) roles=$(path role_path) bags=$(path data_bag_path)
[ -d "$books" ] && [ -d "$roles" ] && [ -d "$bags" ] || fail 'a path of solo.rb is not there'
grep -qx 'log_location STDOUT' "$config" || fail 'the log does not go to standard output'
for item in $(echo "$list" | tr , ' '); do
  case $item in
  role\[*\])
    name=${item#role\[}; name=${name%\]}
    [ -f "$roles/$name.rb" ] || [ -f "$roles/$name.json" ] || fail "role $name is not in $roles" ;;
  *)
    name=${item#recipe\[}; name=${name%\]}
    case $name in *::*) recipe=${name#*::} ;; *) recipe=default ;; esac
    [ -f "$books/${name%%::*}/recipes/$recipe.rb" ] || fail "recipe $name is not in $books" ;;
  esac
done
cp "$json" "$keep/attributes.json"
printf '%s\n' "$list" >>"$keep/lists"
[ -f /etc/chef/encrypted_data_bag_secret ] && cp /etc/chef/encrypted_data_bag_secret "$keep/secret"
[ -z "$CHEF_LICENSE" ] || echo "$CHEF_LICENSE" >"$keep/license"
[ ! -x "$keep/converge" ] || "$keep/converge" "$json" "$books" "$list" || fail 'the convergence broke'
[ ! -e "$keep/broken" ] || fail 'the convergence broke'
echo "Contract run of $list complete"
