package web_test

import (
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// Who has SSH keys that no machine knows gets a button which puts them there; who has none
// is led to the account.
func TestAddMyKeysByForm(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	w.db.MustExec(`UPDATE nodes SET state = 'ready', ipaddresses = jsonb_build_object('access_v4', '10.77.1.' || (number - 990)) WHERE cluster_id = $1`, int64(id))
	at, form := route.Cluster(id), route.ClusterVerb(id, "authorize")
	w.get("ana", at).is(200, "Add an SSH key to your account").lacks(form)
	w.db.MustExec(`UPDATE users SET ssh_keys = '{ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0UWnRQhVRKDWVy2a3VzJZrSXjGWGGVZO9sTKVPiXFo ana}' WHERE id = 'ana'`)
	w.get("ana", at).is(200, form, "Add my keys", "ssh -i loom-")
	w.press("ana", at, "Add my keys").is(303)
	if op := w.cluster(id).Latest; op == nil || op.Action != loom.ClusterAuthorize {
		t.Errorf("the newest operation is %+v", op)
	}
	w.get("ana", at).is(200, "add keys")
	w.post("eve", form, nil).is(404)
}
