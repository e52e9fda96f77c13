package joyent_test

import (
	"crypto"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/triton"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// lab has an account whose key, of a kind that may sign, also opens the machine.
func lab(t *testing.T, ssh bool, kind, passphrase string) (*cloudtest.Lab, *triton.Triton) {
	t.Helper()
	key, wrong := sshtest.NewKey(t, kind, passphrase), sshtest.NewKey(t, "ecdsa", "")
	dialect := triton.New(public(t, key))
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return joyent.NewLocal(o) })
	files := filepath.Join(provider.EnvOf(l.Context()).Files, "ssh_keys")
	for name, k := range map[string]sshtest.Key{cloudtest.KeyResource: key, "wrong": wrong, "new": sshtest.NewKey(t, "ed25519", "")} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(k.PEM), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Secrets = append(l.Secrets, strings.Split(k.PEM, "\n")[1])
	}
	if ssh {
		file, err := os.OpenFile(filepath.Join(l.SSH.Dir, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(file, key.Authorized); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l.Flavor, l.Image, l.MakeOp = triton.Package, triton.Image, triton.Create
	l.Secrets = append(l.Secrets, triton.Password, "pass phrase")
	l.Throttle = fakecloud.Fault{Status: 429, Code: "RequestThrottled"}
	l.Fields = map[string]any{"api_user": triton.Login, "api_password": "", "ssh_keypair": triton.KeyName, "ssh_key_resource": cloudtest.KeyResource,
		"joyent_version": "~7.0", "joyent_api_url": l.Cloud.URL() + "/"}
	if passphrase != "" {
		l.Fields["ssh_key_passphrase"] = passphrase
	}
	l.Refuse = func(fields map[string]any) { fields["ssh_key_resource"] = "wrong" }
	if ssh { // whose other address is not private
		l.Bind = l.SSH.Address
	}
	l.UserData = func() string {
		machines := l.Cloud.Machines()
		return machines[len(machines)-1].Request.(map[string]string)["metadata.cloud-init:user-data"]
	}
	return l, dialect
}

func public(t *testing.T, key sshtest.Key) crypto.PublicKey {
	t.Helper()
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.Authorized))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(ssh.CryptoPublicKey).CryptoPublicKey()
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: func(t *testing.T, ssh bool) *cloudtest.Lab { l, _ := lab(t, ssh, "ecdsa", ""); return l }, NamesOnce: true, ListOp: triton.List,
		Unknown: []any{"7f1f2a34-6c1e-4b8b-9a57-000000000099", "../keys"}, Broken: "no server has room", BrokenSays: "failed",
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
			{Fault: fakecloud.Fault{Status: 403}, Status: 202, Never: true, Message: "NotAuthorized"},
			{Fault: fakecloud.Fault{Status: 403, Code: "QuotaExceeded"}, Status: 202, Message: "QuotaExceeded"},
			{Fault: fakecloud.Fault{Status: 409}, Status: 202}, {Fault: fakecloud.Fault{Status: 409, Code: "InsufficientServers"}, Status: 202},
			{Fault: fakecloud.Fault{Status: 404}, Status: 202}, {Fault: fakecloud.Fault{Status: 400}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 413, Code: "RequestTooLarge"}, Status: 202, Never: true}, {Fault: fakecloud.Fault{Status: 429, RetryAfter: "20"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 500}, Status: 1, Message: "InternalError"}, {Fault: fakecloud.Fault{Status: 503}, Status: 1},
		},
		Settings: []cloudtest.Setting{
			{Field: "ssh_key_resource", Value: "wrong", Status: 201, Message: "InvalidCredentials"}, {Field: "ssh_key_resource", Value: "missing", Status: 201, Message: "missing"},
			{Field: "ssh_key_resource", Value: "new", Status: 201, Message: "RSA or ECDSA"}, {Field: "ssh_key_resource", Status: 201, Message: "api_password"},
			{Field: "ssh_keypair", Value: "other", Status: 201, Message: "InvalidCredentials"}, {Field: "ssh_keypair", Value: `a",algorithm="none`, Status: 201, Message: "ssh_keypair"},
			{Field: "api_user", Status: 201, Message: "api_user"}, {Field: "api_user", Value: "a/b", Status: 201, Message: "api_user"},
			{Field: "joyent_api_url", Value: "ftp://cloud.example", Status: 202, Message: "joyent_api_url"},
			{Field: "endpoint_url", Value: "https://user:word@cloud.example", Status: 202, Message: "endpoint_url"},
		},
		Flavors: []loom.ProbeFlavor{{ID: triton.Package, Name: triton.Package, VCPU: 1, RAM: 1024}}, Images: []loom.ProbeImage{{ID: triton.Image, Name: "debian-12 20240612"}},
		Checks: []string{"sign in", "key pair", "sizes", "images"},
		Wrong:  []cloudtest.Wrong{{Field: "ssh_key_resource", Value: "wrong", Check: "sign in"}, {Field: "ssh_keypair", Value: "other", Check: "sign in"}, {Field: "joyent_api_url", Value: "nonsense", Check: "settings"}, {Field: "api_user", Value: "", Check: "sign in"}},
	}.Run(t)
}

// Calls are signed with keys of either kind, locked ones too; addresses that nobody can be
// reached at are passed over.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, passphrase string }{{"rsa", ""}, {"ecdsa", "pass phrase"}} {
		l, dialect := lab(t, true, c.kind, c.passphrase)
		dialect.Also("127.0.0.9", "169.254.3.4", "fe80::1")
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		l.Must(spec, loom.ActionDelete, 0)
	}
}

// While a machine is being placed it cannot be deleted, and an API may forget it in the end.
func TestDeleteWhilePlacing(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		l, dialect := lab(t, false, "ecdsa", "")
		if forgets {
			dialect.Forget()
		}
		l.Cloud.Behave(fakecloud.Behaviour{Leaving: 3})
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		dialect.Placing(4)
		if _, sink := l.Must(spec, loom.ActionDelete, 0); !strings.Contains(sink.Text(), "being placed") {
			t.Errorf("nothing is said of the wait:\n%s", sink.Text())
		}
		if m := l.Cloud.Machines()[0]; m.State != fakecloud.Gone {
			t.Errorf("delete did not wait: the machine is %s", m.State)
		}
	}
}

// What the installation does not have it may have later.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	for _, change := range []func(*loom.TaskSpec){func(s *loom.TaskSpec) { s.Image = "unknown" }, func(s *loom.TaskSpec) { s.Flavor = "unknown" }} {
		spec := l.Spec(1)
		change(spec)
		if r, _ := l.Must(spec, loom.ActionCreate, 202); r.Retryable != nil || !strings.Contains(r.Message, "unknown does not exist") {
			t.Errorf("%+v", r)
		}
	}
}

// By password, where the installation takes them. A name that is taken stays so.
func TestPasswords(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false, "ecdsa", "")
	spec := l.Spec(1)
	spec.Provider.Fields["ssh_keypair"], spec.Provider.Fields["api_password"] = "", triton.Password
	l.Must(spec, loom.ActionCreate, 201)
	dialect.Passwords = true
	l.Must(spec, loom.ActionCreate, 0)
	taken := l.Spec(1)
	taken.IdempotencyKey = "5f0e8c1a-2b7d-5a3c-9e4f-000000000777"
	if r, _ := l.Must(taken, loom.ActionCreate, 202); !strings.Contains(r.Message, "taken") {
		t.Errorf("a name that is taken gave %+v", r)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, access, bind string }{
		{"", "", ""}, {"127.0.0.1 169.254.0.9 fe80::1 ::1 nonsense", "", ""}, {"10.1.2.3", "10.1.2.3", "10.1.2.3"}, {"203.0.113.9", "203.0.113.9", "203.0.113.9"},
		{"10.1.2.3 203.0.113.9 203.0.113.10", "203.0.113.9", "10.1.2.3"}, {"203.0.113.9 192.168.0.4 10.1.2.3", "203.0.113.9", "192.168.0.4"},
		{"100.64.0.7 203.0.113.9", "203.0.113.9", "100.64.0.7"}, {"127.0.0.1 172.16.0.5 172.16.0.6", "172.16.0.5", "172.16.0.5"},
	} {
		if access, bind := joyent.Addresses(strings.Fields(c.all)); access != c.access || bind != c.bind {
			t.Errorf("%q gave %q and %q", c.all, access, bind)
		}
	}
}

// The script waits while a process of the first boot runs, and gives up in the end.
func TestFirstBoot(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true, "ecdsa", "")
	conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: l.SSH.Address, Port: l.SSH.Port, Keys: []loom.Secret{loom.NewSecret(l.SSH.Key.PEM)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	exec := func(c remote.Command) (string, remote.Outcome) {
		said := ""
		c.Root, c.Line = true, func(_, text string) { said += text + "\n" }
		out, err := conn.Exec(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return said, out
	}
	wait := remote.Command{Text: joyent.FirstBoot, Env: map[string]string{"LOOM_FIRST_BOOT": "4"}}
	if said, out := exec(wait); !out.OK() || said != "" {
		t.Errorf("a machine that is done gave %d, %q", out.Code, said)
	}
	// Runs until the file is gone. What the command line says must not count as one.
	begin := remote.Command{Text: `d=/root/smartdc; mkdir -p $d; touch $d/runs
printf '#!/bin/sh\nwhile [ -e /root/smartdc/runs ]; do sleep 0.1; done\n' >$d/first""boot; chmod 0755 $d/first""boot
setsid $d/first""boot >/dev/null 2>&1 </dev/null &
until ps -eo args | grep -q 'smartdc/firstboo[t]$'; do :; done`}
	if _, out := exec(begin); !out.OK() {
		t.Fatalf("%+v", out)
	}
	if said, out := exec(wait); out.Code != 1 || !strings.Contains(said, "did not end within 4 s") {
		t.Errorf("a first boot without end gave %d, %q", out.Code, said)
	}
	end := wait
	end.Text = "(sleep 0.5; rm /root/smartdc/runs) >/dev/null 2>&1 </dev/null &\n" + end.Text
	if said, out := exec(end); !out.OK() || !strings.Contains(said, "waiting for the first boot") {
		t.Errorf("a first boot that ends gave %d, %q", out.Code, said)
	}
}

// A signature is worth nothing but for the call that was signed: not at another address,
// and not for another thing.
func TestSignaturesAreOfOneCall(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	var caught http.Header
	path := ""
	mine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caught, path = r.Header.Clone(), r.RequestURI
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(mine.Close)
	call := l.Call()
	call.Provider.Fields = maps.Clone(call.Provider.Fields)
	if _, err := l.Provider.(provider.Lister).List(l.Context(), call); err != nil {
		t.Fatal(err)
	}
	call.Provider.Fields["joyent_api_url"] = mine.URL
	if _, err := l.Provider.(provider.Lister).List(l.Context(), call); err == nil || caught.Get("Authorization") == "" {
		t.Fatalf("no signature came: %v", err)
	}
	replay := func(host, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.Cloud.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.Host = caught.Clone(), host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if status := replay("", path); status != http.StatusUnauthorized {
		t.Errorf("a signature for another address gave %d", status)
	}
	if status := replay(strings.TrimPrefix(mine.URL, "http://"), strings.Split(path, "?")[0]+"/other"); status != http.StatusUnauthorized {
		t.Errorf("a signature for another path gave %d", status)
	}
	// As it was signed it would be taken, so the test tests something.
	if status := replay(strings.TrimPrefix(mine.URL, "http://"), path); status != http.StatusOK {
		t.Errorf("the call as it was signed gave %d", status)
	}
}
