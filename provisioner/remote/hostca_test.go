package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestHostCertificates: a certificate of a known authority that is made out to the
// machine stands above recorded keys, one that is not is refused, and others say
// no more than the key in them.
func TestHostCertificates(t *testing.T) {
	t.Parallel()
	byAddress := sshtest.Start(t, sshtest.Options{CertifyFor: []string{"127.0.0.1"}})
	byName := sshtest.Start(t, sshtest.Options{CertifyFor: []string{"web1.lab.example"}, HostKeys: []string{"rsa"}})
	expired := sshtest.Start(t, sshtest.Options{CertifyFor: []string{"127.0.0.1", "expired"}})
	plain := sshtest.Start(t, sshtest.Options{})
	other := sshtest.NewKey(t, "ed25519", "")
	for name, c := range map[string]struct {
		server    *sshtest.Server
		change    func(*remote.Target)
		want      error
		text      string
		certified bool
	}{
		"address":                    {byAddress, func(to *remote.Target) { to.HostKeys = nil }, nil, "", true},
		"above a recorded key":       {byAddress, func(to *remote.Target) { to.HostKeys = map[string]string{"ed25519": other.Blob} }, nil, "", true},
		"name":                       {byName, func(to *remote.Target) { to.HostKeys, to.Names = nil, []string{"x", "web1.lab.example"} }, nil, "", true},
		"other name":                 {byName, func(to *remote.Target) { to.HostKeys, to.Names = nil, []string{"web2.lab.example"} }, remote.ErrHostCert, "made out to web1.lab.example", false},
		"other name, key recorded":   {byName, func(to *remote.Target) { to.Names = nil }, nil, "", false},
		"expired":                    {expired, func(to *remote.Target) { to.HostKeys = nil }, remote.ErrHostCert, "expired", false},
		"no certificate, learned":    {plain, func(to *remote.Target) { to.HostKeys = nil }, nil, "", false},
		"no certificate, recorded":   {plain, func(*remote.Target) {}, nil, "", false},
		"no certificate, other key":  {plain, func(to *remote.Target) { to.HostKeys = map[string]string{"ed25519": other.Blob} }, remote.ErrHostKeyChanged, "changed", false},
		"unknown authority, learned": {byAddress, func(to *remote.Target) { to.HostKeys, to.HostCAs = nil, []string{other.Authorized} }, nil, "", false},
		"unknown authority, other key": {byAddress, func(to *remote.Target) {
			to.HostKeys, to.HostCAs = map[string]string{"ed25519": other.Blob}, []string{other.Authorized}
		}, remote.ErrHostKeyChanged, "changed", false},
		"no authority, certified":       {byAddress, func(to *remote.Target) { to.HostCAs = nil }, nil, "", false},
		"recorded of another type only": {byAddress, func(to *remote.Target) { to.HostKeys = map[string]string{"ecdsa": byAddress.HostKeys["ecdsa"]} }, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := target(c.server)
			to.HostCAs = []string{other.Authorized, c.server.CA}
			if c.server == plain {
				to.HostCAs = []string{byAddress.CA}
			}
			c.change(&to)
			pool := remote.NewPool()
			defer pool.Close()
			conn, release, err := pool.Conn(context.Background(), to)
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				if result, err := remote.Failure(err); err != nil || result.Retryable == nil || *result.Retryable {
					t.Fatalf("%+v, %v", result, err)
				}
				return
			}
			release()
			if conn.Certified() != c.certified {
				t.Errorf("certified: %t", conn.Certified())
			}
			for kind, key := range conn.HostKeys() { // the key itself, never the certificate
				if c.server.HostKeys[kind] != key {
					t.Errorf("host key %s %s", kind, key)
				}
			}
			again, release, err := pool.Conn(context.Background(), to)
			if err != nil || again != conn {
				t.Fatalf("the connection was not kept: %v", err)
			}
			release()
		})
	}
}

func TestHostCAsOf(t *testing.T) {
	t.Parallel()
	a, b := sshtest.NewKey(t, "ed25519", "").Authorized, sshtest.NewKey(t, "rsa", "").Authorized
	of := func(field string) (remote.Target, error) {
		return remote.TargetOf(&loom.TaskSpec{Hostname: "web1.lab.example", Provider: loom.Provider{Fields: map[string]any{"ssh_host_ca": field, "ssh_jump": "gate"}}}, "")
	}
	to, err := of("# ours\n" + a + " ca@example\n\n@cert-authority *.lab.example " + b + "\n")
	if err != nil || len(to.HostCAs) != 2 || to.HostCAs[0] != a || to.HostCAs[1] != b || len(to.Names) != 1 || to.Names[0] != "web1.lab.example" || len(to.Jump[0].HostCAs) != 2 {
		t.Errorf("%+v, %v", to, err)
	}
	for _, field := range []string{"garbage", "-----BEGIN PUBLIC KEY-----", "@cert-authority " + a, `no-pty ` + a} {
		if _, err := of(field); !errors.Is(err, remote.ErrCredentials) || !strings.Contains(err.Error(), "ssh_host_ca") {
			t.Errorf("%q: %v", field, err)
		}
	}
}
