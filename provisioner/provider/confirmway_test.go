package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestConfirmByJumpHost: all of CONFIRM goes by way of the jump host, whose key is
// learned once and verified from then on.
func TestConfirmByJumpHost(t *testing.T) {
	t.Parallel()
	s, jump := sshtest.Start(t, sshtest.Options{Isolated: true}), sshtest.Start(t, sshtest.Options{Isolated: true})
	files := t.TempDir()
	if err := os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "ssh_keys/gate"), []byte(jump.Key.PEM), 0o400); err != nil {
		t.Fatal(err)
	}
	confirm := func(results, fields map[string]any) loom.TaskResult {
		t.Helper()
		pool := remote.NewPool()
		defer pool.Close()
		ctx := provider.WithEnv(context.Background(), provider.Env{Dialer: pool, Handshakes: pool.Dialer(), Files: files})
		spec := specOf(s, "root")
		spec.Results = results
		spec.Provider.Fields = map[string]any{"ssh_jump": fmt.Sprintf("%s@127.0.0.1:%d", sshtest.PlainUser, jump.Port), "ssh_jump_key_resource": "gate"}
		for name, value := range fields {
			spec.Provider.Fields[name] = value
		}
		m := machineOf(s)
		m.HostKeys = nil
		sink := &sshtest.Record{}
		result, err := provider.Confirm(ctx, spec, m, sink)
		if err != nil {
			t.Fatalf("%v\n%s", err, sink.Text())
		}
		return result
	}
	first := confirm(map[string]any{}, nil)
	if first.Status != 0 || jump.Dials() != 1 {
		t.Fatalf("%+v, %d connections to the jump host", first, jump.Dials())
	}
	body, err := json.Marshal(first.Result) // as the node keeps it
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{}
	if err := json.Unmarshal(body, &kept); err != nil {
		t.Fatal(err)
	}
	place := fmt.Sprint("127.0.0.1:", jump.Port)
	if got := kept["ssh_jump_host_keys"].(map[string]any)[place].(map[string]any); got["ed25519"] != jump.HostKeys["ed25519"] {
		t.Fatalf("recorded %v", got)
	}
	if again := confirm(kept, nil); again.Status != 0 {
		t.Fatalf("%+v", again)
	}
	kept["ssh_jump_host_keys"].(map[string]any)[place] = map[string]any{"ed25519": s.HostKeys["ed25519"]}
	if changed := confirm(kept, nil); changed.Status != 1 || changed.Retryable == nil || changed.Message != "jump host "+place+": host key of 127.0.0.1 changed" {
		t.Fatalf("%+v", changed)
	}
	// What the administrator pins stands above what was learned.
	pinned := confirm(kept, map[string]any{"ssh_jump_host_key": fmt.Sprintf("[127.0.0.1]:%d ssh-ed25519 %s\n", jump.Port, jump.HostKeys["ed25519"])})
	if pinned.Status != 0 {
		t.Fatalf("%+v", pinned)
	}
	if refused := confirm(map[string]any{}, map[string]any{"ssh_jump_key_resource": nil}); refused.Status != 1 || !strings.Contains(refused.Message, "jump host "+place+": SSH authentication failed for "+sshtest.PlainUser) {
		t.Fatalf("%+v", refused)
	}
}

// TestConfirmByCertificate: a certificate of the field's authority needs no record
// and replaces one; a machine without any is learned.
func TestConfirmByCertificate(t *testing.T) {
	t.Parallel()
	named := sshtest.Start(t, sshtest.Options{Isolated: true, CertifyFor: []string{"shop1-1000.lab.example"}})
	static := sshtest.Start(t, sshtest.Options{Isolated: true, CertifyFor: []string{"db.lab.example"}})
	plain := sshtest.Start(t, sshtest.Options{Isolated: true})
	other := map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	for name, c := range map[string]struct {
		server   *sshtest.Server
		recorded map[string]any
		names    []string
		says     string
		status   int
	}{
		"host name":            {named, nil, nil, "is certified", 0},
		"above what was there": {named, other, nil, "is certified", 0},
		"provider's name":      {static, nil, []string{"db.lab.example"}, "is certified", 0},
		"another machine":      {static, nil, nil, "", 1},
		"none":                 {plain, nil, nil, "shows no host certificate", 0},
		"none, another key":    {plain, other, nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, m, sink := specOf(c.server, "root"), machineOf(c.server), &sshtest.Record{}
			m.HostKeys, m.Names = nil, c.names
			spec.Provider.Fields["ssh_host_ca"] = named.CA + "\n" + static.CA
			if c.recorded != nil {
				spec.Results["ssh_host_keys"] = c.recorded
			}
			result, err := provider.Confirm(context.Background(), spec, m, sink)
			if err != nil || result.Status != c.status || !strings.Contains(sink.Text(), c.says) {
				t.Fatalf("%+v, %v\n%s", result, err, sink.Text())
			}
			if c.status != 0 {
				if result.Retryable == nil || *result.Retryable {
					t.Errorf("it is tried again: %+v", result)
				}
				return
			}
			if got := result.Result["ssh_host_keys"].(map[string]string); got["ed25519"] != c.server.HostKeys["ed25519"] {
				t.Errorf("recorded %v", got)
			}
		})
	}
}
