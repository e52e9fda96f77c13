#!/bin/sh
# An identity provider to try sign-in with: glewlwyd on this host, with the users
# eve (of the group staff) and bob. Needs the packages glewlwyd, openssl and curl,
# and a Loom that may call it:
#
#   export LOOM_ALLOW_INSECURE_ENDPOINTS=true LOOM_IDENTITY_NETWORKS=127.0.0.0/8
#   make run
#   docs/identity.sh [PORT]
#
# It asks for what Loom shows and runs until its input ends. Everything is in a
# temporary directory, and its passwords are no secrets: for trying only.
set -eu

port=${1:-4593}
url=http://127.0.0.1:$port
secret=$(openssl rand -hex 16)

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" || :; }; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# Users have groups.
{
    cat /usr/share/dbconfig-common/data/glewlwyd/install/sqlite3
    field='{"multiple": true, "read": true, "write": true}'
    echo "UPDATE g_user_module_instance SET gumi_parameters = json_set(gumi_parameters, '$.data-format.groups', json('$field'));"
} | sqlite3 "$dir/database"

# It serves no files behind links, and the package's config.json is a directory.
cp -RL /usr/share/glewlwyd/webapp "$dir/pages"
rm -R "$dir/pages/config.json"
cp /usr/share/glewlwyd/templates/config.json "$dir/pages"

cat >"$dir/conf" <<CONF
port = $port
bind_address = "127.0.0.1"
external_url = "$url"
login_url = "login.html"
log_mode = "console"
log_level = "ERROR"
database = { type = "sqlite3", path = "$dir/database" }
user_module_path = "/usr/lib/glewlwyd/user"
client_module_path = "/usr/lib/glewlwyd/client"
user_auth_scheme_module_path = "/usr/lib/glewlwyd/scheme"
plugin_module_path = "/usr/lib/glewlwyd/plugin"
static_files_path = "$dir/pages"
static_files_mime_types = (
  { extension = ".html", mime_type = "text/html" },
  { extension = ".css", mime_type = "text/css" },
  { extension = ".js", mime_type = "application/javascript" },
  { extension = ".json", mime_type = "application/json" } )
CONF
glewlwyd --config-file="$dir/conf" &
server=$!
until curl -fs -o "$dir/answer" "$url/config"; do
    kill -0 "$server" 2>/dev/null || { echo "glewlwyd did not start; is port $port in use?" >&2; exit 1; }
    sleep 0.1
done

# call METHOD PATH BODY: one request as administrator; an error shows the answer.
call() {
    curl -sS --fail-with-body -o "$dir/answer" -b "$dir/cookies" -c "$dir/cookies" -X "$1" --json "$3" "$url/api$2" || { cat "$dir/answer" >&2; return 1; }
}

scope() {
    call POST /scope/ "{\"name\": \"$1\", \"display_name\": \"$1\"}"
}
# user ID NAME GROUPS
user() {
    call POST /user/ "{\"username\": \"$1\", \"name\": \"$2\", \"email\": \"$1@example.com\", \"password\": \"$1-password\", \"enabled\": true,
        \"scope\": [\"openid\", \"profile\", \"email\"], \"groups\": [$3]}"
}

openssl genrsa -out "$dir/key" 2048 2>/dev/null
openssl rsa -in "$dir/key" -pubout -out "$dir/public" 2>/dev/null
# pem FILE: a key as text in JSON.
pem() {
    awk '{ printf "%s\\n", $0 }' "$dir/$1"
}
# claim NAME FIELD: a claim that each ID token has, from a field of users.
claim() {
    echo "{\"name\": \"$1\", \"user-property\": \"$2\", \"type\": \"string\", \"mandatory\": true}"
}

# Without front-channel logout its page for signing out does not work.
call POST /auth/ '{"username": "admin", "password": "password"}'
scope profile
scope email
call POST /mod/plugin/ "{\"module\": \"oidc\", \"name\": \"oidc\", \"display_name\": \"OpenID Connect\", \"parameters\": {
    \"iss\": \"$url/api/oidc\", \"jwt-type\": \"rsa\", \"jwt-key-size\": \"256\", \"key\": \"$(pem key)\", \"cert\": \"$(pem public)\", \"jwks-show\": true,
    \"access-token-duration\": 600, \"refresh-token-duration\": 600, \"code-duration\": 60,
    \"auth-type-code-enabled\": true, \"pkce-allowed\": true, \"allowed-scope\": [\"openid\", \"profile\", \"email\"],
    \"name-claim\": \"mandatory\", \"email-claim\": \"mandatory\", \"claims\": [$(claim preferred_username username), $(claim groups groups)],
    \"session-management-allowed\": true, \"session-cookie-name\": \"GLEWLWYD2_OIDC_SID\", \"session-cookie-expiration\": 86400,
    \"front-channel-logout-allowed\": true, \"back-channel-logout-allowed\": true}}"
user eve 'Eve Example' '"staff"'
user bob 'Bob Example' ''

cat <<TEXT
In Loom, as an administrator, create an identity provider under Admin, Identity:

  Issuer           $url/api/oidc
  Client ID        loom
  Client secret    $secret
  User name claim  preferred_username

Then paste the redirect URI that its page shows.
TEXT
read -r redirect
case $redirect in
*/login/*/callback) ;;
*) echo "this is no redirect URI of Loom: $redirect" >&2; exit 1 ;;
esac
call POST /client/ "{\"client_id\": \"loom\", \"name\": \"Loom\", \"enabled\": true, \"confidential\": true, \"client_secret\": \"$secret\",
    \"authorization_type\": [\"code\"], \"token_endpoint_auth_method\": [\"client_secret_basic\"], \"scope\": [],
    \"redirect_uri\": [\"$redirect\"], \"backchannel_logout_uri\": \"${redirect%callback}logout\"}"

cat <<TEXT
Add a rule: the claim groups is staff, and a group with a role. Eve signs in with
eve and eve-password and gets that role; bob, with bob-password, matches no rule.
Press Enter to end glewlwyd.
TEXT
read -r _ || :
