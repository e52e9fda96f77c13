package provisioner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestManageHosts: the block of the cluster is replaced, everything else stays as
// it is, and a file that says the same already is not written again.
func TestManageHosts(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	conn, err := remote.Dial(context.Background(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: sshtest.SudoUser, Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	spec := func(cluster loom.ClusterID) *loom.TaskSpec {
		return &loom.TaskSpec{Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: cluster, Number: 1}, Number: 1}, Action: loom.ActionInstall, Node: "n1",
			Provider: loom.Provider{Fields: map[string]any{"manage_hosts": "on"}},
			Nodes: map[loom.NodeID]loom.NodeProperties{
				"n2": {Hostname: "web1-1001.lab.example", Number: 1001, Addresses: map[string]string{loom.BindV4: "10.0.0.2", loom.AccessV4: "203.0.113.2"}},
				"n1": {Hostname: "web1-1000.lab.example", Number: 1000, Addresses: map[string]string{loom.BindV4: "10.0.0.1"}},
				"n3": {Hostname: "web1-1002.lab.example", Number: 1002}}} // not confirmed yet
	}
	file := filepath.Join(s.Dir, "etc/hosts")
	write := func(text string) {
		t.Helper()
		if err := conn.Upload(context.Background(), remote.File{Path: "/etc/hosts", Root: true, Content: strings.NewReader(text)}); err != nil {
			t.Fatal(err)
		}
	}
	manage := func(spec *loom.TaskSpec, want string) uint64 {
		t.Helper()
		if err := manageHosts(context.Background(), conn, spec); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || string(got) != want || info.Mode().Perm() != 0o644 {
			t.Fatalf("%v\n%s\nwant:\n%s", err, got, want)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	const first = "# loom begin 00000001\n10.0.0.1 web1-1000.lab.example web1-1000\n10.0.0.2 web1-1001.lab.example web1-1001\n# loom end 00000001\n"
	own := "127.0.0.1\tlocalhost  # mine, as it is\n\n127.0.1.1 web1-1000\n# loom begin 00000007\n10.7.0.1 other\n# loom end 00000007\n"
	write(strings.TrimSuffix(own, "\n"))
	before := manage(spec(1), own+first)
	if again := manage(spec(1), own+first); again != before {
		t.Error("the same file was written again")
	}
	grown := spec(1)
	grown.Nodes["n3"] = loom.NodeProperties{Hostname: "web1-1002.lab.example", Number: 1002, Addresses: map[string]string{loom.BindV4: "10.0.0.3"}}
	grown.Action = loom.ActionConfigure
	if changed := manage(grown, own+strings.Replace(first, "# loom end", "10.0.0.3 web1-1002.lab.example web1-1002\n# loom end", 1)); changed == before {
		t.Error("the file was not replaced by a new one")
	}
	// The block of another cluster does not move this one's.
	second := strings.ReplaceAll(first, "00000001", "00000002")
	manage(spec(1), own+first)
	manage(spec(2), own+first+second)
	// Lines after a mark that somebody broke are kept.
	write("127.0.0.1 localhost\n# loom begin 00000001\n10.9.9.9 theirs\n")
	manage(spec(1), "127.0.0.1 localhost\n10.9.9.9 theirs\n"+first)
	// Nothing is done for other actions, and nothing without the field.
	write(own)
	for _, change := range []func(*loom.TaskSpec){
		func(s *loom.TaskSpec) { s.Action = loom.ActionStart }, func(s *loom.TaskSpec) { s.Action = loom.ActionBootstrap },
		func(s *loom.TaskSpec) { s.Provider.Fields["manage_hosts"] = "false" }, func(s *loom.TaskSpec) { s.Provider.Fields = nil },
	} {
		none := spec(1)
		change(none)
		manage(none, own)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "etc/.hosts*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
