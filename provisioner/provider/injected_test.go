package provider_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// installed reads the private key out of cloud-init's configuration as cloud-init
// would write it, without a YAML library: block text, indented by four.
func installed(t *testing.T, config string) string {
	t.Helper()
	_, rest, ok := strings.Cut(config, "#cloud-config\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n")
	body, public, ok2 := strings.Cut(rest, "  ed25519_public: ssh-ed25519 ")
	if !ok || !ok2 || strings.Count(public, "\n") != 1 {
		t.Fatalf("user data: %s", config)
	}
	var key strings.Builder
	for line := range strings.Lines(body) {
		text, indented := strings.CutPrefix(line, "    ")
		if !indented {
			t.Fatalf("line %q", line)
		}
		key.WriteString(text)
	}
	return key.String()
}

// TestInjectedHostKey: the key is the same for the same node, the user data holds
// it, and CONFIRM accepts it and no other without learning anything.
func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	login := sshtest.NewKey(t, "ed25519", "")
	spec := &loom.TaskSpec{IdempotencyKey: "k1", Provider: loom.Provider{Fields: map[string]any{}}}
	files := t.TempDir()
	if err := os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "ssh_keys/prod"), []byte(login.PEM), 0o400); err != nil {
		t.Fatal(err)
	}
	ctx := provider.WithEnv(context.Background(), provider.Env{Files: files})
	auth := map[string]any{"user": "root", "identityfile": "ssh_keys/prod"}
	if key, err := provider.InjectedHostKey(ctx, spec, auth); key != nil || err != nil {
		t.Fatalf("switched off: %v, %v", key, err)
	}
	spec.Provider.Fields["inject_host_key"] = "true"
	if _, err := provider.InjectedHostKey(ctx, spec, map[string]any{"user": "root"}); !errors.Is(err, remote.ErrCredentials) || !strings.Contains(err.Error(), "ssh_key_resource") {
		t.Fatalf("without a key: %v", err)
	}
	key, err := provider.InjectedHostKey(ctx, spec, auth)
	if err != nil {
		t.Fatal(err)
	}
	again, err := provider.InjectedHostKey(ctx, spec, auth)
	if err != nil || again.Secret().Reveal() != key.Secret().Reveal() {
		t.Fatalf("a repeated CREATE gets another key: %v", err)
	}
	spec.IdempotencyKey = "k2"
	if other, err := provider.InjectedHostKey(ctx, spec, auth); err != nil || other.Secret().Reveal() == key.Secret().Reveal() {
		t.Fatalf("another machine gets the same key: %v", err)
	}
	data, err := key.UserData(nil)
	if err != nil {
		t.Fatal(err)
	}
	private := installed(t, string(data))
	if signer, err := ssh.ParsePrivateKey([]byte(private)); err != nil {
		t.Fatal(err)
	} else if _, encoded := remote.EncodeHostKey(signer.PublicKey()); key.Recorded()["ed25519"] != encoded {
		t.Fatal("the recorded key is not the one in the user data")
	}

	// The machine as cloud-init would have set it up.
	s := sshtest.Start(t, sshtest.Options{Isolated: true, PrivateHostKeys: []string{private}})
	for _, c := range []struct {
		recorded map[string]string
		status   int
	}{{key.Recorded(), 0}, {map[string]string{"ed25519": login.Blob}, 1}} {
		confirming := specOf(s, "root")
		confirming.Results["ssh_host_keys"] = c.recorded
		m := machineOf(s)
		m.HostKeys = nil
		sink := &sshtest.Record{}
		result, err := provider.Confirm(context.Background(), confirming, m, sink)
		if err != nil || result.Status != c.status || strings.Contains(sink.Text(), "learned") {
			t.Fatalf("%+v, %v\n%s", result, err, sink.Text())
		}
	}
}

func TestInjectedHostKeyBesidesUserData(t *testing.T) {
	t.Parallel()
	key, err := provider.NewHostKey(loom.NewSecret("s"), "k")
	if err != nil {
		t.Fatal(err)
	}
	for own, kind := range map[string]string{"#!/bin/sh\necho é\n": "text/x-shellscript", "#cloud-config\npackages: [vim]\n": "text/cloud-config", "#include\nhttps://x.example/a\n": "text/x-include-url"} {
		data, err := key.UserData([]byte(own))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := key.UserData([]byte(own)); err != nil || !bytes.Equal(again, data) {
			t.Fatal("not the same twice")
		}
		message, err := mail.ReadMessage(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		outer, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
		if err != nil || outer != "multipart/mixed" {
			t.Fatalf("%s, %v", outer, err)
		}
		parts := multipart.NewReader(message.Body, parameters["boundary"])
		var kinds, contents []string
		for {
			part, err := parts.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, _ := io.ReadAll(part)
			media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
			kinds, contents = append(kinds, media), append(contents, string(content))
		}
		if len(kinds) != 2 || kinds[0] != kind || kinds[1] != "text/cloud-config" || contents[0] != own || installed(t, contents[1]) != key.Secret().Reveal() {
			t.Fatalf("%v %q", kinds, contents)
		}
	}
	for _, own := range []string{"Content-Type: multipart/mixed; boundary=x\n\n--x--\n", "hello"} {
		if _, err := key.UserData([]byte(own)); err == nil || !strings.Contains(err.Error(), "inject_host_key") {
			t.Errorf("%q: %v", own, err)
		}
	}
	if _, err := provider.NewHostKey(loom.Secret{}, "k"); err == nil {
		t.Error("a key was made from nothing")
	}
}

// TestInjectedHostKeyNotTaken: an image that did not take the key, and a machine that may
// not have been passed it, are reported as that and not as a changed key; a key that changed
// later is one.
func TestInjectedHostKeyNotTaken(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	spec := func() *loom.TaskSpec {
		spec := specOf(s, "root")
		spec.IdempotencyKey = "k7"
		spec.Provider.Fields["inject_host_key"] = "on"
		spec.Results["ssh-auth"] = map[string]any{"user": "root"}
		return spec
	}
	key, err := provider.InjectedHostKey(context.Background(), spec(), map[string]any{"user": "root"})
	if err != nil {
		t.Fatal(err)
	}
	m := machineOf(s)
	m.HostKeys = nil
	for what, c := range map[string]struct {
		recorded  map[string]string
		addresses map[string]string
		status    int
		says      string
		lacks     string
	}{
		"an image that did not take it": {key.Recorded(), nil, 1, "did not take it. Use an image with cloud-init, or turn inject_host_key off", "changed"},
		"a machine that was there":      {key.Recorded(), map[string]string{loom.AccessV4: s.Address}, 1, "host key of " + s.Address + " changed", "cloud-init"},
		"an adopted one":                {nil, nil, 0, "cannot tell whether it was passed the key", "changed"},
	} {
		confirming, sink := spec(), &sshtest.Record{}
		confirming.Addresses = c.addresses
		if c.recorded != nil {
			confirming.Results["ssh_host_keys"] = c.recorded
		}
		result, err := provider.Confirm(context.Background(), confirming, m, sink)
		said := result.Message + sink.Text()
		if err != nil || result.Status != c.status || !strings.Contains(said, c.says) || strings.Contains(said, c.lacks) {
			t.Errorf("%s: %+v, %v\n%s", what, result, err, sink.Text())
		}
	}
	// An adopted machine that has the key is known by it.
	login := sshtest.NewKey(t, "ed25519", "")
	confirming, sink := spec(), &sshtest.Record{}
	confirming.PrivateKey = loom.NewSecret(login.PEM)
	own, err := provider.InjectedHostKey(context.Background(), confirming, map[string]any{"user": "root"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := own.UserData(nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := sshtest.Start(t, sshtest.Options{Isolated: true, PrivateHostKeys: []string{installed(t, string(data))}})
	if err := os.WriteFile(filepath.Join(taken.Dir, "authorized_keys"), []byte(login.Authorized+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	there := machineOf(taken)
	there.HostKeys = nil
	if result, err := provider.Confirm(context.Background(), confirming, there, sink); err != nil || result.Status != 0 || !strings.Contains(sink.Text(), "it is the host key that Loom gave the machine") {
		t.Errorf("%+v, %v\n%s", result, err, sink.Text())
	}
}
