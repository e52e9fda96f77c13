package cloudtest

import (
	"strings"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
)

// injectsHostKey checks that a machine gets its host key by user data where the field
// inject_host_key is on, that the key is recorded with its id, and that nothing is
// passed where it is off. After an answer was lost the key is recorded only by clouds
// whose repeated call is known to be about the same machine: again says so.
func (l *Lab) injectsHostKey(again bool) {
	l.t.Helper()
	l.Must(l.Spec(200), loom.ActionCreate, 0)
	if data := l.UserData(); data != "" {
		l.t.Errorf("without being asked for the machine was passed %q", data)
	}
	l.Fields["inject_host_key"] = "on"
	spec := l.Spec(201)
	_, sink := l.Must(spec, loom.ActionCreate, 0)
	data := l.UserData()
	keys, _ := spec.Results["ssh_host_keys"].(map[string]string)
	if !strings.HasPrefix(data, "#cloud-config") || keys["ed25519"] == "" || !strings.Contains(data, keys["ed25519"]) {
		l.t.Errorf("user data %q, recorded %v", data, keys)
	}
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["ssh_host_keys"] == nil || facts[0]["providerid"] == nil {
		l.t.Errorf("reported %v; the key belongs beside the id", facts)
	}
	// A repeated CREATE finds the machine and leaves what is recorded.
	l.Must(spec, loom.ActionCreate, 0)
	if spec.Results["ssh_host_keys"] == nil {
		l.t.Error("the second CREATE forgot the key")
	}
	l.Cloud.Inject(fakecloud.Fault{Op: l.MakeOp, Lost: true})
	spec = l.Spec(202)
	l.Must(spec, loom.ActionCreate, 0)
	if recorded := spec.Results["ssh_host_keys"] != nil; recorded != again {
		l.t.Errorf("after a lost answer the key is recorded: %t", recorded)
	}
}
